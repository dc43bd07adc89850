//! One partition's replication state: LEO, HW, LSO, leader epoch and ISR, as one machine.
//!
//! Transitions:
//!
//! ```text
//! Offline ──become_leader(epoch)──▶ Leader ──become_follower(epoch)──▶ Follower ──become_leader──▶ …
//! Leader:   appended            LEO rises; HW = min LEO over the maximal ISR; LSO follows
//!           follower_fetched    that replica's LEO; perhaps an ISR growth is proposed
//!           tick                perhaps an ISR shrink is proposed
//!           isr_confirmed       the proposal is the ISR; HW looks again
//!           isr_refused         the old ISR stands
//! Follower: appended            LEO rises; leader_told  HW = min(leader's HW, LEO)
//!           truncated           LEO falls to the last common epoch's end (see `epochs`)
//! any:      log_start_moved, unstable_changed
//! ```
//!
//! Inputs change the state at once and leave effects, which the owner drains and performs before the next input.
//! Always asserted: start ≤ LSO ≤ HW ≤ LEO; a leader's HW and the epoch never go back.
//! A single node is the case of one replica: its ISR is itself, so HW = LEO after every append.
//! Sources: KIP-101, KIP-320, KIP-497, KIP-966; Partition.scala, UnifiedLog.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::Effect;
use super::isr::{IsrChange, IsrState};
use crate::ids::{LeaderEpoch, NodeId, Offset};

/// What the replica does for this partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing is known yet: neither reads nor writes are served.
    Offline,
    /// Takes writes, decides what is committed.
    Leader,
    /// Copies this leader's log.
    Follower(NodeId),
}

/// How many replicas an answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Nothing: no answer at all.
    None,
    /// The leader's log (page cache, not disk).
    Leader,
    /// Every replica of the ISR, of which there are at least `min.insync.replicas`.
    All,
}

/// Rules that the topic or the node sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRules {
    /// `min.insync.replicas`; at most the number of replicas counts.
    pub min_insync_replicas: usize,
    /// `replica.lag.time.max.ms`: longer behind means out of the ISR.
    pub replica_lag_time_max_ms: i64,
}

/// Who replicates a partition, as the coordinator (metadata log or ZooKeeper) says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Every replica, the local one included.
    pub replicas: BTreeSet<NodeId>,
    /// The committed ISR.
    pub isr: BTreeSet<NodeId>,
    /// Version of this state; an ISR change names the one it is based on (KIP-497).
    pub partition_epoch: i32,
}

/// Where the local log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// Earliest readable offset: inclusive.
    pub log_start_offset: Offset,
    /// LEO: next offset to write, exclusive.
    pub log_end_offset: Offset,
    /// First offset of the oldest transaction that is open, or whose marker is not yet below the HW.
    pub first_unstable_offset: Option<Offset>,
}

/// Why a request is refused; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicationError {
    /// This replica does not lead the partition.
    #[error("node {local} does not lead this partition")]
    NotLeader {
        /// The replica asked.
        local: NodeId,
    },
    /// The request comes from before a leader change.
    #[error("leader epoch {given} is older than {current}")]
    FencedLeaderEpoch {
        /// What the request said.
        given: LeaderEpoch,
        /// What this replica knows.
        current: LeaderEpoch,
    },
    /// The request knows of a leader change that this replica has not heard of.
    #[error("leader epoch {given} is newer than {current}")]
    UnknownLeaderEpoch {
        /// What the request said.
        given: LeaderEpoch,
        /// What this replica knows.
        current: LeaderEpoch,
    },
    /// `acks=all` and the ISR is smaller than `min.insync.replicas`.
    #[error("{in_sync} replicas are in sync, {required} are required")]
    NotEnoughReplicas {
        /// Size of the committed ISR.
        in_sync: usize,
        /// `min.insync.replicas`, at most the number of replicas.
        required: usize,
    },
    /// The node is no replica of this partition.
    #[error("node {0} is no replica of this partition")]
    UnknownReplica(NodeId),
}

/// Where an `acks=all` write stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckState {
    /// The HW has not passed it yet.
    Waiting,
    /// Every replica of a large enough ISR has it.
    Acknowledged,
    /// It is committed, but the ISR fell below the minimum after the append: the client must not rely on it.
    NotEnoughReplicasAfterAppend,
    /// The leader changed: whether it survives is the new leader's to say.
    NotLeader,
}

/// What the leader knows of another replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replica {
    log_end_offset: Offset,
    /// The last time its LEO reached what was the leader's LEO at that moment, or at its previous fetch.
    caught_up_ms: i64,
    /// When it last fetched, and the leader's LEO then: a fetch up to that LEO proves it was caught up at that time.
    last_fetch: Option<(i64, Offset)>,
}

/// The machine. See the module's head for its transitions.
#[derive(Clone, Debug)]
pub struct Partition {
    local: NodeId,
    rules: PartitionRules,
    role: Role,
    leader_epoch: LeaderEpoch,
    /// LEO when this leader's epoch began: a replica below it may still have to truncate and is not in sync.
    epoch_start_offset: Offset,
    log: LogPosition,
    high_watermark: Offset,
    last_stable_offset: Offset,
    replicas: BTreeMap<NodeId, Replica>,
    isr: IsrState,
    effects: Vec<Effect>,
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
            role: Role::Offline,
            leader_epoch: LeaderEpoch::UNKNOWN,
            epoch_start_offset: log.log_end_offset,
            log,
            high_watermark,
            last_stable_offset: log.log_start_offset,
            replicas: BTreeMap::new(),
            isr: IsrState::default(),
            effects: Vec::new(),
        };
        partition.last_stable_offset = partition.stable_offset();
        partition
    }

    /// Begins to lead with `epoch`, which must be newer than any seen; an older one changes nothing.
    ///
    /// Followers start as caught up now, so that an election does not throw healthy ones out (case B72), but with an
    /// unknown LEO: only a fetch in this epoch counts towards the HW.
    pub fn become_leader(
        &mut self,
        epoch: LeaderEpoch,
        assignment: Assignment,
        now_ms: i64,
    ) -> Result<(), ReplicationError> {
        self.enter_epoch(epoch)?;
        assert!(assignment.isr.contains(&self.local), "a leader is in its ISR: {assignment:?}");
        self.role = Role::Leader;
        self.epoch_start_offset = self.log.log_end_offset;
        let fresh = Replica {
            log_end_offset: self.log.log_start_offset,
            caught_up_ms: now_ms,
            last_fetch: None,
        };
        let others = assignment.replicas.iter().filter(|&&node| node != self.local);
        self.replicas = others.map(|&node| (node, fresh)).collect();
        self.isr = IsrState::committed(assignment.isr, assignment.partition_epoch);
        self.effects.push(Effect::LeaderElected { epoch, start_offset: self.epoch_start_offset });
        self.advance_high_watermark();
        Ok(())
    }

    /// Begins to follow `leader` with `epoch`; an older epoch changes nothing.
    pub fn become_follower(
        &mut self,
        epoch: LeaderEpoch,
        leader: NodeId,
    ) -> Result<(), ReplicationError> {
        self.enter_epoch(epoch)?;
        self.role = Role::Follower(leader);
        self.replicas.clear();
        self.isr = IsrState::default();
        Ok(())
    }

    fn enter_epoch(&mut self, epoch: LeaderEpoch) -> Result<(), ReplicationError> {
        if epoch <= self.leader_epoch {
            let current = self.leader_epoch;
            return Err(ReplicationError::FencedLeaderEpoch { given: epoch, current });
        }
        self.leader_epoch = epoch;
        Ok(())
    }

    /// Whether a write with `acks` may be appended now.
    ///
    /// Checked before the append, so that a refused write leaves no record (case B65).
    pub fn admit(&self, acks: Acks) -> Result<(), ReplicationError> {
        self.check_leader()?;
        let (in_sync, required) = (self.isr.committed_len(), self.required_replicas());
        if acks == Acks::All && in_sync < required {
            return Err(ReplicationError::NotEnoughReplicas { in_sync, required });
        }
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
        match self.role {
            Role::Leader => Ok(()),
            Role::Follower(_) | Role::Offline => {
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
        if self.role == Role::Leader {
            self.advance_high_watermark();
        }
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

    /// The local log was cut to `log_end_offset` (exclusive); only a follower does that.
    pub fn truncated(&mut self, log_end_offset: Offset, first_unstable_offset: Option<Offset>) {
        assert!(self.role != Role::Leader, "a leader never truncates");
        assert!(log_end_offset <= self.log.log_end_offset, "a truncation never lengthens");
        self.log.log_end_offset = log_end_offset;
        self.log.log_start_offset = self.log.log_start_offset.min(log_end_offset);
        self.log.first_unstable_offset = first_unstable_offset;
        self.high_watermark = self.high_watermark.min(log_end_offset);
        self.last_stable_offset = self.stable_offset();
        self.effects.push(Effect::Truncated { log_end_offset });
        self.check_order();
    }

    /// The leader's HW, as told in a fetch answer: a follower's own is the smaller of that and its LEO.
    pub fn leader_told(&mut self, leader_high_watermark: Offset) {
        if let Role::Follower(_) = self.role {
            let to = leader_high_watermark.min(self.log.log_end_offset).max(self.high_watermark);
            self.raise_high_watermark(to);
        }
    }

    /// Follower `node` asks for `fetch_offset` in `epoch`: everything below it is in that follower's log.
    ///
    /// An offset beyond the leader's LEO is no claim to believe (case B71): the follower must truncate first.
    pub fn follower_fetched(
        &mut self,
        node: NodeId,
        epoch: LeaderEpoch,
        fetch_offset: Offset,
        now_ms: i64,
    ) -> Result<(), ReplicationError> {
        self.check_leader()?;
        self.check_epoch(Some(epoch))?;
        let log_end_offset = self.log.log_end_offset;
        let replica = self.replicas.get_mut(&node).ok_or(ReplicationError::UnknownReplica(node))?;
        if fetch_offset > log_end_offset {
            return Ok(());
        }
        if fetch_offset >= log_end_offset {
            replica.caught_up_ms = replica.caught_up_ms.max(now_ms);
        } else if let Some((fetched_ms, end_then)) = replica.last_fetch
            && fetch_offset >= end_then
        {
            replica.caught_up_ms = replica.caught_up_ms.max(fetched_ms);
        }
        replica.log_end_offset = fetch_offset;
        replica.last_fetch = Some((now_ms, log_end_offset));
        self.propose_growth(node);
        self.advance_high_watermark();
        Ok(())
    }

    /// Looks whether a replica has been behind for longer than `replica.lag.time.max.ms`.
    pub fn tick(&mut self, now_ms: i64) {
        if self.role != Role::Leader || self.isr.pending().is_some() {
            return;
        }
        let lagging: BTreeSet<_> =
            self.isr.committed_ids().filter(|node| self.lags(*node, now_ms)).collect();
        if !lagging.is_empty() {
            let change = IsrChange::Shrink(lagging);
            self.propose(change);
        }
    }

    /// The coordinator wrote the proposed ISR as version `partition_epoch`.
    pub fn isr_confirmed(&mut self, partition_epoch: i32) {
        if self.role == Role::Leader && self.isr.confirm(partition_epoch) {
            self.advance_high_watermark();
        }
    }

    /// The coordinator refused the proposal: the committed ISR stands, a later fetch or tick proposes again.
    pub fn isr_refused(&mut self) {
        self.isr.refuse();
    }

    /// Where a write that ends at `required_offset` (exclusive) and was appended in `epoch` stands.
    #[must_use]
    pub fn ack_state(&self, required_offset: Offset, epoch: LeaderEpoch) -> AckState {
        if self.role != Role::Leader || self.leader_epoch != epoch {
            AckState::NotLeader
        } else if self.high_watermark < required_offset {
            AckState::Waiting
        } else if self.isr.committed_len() < self.required_replicas() {
            AckState::NotEnoughReplicasAfterAppend
        } else {
            AckState::Acknowledged
        }
    }

    /// Takes what the owner has to perform, oldest first.
    pub fn drain_effects(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    /// The rules were changed by a config.
    pub fn set_rules(&mut self, rules: PartitionRules) {
        self.rules = rules;
        self.advance_high_watermark();
    }

    /// What this replica is.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
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

    /// The committed ISR.
    pub fn in_sync_replicas(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.isr.committed_ids()
    }

    /// A minimum above the number of replicas could never be met.
    fn required_replicas(&self) -> usize {
        self.rules.min_insync_replicas.min(self.replicas.len() + 1)
    }

    /// A replica of the ISR that has reached the leader's LEO is never behind, however long ago it fetched.
    fn lags(&self, node: NodeId, now_ms: i64) -> bool {
        self.replicas.get(&node).is_some_and(|replica| {
            replica.log_end_offset < self.log.log_end_offset
                && now_ms.saturating_sub(replica.caught_up_ms) > self.rules.replica_lag_time_max_ms
        })
    }

    /// A follower joins when it has all that is committed and all that earlier leaders left: with less it could be
    /// elected and lose both.
    fn propose_growth(&mut self, node: NodeId) {
        let Some(replica) = self.replicas.get(&node) else { return };
        let reached = replica.log_end_offset >= self.high_watermark
            && replica.log_end_offset >= self.epoch_start_offset;
        if reached && !self.isr.contains(node) && self.isr.pending().is_none() {
            self.propose(IsrChange::Grow(node));
        }
    }

    fn propose(&mut self, change: IsrChange) {
        let (isr, partition_epoch) = self.isr.propose(change);
        self.effects.push(Effect::ProposeIsr {
            isr,
            partition_epoch,
            leader_epoch: self.leader_epoch,
        });
    }

    /// HW = the smallest LEO over the maximal ISR: the committed one and whoever is about to join it. A shrink counts
    /// only once committed, a growth already when proposed, so that no order of coordinator and crash loses an
    /// acknowledged record (KIP-497). Below the minimum nothing new is committed (KIP-966).
    fn advance_high_watermark(&mut self) {
        if self.role != Role::Leader || self.isr.committed_len() < self.required_replicas() {
            return;
        }
        let others = self.isr.maximal_ids().filter_map(|node| self.replicas.get(&node));
        let smallest = others.map(|replica| replica.log_end_offset).min();
        let to = smallest.map_or(self.log.log_end_offset, |o| o.min(self.log.log_end_offset));
        self.raise_high_watermark(to);
    }

    fn raise_high_watermark(&mut self, to: Offset) {
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

    fn stable_offset(&self) -> Offset {
        let unstable = self.log.first_unstable_offset.unwrap_or(self.high_watermark);
        unstable.clamp(self.log.log_start_offset, self.high_watermark)
    }

    fn check_order(&self) {
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
