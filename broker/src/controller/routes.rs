//! What the name server shows of topics, where that is not what the topics are.
//!
//! Name server and broker are one process, so a route is there with its topic. Between both stands the gate
//! `route.publish`, as if the one had to tell the other: what a gate keeps, the name server does not know yet. A route
//! that a gate drops or fails stays unknown until its topic is changed again, or the node started.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duolog_bridge::backend;
use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::TopicId;
use futures_util::FutureExt as _;
use parking_lot::Mutex;

use super::names;
use crate::clock;
use crate::instruments::{Instruments, Passage};

/// A topic that the name server does not show as it is.
#[derive(Debug)]
struct Behind {
    /// As it shows it, if it does.
    shown: Option<Arc<backend::Topic>>,
    /// Which publication that was.
    shown_at: u64,
    /// The last publication that was begun.
    newest: u64,
}

/// The name server's routes.
#[derive(Debug)]
pub struct Routes {
    instruments: Arc<Instruments>,
    behind: Mutex<HashMap<TopicId, Behind>>,
    /// How many these are: nearly always none, and then nobody asks for the lock.
    count: AtomicUsize,
}

/// A route on its way to the name server.
#[derive(Debug)]
pub(super) struct Publication {
    topic: Arc<backend::Topic>,
    /// Among those of its topic that gates may keep; 0: nothing keeps it.
    number: u64,
}

impl Routes {
    pub(super) fn new(instruments: Arc<Instruments>) -> Self {
        Self { instruments, behind: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// What the name server shows of `topic`, which is as the node has it now.
    pub fn shown(&self, topic: &Arc<backend::Topic>) -> Option<Arc<backend::Topic>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Some(topic.clone());
        }
        match self.behind.lock().get(&topic.id) {
            Some(behind) => behind.shown.clone(),
            None => Some(topic.clone()),
        }
    }

    /// A topic is about to become `topic`; `before` is what it was. `None`: its route stays the same.
    pub(super) fn begin(
        &self,
        before: Option<&Arc<backend::Topic>>,
        topic: &Arc<backend::Topic>,
    ) -> Option<Publication> {
        let route = |topic: &backend::Topic| {
            (topic.read_queues, topic.write_queues, topic.perm, topic.sys_flag)
        };
        if before.is_some_and(|before| route(before) == route(topic)) || names::is_own(&topic.name)
        {
            return None;
        }
        let topic = topic.clone();
        if self.instruments.gates.is_idle() && self.count.load(Ordering::Acquire) == 0 {
            return Some(Publication { topic, number: 0 });
        }
        let mut behind = self.behind.lock();
        let held = behind.entry(topic.id).or_insert_with(|| Behind {
            shown: before.cloned(),
            shown_at: 0,
            newest: 0,
        });
        held.newest += 1;
        let number = held.newest;
        self.count.store(behind.len(), Ordering::Release);
        Some(Publication { topic, number })
    }

    /// The topic is what was said: publishes its route, now or when the gate lets it go.
    pub(super) fn publish(self: &Arc<Self>, publication: Publication) {
        if publication.number == 0 {
            return self.tell(&publication.topic);
        }
        let routes = self.clone();
        let mut publishing = Box::pin(async move {
            let topic = Some(&*publication.topic.name);
            let subject = GateSubject { topic, ..GateSubject::default() };
            let passage = routes.instruments.pass(GatePoint::RoutePublish, subject).await;
            if passage == Passage::Go && routes.show(&publication) {
                routes.tell(&publication.topic);
            }
        });
        if publishing.as_mut().now_or_never().is_none() {
            tokio::spawn(publishing);
        }
    }

    /// A topic is gone, and its route with it.
    pub(super) fn forget(&self, topic: TopicId) {
        if self.count.load(Ordering::Acquire) > 0 {
            let mut behind = self.behind.lock();
            behind.remove(&topic);
            self.count.store(behind.len(), Ordering::Release);
        }
    }

    /// Shows a route, unless a newer one is shown or the topic is gone.
    fn show(&self, publication: &Publication) -> bool {
        let mut behind = self.behind.lock();
        let Some(held) = behind.get_mut(&publication.topic.id) else { return false };
        if held.shown_at > publication.number {
            return false;
        }
        if held.newest == publication.number {
            behind.remove(&publication.topic.id);
            self.count.store(behind.len(), Ordering::Release);
        } else {
            held.shown_at = publication.number;
            held.shown = Some(publication.topic.clone());
        }
        true
    }

    fn tell(&self, topic: &backend::Topic) {
        self.instruments.events.emit(|| {
            let (read, write, perm) = (topic.read_queues, topic.write_queues, topic.perm);
            let event = Event::new(EventKind::RouteRegister, clock::now_ms())
                .protocol(Protocol::RocketMq)
                .cause(format!("{read} queues to read, {write} to write, perm {perm}"));
            Event { topic: Some(topic.name.clone()), ..event }
        });
    }
}

#[cfg(test)]
mod tests;
