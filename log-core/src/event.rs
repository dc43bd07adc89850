//! Numbered events: every state change, told once, to whoever listens.
//!
//! The same stream feeds tracing, the console, graders and the simulator's traces. With nobody listening an event
//! costs one relaxed load: the closure that builds it is not called.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::ids::{LeaderEpoch, NodeId, Offset};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// What happened; shown under its dotted name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventKind { $($(#[$doc])* $variant),+ }

        impl EventKind {
            /// Every kind there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The dotted name, as written in a trace.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

kinds! {
    /// A produce request, or a RocketMQ send, was read.
    ProduceReceived = "produce.recv",
    /// Its records are in the leader's log.
    ProduceAppended = "produce.append",
    /// Its answer is on its way.
    ProduceAcknowledged = "produce.ack",
    /// A follower asked its leader.
    ReplicaFetch = "repl.fetch",
    /// A follower wrote what its leader sent.
    ReplicaAppend = "repl.append",
    /// The coordinator gave the partition other replicas, or another minimum of them.
    ReplicaAssign = "repl.assign",
    /// The high watermark rose.
    HighWatermarkAdvanced = "hw.advance",
    /// The last stable offset rose.
    LastStableOffsetAdvanced = "lso.advance",
    /// A replica left the ISR.
    IsrShrink = "isr.shrink",
    /// A replica joined the ISR.
    IsrExpand = "isr.expand",
    /// A replica became leader.
    LeaderElect = "leader.elect",
    /// A new active segment.
    LogRoll = "log.roll",
    /// The log's end was cut.
    LogTruncate = "log.truncate",
    /// Segments went by retention.
    LogDelete = "log.delete",
    /// Segments were compacted.
    LogCompact = "log.compact",
    /// Records that were on disk are damaged or missing, from this offset on.
    LogDamage = "log.damage",
    /// The log is on disk up to an offset.
    LogFlush = "log.flush",
    /// A log goes on in another log directory, which is the cause.
    LogDirMove = "log_dir.move",
    /// A log directory has failed; the cause names it, and says with what.
    LogDirOffline = "log_dir.offline",
    /// A member joined a group.
    GroupJoin = "group.join",
    /// A member left a group.
    GroupLeave = "group.leave",
    /// A group has a new assignment.
    GroupAssign = "group.assign",
    /// A member loses partitions. Of a classic group each partition that it had and another has now, or nobody since the
    /// member is gone; of a RocketMQ group, whose members divide the queues by themselves, the member.
    GroupRevoke = "group.revoke",
    /// A RocketMQ client told its groups.
    RocketmqHeartbeat = "rmq.heartbeat",
    /// A RocketMQ pull was answered.
    RocketmqPull = "rmq.pull",
    /// A RocketMQ queue was locked.
    RocketmqLock = "rmq.lock",
    /// A group's position was stored.
    OffsetCommit = "offset.commit",
    /// A group's position went back, or begins where a rule says: at 0 without a position, at the next readable offset
    /// from one outside the log. (Tools that move it forward cannot be told from members that commit.)
    OffsetReset = "offset.reset",
    /// Records left for a consumer.
    Deliver = "deliver",
    /// A consumer sent a message back: where it lies, and of which group and how it goes on.
    SendBack = "sendback",
    /// A message was stored among a group's dead letters.
    DeadLetterStore = "dlq.store",
    /// A message was stored until its time; offset and partition are those of the log of timers, the cause says where
    /// it goes and when.
    DelayStore = "delay.store",
    /// A message whose time came is in its topic.
    DelayFire = "delay.fire",
    /// A transaction has its first partition. Of this and all below, the client is the transactional id.
    TxnBegin = "txn.begin",
    /// A partition was added to a transaction.
    TxnAdd = "txn.add",
    /// How a transaction ends is decided and stored.
    TxnPrepare = "txn.prepare",
    /// A transaction's marker is in a partition.
    TxnMarker = "txn.marker",
    /// All markers of a transaction are written.
    TxnComplete = "txn.complete",
    /// A producer lost its transactional id to another, or its transaction to the clock; or was refused after that.
    TxnFence = "txn.fence",
    /// A half message was stored. Of this and the four below, topic and partition are those that it goes to, the offset
    /// is its own, but where said otherwise.
    HalfStore = "half.store",
    /// A half message was committed.
    HalfCommit = "half.commit",
    /// A half message was rolled back.
    HalfRollback = "half.rollback",
    /// A producer is asked how a half message ended.
    HalfCheck = "half.check",
    /// A half message is given up.
    HalfDiscard = "half.discard",
    /// What became of a half message is in the queue that it was decided for; the offset is the one there.
    HalfDeliver = "half.deliver",
    /// A new or changed route of a topic can be asked for at the name server.
    RouteRegister = "route.register",
    /// A client asked for a route.
    RouteQuery = "route.query",
    /// A connection was accepted.
    ClientConnect = "client.connect",
    /// A connection ended.
    ClientClose = "client.close",
    /// A gate caught something.
    GateHit = "gate.hit",
    /// A gate let something go.
    GateRelease = "gate.release",
    /// The disk refused a write or a sync.
    FaultDisk = "fault.disk",
    /// A process died; what it wrote stays with the operating system.
    FaultCrash = "fault.crash",
    /// A machine lost its power, and with it what was not synced.
    FaultPower = "fault.power",
    /// A node came back.
    FaultRestart = "fault.restart",
    /// Messages to or from a node are lost, or pass again.
    FaultNetwork = "fault.network",
    /// A node's clock was set.
    FaultClock = "fault.clock",
    /// The coordinator took a node for dead.
    FaultSession = "fault.session",
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which side of the node an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The Kafka listener.
    Kafka,
    /// The RocketMQ listeners.
    RocketMq,
}

/// One state change. Fields that do not apply are `None`.
#[derive(Clone, Debug)]
pub struct Event {
    /// Position in this node's stream, from 0 without gaps.
    pub seq: u64,
    /// Milliseconds since 1970 by the caller's clock.
    pub time_ms: i64,
    /// Where it happened.
    pub node: NodeId,
    /// What happened.
    pub kind: EventKind,
    /// The stored topic name.
    pub topic: Option<Arc<str>>,
    /// The partition, or queue.
    pub partition: Option<i32>,
    /// The offset that matters for this kind: last appended, new watermark, position.
    pub offset: Option<Offset>,
    /// The leader epoch in which it happened.
    pub epoch: Option<LeaderEpoch>,
    /// The side it came from.
    pub protocol: Option<Protocol>,
    /// Client id, member id or remote address.
    pub client: Option<Arc<str>>,
    /// Why, in words.
    pub cause: Option<Arc<str>>,
}

impl Event {
    /// An event of `kind` that names nothing yet; `seq` and `node` are given by [`Events::emit`].
    #[must_use]
    pub const fn new(kind: EventKind, time_ms: i64) -> Self {
        Self {
            seq: 0,
            time_ms,
            node: NodeId(-1),
            kind,
            topic: None,
            partition: None,
            offset: None,
            epoch: None,
            protocol: None,
            client: None,
            cause: None,
        }
    }

    /// Names the partition.
    #[must_use]
    pub fn at(mut self, topic: &Arc<str>, partition: i32) -> Self {
        self.topic = Some(topic.clone());
        self.partition = Some(partition);
        self
    }

    /// Names the offset.
    #[must_use]
    pub const fn offset(mut self, offset: Offset) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Names the leader epoch.
    #[must_use]
    pub const fn epoch(mut self, epoch: LeaderEpoch) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Names the side.
    #[must_use]
    pub const fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Names the client.
    #[must_use]
    pub fn client(mut self, client: impl Into<Arc<str>>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Says why.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<Arc<str>>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

/// Takes events; must not block, since it runs where the change happened.
pub trait EventSink: Send + Sync {
    /// Called once for each event, in `seq` order per caller.
    fn accept(&self, event: &Event);
}

/// One node's event stream.
pub struct Events {
    node: NodeId,
    listening: AtomicBool,
    next_seq: AtomicU64,
    sink: Box<dyn EventSink>,
}

impl Events {
    /// A stream of `node` into `sink`, silent until [`Self::listen`].
    #[must_use]
    pub fn new(node: NodeId, sink: Box<dyn EventSink>) -> Self {
        Self { node, listening: AtomicBool::new(false), next_seq: AtomicU64::new(0), sink }
    }

    /// A stream that nobody ever hears.
    #[must_use]
    pub fn silent(node: NodeId) -> Self {
        struct Nobody;
        impl EventSink for Nobody {
            fn accept(&self, _: &Event) {}
        }
        Self::new(node, Box::new(Nobody))
    }

    /// Starts the stream.
    pub fn listen(&self) {
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Ends the stream.
    pub fn stop(&self) {
        self.listening.store(false, Ordering::Relaxed);
    }

    /// Whether anybody listens.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// Tells the event that `build` makes; does not call it with nobody listening.
    pub fn emit(&self, build: impl FnOnce() -> Event) {
        if !self.is_listening() {
            return;
        }
        let mut event = build();
        event.seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        event.node = self.node;
        self.sink.accept(&event);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("node", &self.node)
            .field("listening", &self.is_listening())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
