//! One replica of one partition: LEO, HW, LSO, leader epoch and role, as one machine.
//!
//! ```text
//! Offline ──become_leader(epoch)──▶ Leader ──become_follower(epoch)──▶ Follower ──become_leader──▶ …
//! Leader:   appended            LEO rises; HW = min LEO over the maximal ISR; LSO follows
//!           answer_fetch        that replica's LEO; perhaps an ISR growth is proposed
//!           tick                perhaps an ISR shrink is proposed
//!           isr_committed       the coordinator's ISR is the ISR; HW looks again
//!           assignment_committed  the same, and replicas come and go, or the minimum is another one
//!           isr_refused         the committed ISR is proposed anew, under a newer version
//! Follower: follower_step       what to ask or to cut next
//!           fetch_answered      append, or cut to where the logs part
//!           truncated           LEO falls, HW with it
//!           appended            LEO rises; leader_told  HW = min(leader's HW, LEO)
//! any:      log_start_moved, unstable_changed, set_rules
//!           removed             Offline: the node is no replica any more
//! ```
//!
//! This file holds what both roles share; `leader.rs` says who has what and what is committed, `follower.rs` how a log
//! comes to agree with its leader's. Inputs change the state at once and leave effects, which the owner drains and
//! performs before the next input. Always asserted: start ≤ LSO ≤ HW ≤ LEO; a leader's HW and the epoch never go back.
//! A single node is the case of one replica: its ISR is itself, so HW = LEO after every append.
//! Sources: KIP-101, KIP-320, KIP-497, KIP-595, KIP-966; Partition.scala, UnifiedLog.

pub use super::follower::{AppendPlan, Fetched, FollowerStep};
pub use super::terms::{
    AckState, Acks, Assignment, EpochQuestion, FetchAnswer, FetchQuestion, LogPosition,
    PartitionRules, ReplicationError, Role, TruncationRule,
};

use super::effect::Effect;
use super::follower::Following;
use super::leader::Leading;
use crate::ids::{LeaderEpoch, NodeId, Offset};

/// The machine. See the module's head for its transitions.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(super) local: NodeId,
    pub(super) rules: PartitionRules,
    pub(super) truncation: TruncationRule,
    pub(super) state: State,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) log: LogPosition,
    pub(super) high_watermark: Offset,
    pub(super) last_stable_offset: Offset,
    pub(super) effects: Vec<Effect>,
}

/// What a role keeps.
#[derive(Clone, Debug)]
pub(super) enum State {
    Offline,
    Leader(Leading),
    Follower(Following),
}

impl Partition {
    /// A replica on `local` whose log was recovered to `log`.
    ///
    /// `high_watermark` comes from the checkpoint; it is brought into `[start, LEO]`, as the file may be older than
    /// the log or newer than a torn tail.
    #[must_use]
    pub fn new(
        local: NodeId,
        rules: PartitionRules,
        log: LogPosition,
        high_watermark: Offset,
    ) -> Self {
        assert!(log.log_start_offset <= log.log_end_offset, "a log starts before it ends: {log:?}");
        let high_watermark = high_watermark.clamp(log.log_start_offset, log.log_end_offset);
        let mut partition = Self {
            local,
            rules,
            truncation: TruncationRule::default(),
            state: State::Offline,
            leader_epoch: LeaderEpoch::UNKNOWN,
            log,
            high_watermark,
            last_stable_offset: log.log_start_offset,
            effects: Vec::new(),
        };
        partition.last_stable_offset = partition.stable_offset();
        partition
    }

    /// The same replica under another rule of truncation: for lessons and their simulator.
    #[must_use]
    pub const fn truncating_by(mut self, rule: TruncationRule) -> Self {
        self.truncation = rule;
        self
    }

    pub(super) fn enter_epoch(&mut self, epoch: LeaderEpoch) -> Result<(), ReplicationError> {
        if epoch <= self.leader_epoch {
            let current = self.leader_epoch;
            return Err(ReplicationError::FencedLeaderEpoch { given: epoch, current });
        }
        self.leader_epoch = epoch;
        Ok(())
    }

    /// Whether a request that knows leader epoch `given` may be served; `None` asks for no check (KIP-320).
    pub fn check_epoch(&self, given: Option<LeaderEpoch>) -> Result<(), ReplicationError> {
        let current = self.leader_epoch;
        match given {
            Some(given) if given < current => {
                Err(ReplicationError::FencedLeaderEpoch { given, current })
            }
            Some(given) if given > current => {
                Err(ReplicationError::UnknownLeaderEpoch { given, current })
            }
            _ => Ok(()),
        }
    }

    /// Whether this replica leads.
    pub fn check_leader(&self) -> Result<(), ReplicationError> {
        self.leading().map(|_| ())
    }

    pub(super) fn leading(&self) -> Result<&Leading, ReplicationError> {
        match &self.state {
            State::Leader(leading) => Ok(leading),
            State::Follower(_) | State::Offline => {
                Err(ReplicationError::NotLeader { local: self.local })
            }
        }
    }

    /// The local log grew to `log_end_offset`, or stayed.
    pub fn appended(&mut self, log_end_offset: Offset, first_unstable_offset: Option<Offset>) {
        let before = self.log.log_end_offset;
        assert!(log_end_offset >= before, "an append never shortens: {before} to {log_end_offset}");
        self.log.log_end_offset = log_end_offset;
        self.log.first_unstable_offset = first_unstable_offset;
        self.advance_high_watermark();
        self.publish_stable_offset();
    }

    /// The oldest unstable transaction changed without an append: its marker fell below the HW, or it expired.
    pub fn unstable_changed(&mut self, first_unstable_offset: Option<Offset>) {
        self.log.first_unstable_offset = first_unstable_offset;
        self.publish_stable_offset();
    }

    /// The earliest readable offset rose, by retention or by `DeleteRecords`.
    ///
    /// A leader never deletes above its HW; a follower takes its leader's word, so its HW and LEO may follow.
    pub fn log_start_moved(&mut self, log_start_offset: Offset) {
        assert!(log_start_offset >= self.log.log_start_offset, "a log start never goes back");
        self.log.log_start_offset = log_start_offset;
        self.log.log_end_offset = self.log.log_end_offset.max(log_start_offset);
        self.high_watermark = self.high_watermark.max(log_start_offset);
        self.last_stable_offset = self.last_stable_offset.max(log_start_offset);
        self.check_order();
    }

    /// Takes what the owner has to perform, oldest first.
    pub fn drain_effects(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    /// This node is no replica any more: it neither leads nor follows, and what waits here is answered so. The owner
    /// drops the log; should the node become a replica again, that begins with another machine.
    pub fn removed(&mut self) {
        self.state = State::Offline;
    }

    /// The rules were changed by a config.
    ///
    /// A lower `min.insync.replicas` lets the HW pass what replicas outside the ISR have: whoever may elect must know of
    /// it first (see `election`). Among several replicas it comes with [`Self::assignment_committed`] and not from here.
    pub fn set_rules(&mut self, rules: PartitionRules) {
        self.rules = rules;
        self.advance_high_watermark();
    }

    /// What this replica is.
    #[must_use]
    pub const fn role(&self) -> Role {
        match &self.state {
            State::Offline => Role::Offline,
            State::Leader(_) => Role::Leader,
            State::Follower(following) => Role::Follower(following.leader),
        }
    }

    /// The newest epoch seen.
    #[must_use]
    pub const fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    /// Earliest readable offset: inclusive.
    #[must_use]
    pub const fn log_start_offset(&self) -> Offset {
        self.log.log_start_offset
    }

    /// LEO: exclusive.
    #[must_use]
    pub const fn log_end_offset(&self) -> Offset {
        self.log.log_end_offset
    }

    /// HW: first offset not yet on the whole ISR, exclusive.
    #[must_use]
    pub const fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// LSO: start of the oldest unstable transaction, else the HW; exclusive.
    #[must_use]
    pub const fn last_stable_offset(&self) -> Offset {
        self.last_stable_offset
    }

    /// The committed ISR as this leader knows it; empty on others.
    pub fn in_sync_replicas(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.leading().into_iter().flat_map(|leading| leading.isr().committed_ids())
    }

    /// The version of the coordinator's state that this leader acts on.
    #[must_use]
    pub fn partition_epoch(&self) -> Option<i32> {
        self.leading().ok().map(|leading| leading.isr().partition_epoch())
    }

    /// `min.insync.replicas` as this replica knows it; at most the number of replicas counts.
    #[must_use]
    pub const fn min_insync_replicas(&self) -> usize {
        self.rules.min_insync_replicas
    }

    pub(super) fn raise_high_watermark(&mut self, to: Offset) {
        if to > self.high_watermark {
            let from = std::mem::replace(&mut self.high_watermark, to);
            self.effects.push(Effect::HighWatermarkAdvanced { from, to });
            self.publish_stable_offset();
        }
    }

    fn publish_stable_offset(&mut self) {
        let to = self.stable_offset();
        if to > self.last_stable_offset {
            let from = std::mem::replace(&mut self.last_stable_offset, to);
            self.effects.push(Effect::LastStableOffsetAdvanced { from, to });
        }
        self.check_order();
    }

    pub(super) fn stable_offset(&self) -> Offset {
        let unstable = self.log.first_unstable_offset.unwrap_or(self.high_watermark);
        unstable.clamp(self.log.log_start_offset, self.high_watermark)
    }

    pub(super) fn check_order(&self) {
        assert!(
            self.log.log_start_offset <= self.last_stable_offset
                && self.last_stable_offset <= self.high_watermark
                && self.high_watermark <= self.log.log_end_offset,
            "start <= LSO <= HW <= LEO: {self:?}"
        );
    }
}

#[cfg(test)]
mod tests;
