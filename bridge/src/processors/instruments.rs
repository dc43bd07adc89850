//! Events and gates at the RocketMQ doors. With nobody listening and no gate armed each costs one
//! relaxed load.

use std::fmt;

use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::Offset;

use super::Refusal;
use crate::backend::{Backend, Passage, Topic};
use crate::dispatch::Shared;
use crate::response_code::ResponseCode;
use crate::session::Session;

/// A place in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    pub(crate) topic: &'a Topic,
    pub(crate) queue_id: i32,
    pub(crate) offset: Option<i64>,
}

impl<B: Backend> Shared<B> {
    /// Passes a gate. A request that a gate drops is never answered; its future waits for the end
    /// of the connection.
    pub(crate) async fn pass(
        &self,
        point: GatePoint,
        session: &Session,
        spot: Option<Spot<'_>>,
    ) -> Result<(), Refusal> {
        let subject = GateSubject {
            topic: spot.map(|spot| &*spot.topic.name),
            partition: spot.map(|spot| spot.queue_id),
            offset: spot.and_then(|spot| spot.offset).map(Offset),
            client: session.client_id(),
        };
        match self.backend.pass_gate(point, subject).await {
            Passage::Go => Ok(()),
            Passage::Drop => std::future::pending().await,
            Passage::Fail => Err(Refusal::new(
                ResponseCode::SYSTEM_ERROR,
                format!("the gate {point} refuses the request"),
            )),
        }
    }

    /// Tells that `group` goes on at `spot`, and not where it wanted to.
    pub(crate) fn tell_reset(
        &self,
        session: &Session,
        spot: Spot<'_>,
        group: &str,
        why: fmt::Arguments<'_>,
    ) {
        if self.backend.events().is_listening() {
            let cause = format!("group {group}: {why}");
            self.tell(EventKind::OffsetReset, session, Some(spot), Some(&cause));
        }
    }

    /// Tells what happened.
    pub(crate) fn tell(
        &self,
        kind: EventKind,
        session: &Session,
        spot: Option<Spot<'_>>,
        cause: Option<&str>,
    ) {
        self.backend.events().emit(|| {
            let event = Event::new(kind, self.backend.now_ms())
                .protocol(Protocol::RocketMq)
                .client(session.client_name());
            let event = match spot {
                Some(spot) => event.at(&spot.topic.name, spot.queue_id),
                None => event,
            };
            let event = match spot.and_then(|spot| spot.offset) {
                Some(offset) => event.offset(Offset(offset)),
                None => event,
            };
            match cause {
                Some(cause) => event.cause(cause),
                None => event,
            }
        });
    }
}

#[cfg(test)]
mod tests;
