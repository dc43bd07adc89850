//! What happened, as events in one order: hashed always, kept when somebody wants to read it.

use std::sync::Arc;

use duolog_log_core::event::{Event, EventKind};
use duolog_log_core::ids::{LeaderEpoch, NodeId, Offset};
use duolog_log_core::replication::partition::Role;

/// Whether a run keeps its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// Only their hash.
    #[default]
    Off,
    /// Each with how all replicas stood after the step that it belongs to.
    On,
}

/// How one replica stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    /// Which.
    pub node: NodeId,
    /// `None` while it is down.
    pub role: Option<Role>,
    /// The newest leader epoch that it knows.
    pub leader_epoch: LeaderEpoch,
    /// Inclusive.
    pub log_start_offset: Offset,
    /// HW: exclusive.
    pub high_watermark: Offset,
    /// LEO: exclusive.
    pub log_end_offset: Offset,
    /// The ISR as it knows it; a leader's only.
    pub in_sync_replicas: Vec<NodeId>,
}

/// One event of a recorded run.
#[derive(Clone, Debug)]
pub struct Line {
    /// What happened.
    pub event: Event,
    /// All replicas after the step.
    pub replicas: Arc<[ReplicaView]>,
}

/// The event stream of one run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    seq: u64,
    topic: Arc<str>,
    recording: Recording,
    lines: Vec<Line>,
    /// Lines of the present step begin here.
    unsettled: usize,
}

/// An event without its words.
#[derive(Clone, Copy, Debug)]
pub struct Happening {
    /// When, in virtual milliseconds.
    pub now_ms: i64,
    /// Where; -1 is the coordinator.
    pub node: NodeId,
    /// What.
    pub kind: EventKind,
    /// Which offset matters; -1 for none.
    pub offset: i64,
    /// In which leader epoch; -1 for none.
    pub epoch: LeaderEpoch,
}

impl Trace {
    /// An empty stream.
    #[must_use]
    pub fn new(recording: Recording) -> Self {
        let topic = "sim".into();
        Self { hash: 0xCBF2_9CE4_8422_2325, seq: 0, topic, recording, lines: vec![], unsettled: 0 }
    }

    /// Adds an event; `cause` is called only when it is kept.
    pub fn emit(&mut self, happening: Happening, cause: impl FnOnce() -> String) {
        let Happening { now_ms, node, kind, offset, epoch } = happening;
        self.mix(now_ms.unsigned_abs());
        self.mix(u64::from(node.0.unsigned_abs()));
        self.mix(kind as u64);
        self.mix(offset.unsigned_abs());
        self.mix(u64::from(epoch.0.unsigned_abs()));
        let seq = self.seq;
        self.seq += 1;
        if self.recording == Recording::Off {
            return;
        }
        let mut event = Event::new(kind, now_ms).at(&self.topic, 0);
        event.seq = seq;
        event.node = node;
        event.offset = Some(Offset(offset)).filter(|offset| offset.0 >= 0);
        event.epoch = Some(epoch).filter(|epoch| epoch.0 >= 0);
        event.cause = Some(cause()).filter(|cause| !cause.is_empty()).map(Into::into);
        self.lines.push(Line { event, replicas: Arc::default() });
    }

    /// Ends a step: its events are seen with the replicas as `views` gives them.
    pub fn settle(&mut self, views: impl FnOnce() -> Vec<ReplicaView>) {
        if self.unsettled == self.lines.len() {
            return;
        }
        let views: Arc<[ReplicaView]> = views().into();
        for line in self.lines.iter_mut().skip(self.unsettled) {
            line.replicas = Arc::clone(&views);
        }
        self.unsettled = self.lines.len();
    }

    /// Of all events so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// What was kept.
    #[must_use]
    pub fn into_lines(self) -> Vec<Line> {
        self.lines
    }

    const fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01B3);
        self.hash ^= self.hash >> 29;
    }
}
