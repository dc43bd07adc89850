//! Events and gates of the node: what the control port shows and arms, and how a gate is obeyed.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use duolog_bridge::complaints::Complaints;
use duolog_log_core::event::{Event, EventKind, Events, Protocol};
use duolog_log_core::gate::{GateId, GatePoint, GateSubject, GateVerdict, Gates};
use tokio::sync::Notify;

use crate::clock;

/// What may go on after a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Passage {
    /// As if there were no gate.
    Go,
    /// Nothing more happens, nobody is told.
    Drop,
    /// The point's error.
    Fail,
}

/// The node's event stream and gates.
#[derive(Debug)]
pub struct Instruments {
    /// Every state change.
    pub events: Arc<Events>,
    /// Every armed gate.
    pub gates: Gates,
    /// What the console has said of clients at the wrong door.
    pub complaints: Complaints,
    released: Notify,
}

impl Instruments {
    /// Instruments that tell their events to `events`.
    pub fn new(events: Events) -> Self {
        let events = Arc::new(events);
        let (gates, complaints) = (Gates::default(), Complaints::default());
        Self { events, gates, complaints, released: Notify::new() }
    }

    /// Lets go what the gate holds; returns whether it stood.
    pub fn release(&self, gate: GateId) -> bool {
        let released = self.gates.release(gate).is_some();
        self.released.notify_waiters();
        if released {
            self.events.emit(|| Event::new(EventKind::GateRelease, clock::now_ms()));
        }
        released
    }

    /// Waits at `point` for as long as a gate says. One relaxed load when none is armed.
    pub async fn pass(&self, point: GatePoint, subject: GateSubject<'_>) -> Passage {
        let verdict = self.gates.check(point, subject);
        if verdict == GateVerdict::Pass {
            return Passage::Go;
        }
        self.events.emit(|| caught(point, subject));
        match verdict {
            GateVerdict::Pass => Passage::Go,
            GateVerdict::Drop => Passage::Drop,
            GateVerdict::Fail => Passage::Fail,
            GateVerdict::Crash => panic!("a gate at {point} ends the process"),
            GateVerdict::Delay(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Passage::Go
            }
            GateVerdict::Hold(gate) => {
                self.held(gate).await;
                Passage::Go
            }
        }
    }

    /// Tells that a client has connected.
    pub fn tell_connected(&self, protocol: Protocol, peer: SocketAddr) {
        self.events.emit(|| {
            let event = Event::new(EventKind::ClientConnect, clock::now_ms());
            event.protocol(protocol).client(peer.to_string())
        });
    }

    /// Tells that a connection has ended, and why.
    pub fn tell_closed(&self, protocol: Protocol, peer: SocketAddr, why: &dyn Display) {
        self.events.emit(|| {
            let event = Event::new(EventKind::ClientClose, clock::now_ms());
            event.protocol(protocol).client(peer.to_string()).cause(why.to_string())
        });
    }

    async fn held(&self, gate: GateId) {
        loop {
            let released = self.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            if !self.gates.is_held(gate) {
                return;
            }
            released.await;
        }
    }
}

/// What a gate caught, and where.
fn caught(point: GatePoint, subject: GateSubject<'_>) -> Event {
    Event {
        topic: subject.topic.map(Arc::from),
        partition: subject.partition,
        offset: subject.offset,
        client: subject.client.map(Arc::from),
        ..Event::new(EventKind::GateHit, clock::now_ms()).cause(point.name())
    }
}

#[cfg(test)]
mod tests;
