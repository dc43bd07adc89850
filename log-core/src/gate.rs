//! Gates: named points where a test or a lab may hold, drop, delay or fail what passes.
//!
//! Compiled in always; with no gate armed a point costs one relaxed load. The registry decides only; the caller that
//! owns a clock performs the verdict: it waits, sleeps, drops or fails.
//!
//! ```text
//! check(point, subject) ──no gate matches──▶ Pass
//!          └──the nth match──▶ Hold(ticket) ──release──▶ Pass / Drop / Fail
//!                              Delay(ms) / Drop / Fail
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::Offset;
use crate::limits;

macro_rules! points {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Where something can be caught.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum GatePoint { $($(#[$doc])* $variant),+ }

        impl GatePoint {
            /// Every point there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The dotted name, as used over the control port.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

points! {
    /// A produce or send was decoded; nothing is decided yet.
    ProduceReceived = "produce.recv",
    /// Validated, about to be written.
    ProduceAppendBefore = "produce.append.before",
    /// Written to the leader's log, not yet published.
    ProduceAppendAfter = "produce.append.after",
    /// The answer is ready, not yet sent.
    ProduceAckBefore = "produce.ack.before",
    /// The high watermark is about to rise.
    HighWatermarkBefore = "hw.advance.before",
    /// An fsync is about to begin.
    FlushBefore = "flush.before",
    /// An fsync has returned; its waiters do not know yet.
    FlushAfter = "flush.after",
    /// A member asks to join.
    GroupJoin = "group.join",
    /// A member asks for its assignment.
    GroupSync = "group.sync",
    /// A member's heartbeat.
    GroupHeartbeat = "group.heartbeat",
    /// A position is about to be stored.
    OffsetCommitBefore = "offset.commit.before",
    /// Records are about to leave for a consumer.
    DeliverBefore = "deliver.before",
    /// A consumer sends a message back; nothing is decided yet.
    SendBackReceived = "sendback.recv",
    /// A copy of a message that was popped too often is about to be written to the dead letters; the offset is the one
    /// in the log of messages in hand. What is dropped or fails is tried again.
    DeadLetterDeliver = "dlq.deliver",
    /// A message whose time has come is about to be written to its topic; the offset is the one in the log of timers.
    /// What is dropped or fails is tried again.
    DelayFire = "delay.fire",
    /// A partition is about to be added to a transaction. Of this and the two below, the client is the transactional id.
    TxnAdd = "txn.add",
    /// A producer asks for the end of its transaction.
    TxnEndReceived = "txn.end.recv",
    /// A transaction's marker is about to be written to a partition. What is dropped or fails is tried again.
    TxnMarkerBefore = "txn.marker.before",
    /// A half message is stored; its producer does not know yet. Of this and the three below, topic and partition are
    /// those that it goes to, the offset is its own.
    HalfStored = "half.stored",
    /// A half message that was committed, or given up, is about to be written to its queue. What is dropped or fails is
    /// tried again.
    HalfDeliver = "half.deliver",
    /// A producer is about to be asked how a half message ended. What is dropped or fails counts as asked.
    CheckDispatch = "check.dispatch",
    /// A producer has answered such a question.
    CheckReply = "check.reply",
    /// A new or changed route of a topic is about to be told to the name server. The topic is there meanwhile; what is
    /// dropped or fails is told with the topic's next change.
    RoutePublish = "route.publish",
    /// A client asks for a route.
    RouteQuery = "route.query",
    /// A copy of a log in another log directory is about to get what it lacks. Of this and the one below, what is
    /// dropped or fails is tried again; the offset is the log's end.
    LogDirCopy = "log_dir.copy",
    /// Such a copy has caught up and is about to take the log's place.
    LogDirReplaceBefore = "log_dir.replace.before",
    /// It has, and the old folder is still there. What is dropped or fails goes on.
    LogDirReplaceAfter = "log_dir.replace.after",
}

impl fmt::Display for GatePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No gate has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown gate {0}; one of {1} expected")]
pub struct UnknownGate(String, String);

impl FromStr for GatePoint {
    type Err = UnknownGate;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|point| point.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|point| point.name()).collect();
            UnknownGate(name.to_owned(), names.join(", "))
        })
    }
}

/// What a gate does to what it catches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateAction {
    /// Keeps it until [`Gates::release`].
    Hold,
    /// Makes it vanish: a request without an answer, a message not sent.
    Drop,
    /// Lets it go after so many milliseconds.
    Delay(u64),
    /// Answers it with the point's storage or coordinator error.
    Fail,
    /// Ends the process there, as a broken invariant does.
    Crash,
}

/// Which passers a gate catches: every field that is given must agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateFilter {
    /// Only this stored topic.
    pub topic: Option<String>,
    /// Only this partition.
    pub partition: Option<i32>,
    /// Only this offset.
    pub offset: Option<Offset>,
    /// Only this client id.
    pub client: Option<String>,
    /// Only the n-th match, counted from 1; without it every match.
    pub nth: Option<u64>,
}

/// What passes a point.
#[derive(Clone, Copy, Debug, Default)]
pub struct GateSubject<'a> {
    /// The stored topic.
    pub topic: Option<&'a str>,
    /// Its partition.
    pub partition: Option<i32>,
    /// The offset concerned.
    pub offset: Option<Offset>,
    /// The client id.
    pub client: Option<&'a str>,
}

/// Names an armed gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateId(pub u64);

/// What the caller at the point has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Go on.
    Pass,
    /// Wait until [`Gates::is_held`] is false for this gate, then go on.
    Hold(GateId),
    /// Forget it.
    Drop,
    /// Go on after so many milliseconds.
    Delay(u64),
    /// Answer with an error.
    Fail,
    /// End the process.
    Crash,
}

/// An armed gate and what it has seen.
#[derive(Clone, Debug)]
pub struct ArmedGate {
    /// Its name for [`Gates::release`].
    pub id: GateId,
    /// Where it stands.
    pub point: GatePoint,
    /// Whom it catches.
    pub filter: GateFilter,
    /// What it does.
    pub action: GateAction,
    /// How many passers matched the filter so far.
    pub matches: u64,
    /// How many it caught.
    pub hits: u64,
}

/// Too many gates at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} gates are armed already: release one first")]
pub struct TooManyGates(usize);

#[derive(Default)]
struct Armed {
    next_id: u64,
    gates: BTreeMap<GateId, ArmedGate>,
}

/// The gates of one node.
#[derive(Default)]
pub struct Gates {
    count: AtomicUsize,
    armed: Mutex<Armed>,
}

impl Gates {
    /// Arms a gate; it stands until released.
    pub fn arm(
        &self,
        point: GatePoint,
        filter: GateFilter,
        action: GateAction,
    ) -> Result<GateId, TooManyGates> {
        let mut armed = self.lock();
        if armed.gates.len() >= limits::GATES_MAX {
            return Err(TooManyGates(armed.gates.len()));
        }
        let id = GateId(armed.next_id);
        armed.next_id += 1;
        armed.gates.insert(id, ArmedGate { id, point, filter, action, matches: 0, hits: 0 });
        self.count.store(armed.gates.len(), Ordering::Release);
        Ok(id)
    }

    /// Disarms a gate and lets go what it holds; returns it as it last stood.
    pub fn release(&self, id: GateId) -> Option<ArmedGate> {
        let mut armed = self.lock();
        let gate = armed.gates.remove(&id);
        self.count.store(armed.gates.len(), Ordering::Release);
        gate
    }

    /// Whether no gate stands: one relaxed load.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// The gates that stand, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<ArmedGate> {
        self.lock().gates.values().cloned().collect()
    }

    /// Whether what the gate caught must still wait.
    #[must_use]
    pub fn is_held(&self, id: GateId) -> bool {
        self.lock().gates.contains_key(&id)
    }

    /// Asks whether `subject` may pass `point`; the oldest gate that catches it decides.
    #[must_use]
    pub fn check(&self, point: GatePoint, subject: GateSubject<'_>) -> GateVerdict {
        if self.is_idle() {
            return GateVerdict::Pass;
        }
        let mut verdict = GateVerdict::Pass;
        for gate in self.lock().gates.values_mut().filter(|gate| gate.point == point) {
            if !gate.filter.matches(subject) {
                continue;
            }
            gate.matches += 1;
            let caught = gate.filter.nth.is_none_or(|nth| nth == gate.matches);
            if caught && verdict == GateVerdict::Pass {
                gate.hits += 1;
                verdict = match gate.action {
                    GateAction::Hold => GateVerdict::Hold(gate.id),
                    GateAction::Drop => GateVerdict::Drop,
                    GateAction::Delay(ms) => GateVerdict::Delay(ms),
                    GateAction::Fail => GateVerdict::Fail,
                    GateAction::Crash => GateVerdict::Crash,
                };
            }
        }
        verdict
    }

    fn lock(&self) -> MutexGuard<'_, Armed> {
        // The registry stays consistent at every step, so a panic elsewhere does not spoil it.
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gates").field("armed", &self.list()).finish()
    }
}

impl GateFilter {
    fn matches(&self, subject: GateSubject<'_>) -> bool {
        fn agrees<T: PartialEq>(wanted: Option<T>, given: Option<T>) -> bool {
            wanted.is_none_or(|wanted| given == Some(wanted))
        }
        agrees(self.topic.as_deref(), subject.topic)
            && agrees(self.partition, subject.partition)
            && agrees(self.offset, subject.offset)
            && agrees(self.client.as_deref(), subject.client)
    }
}

#[cfg(test)]
mod tests;
