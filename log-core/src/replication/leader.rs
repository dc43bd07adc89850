//! The leader's part: who has what, and hence what is committed.
//!
//! Three rules carry everything else.
//!
//! 1. HW = the smallest LEO over the maximal ISR. A shrink counts only once the coordinator wrote it, a growth already
//!    when proposed; then no order of coordinator, answer and crash elects a replica without a committed record
//!    (KIP-497).
//! 2. Below `min.insync.replicas` nothing new is committed, not even for `acks=1`. So whoever was in the last ISR of
//!    that size still has all that is committed, and may be elected (KIP-966).
//! 3. A follower's claim counts only if it was made in this leader's epoch, by the newest run of that node, about an
//!    offset that the leader has, in an epoch that the leader places there (KIP-320, KIP-595, KIP-903; case B71).
//!
//! Source: Partition.scala, Replica.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::{Effect, IsrProposal};
use super::epochs::{EpochEnd, EpochEntry, LeaderEpochs};
use super::isr::IsrState;
use super::partition::{Partition, State};
use super::terms::{
    AckState, Acks, Assignment, EpochQuestion, FetchAnswer, FetchQuestion, LogPosition,
    ReplicationError,
};
use crate::ids::{BrokerEpoch, LeaderEpoch, NodeId, Offset};

/// What a leader keeps beside its log.
#[derive(Clone, Debug)]
pub(super) struct Leading {
    /// LEO when this leader's epoch began: a replica below it may still have to truncate and is not in sync.
    epoch_start_offset: Offset,
    followers: BTreeMap<NodeId, Follower>,
    isr: IsrState,
    /// What the clock said when it was looked at last.
    looked_ms: i64,
}

/// What the leader knows of another replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Follower {
    /// Everything below is in its log, as it said in this epoch; the log start while it has said nothing.
    log_end_offset: Offset,
    /// The last time its LEO reached what was the leader's LEO at that moment, or at its previous fetch; `None` for one
    /// outside the ISR that never did.
    caught_up_ms: Option<i64>,
    /// When it last fetched, and the leader's LEO then: a fetch up to that LEO proves it was caught up at that time.
    last_fetch: Option<(i64, Offset)>,
    /// The run of its process that fetched last.
    broker_epoch: BrokerEpoch,
}

impl Follower {
    const fn unheard(log_start_offset: Offset, caught_up_ms: Option<i64>) -> Self {
        let broker_epoch = BrokerEpoch::UNKNOWN;
        Self { log_end_offset: log_start_offset, caught_up_ms, last_fetch: None, broker_epoch }
    }

    fn reached(&mut self, fetch_offset: Offset, leader_end: Offset, now_ms: i64) {
        let proven_ms = match self.last_fetch {
            _ if fetch_offset >= leader_end => Some(now_ms),
            Some((fetched_ms, end_then)) if fetch_offset >= end_then => Some(fetched_ms),
            _ => None,
        };
        self.caught_up_ms = self.caught_up_ms.max(proven_ms);
        self.log_end_offset = fetch_offset;
        self.last_fetch = Some((now_ms, leader_end));
    }

    fn was_caught_up_within(&self, lag_time_max_ms: i64, now_ms: i64) -> bool {
        self.caught_up_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) <= lag_time_max_ms)
    }
}

impl Leading {
    pub(super) fn isr(&self) -> &IsrState {
        &self.isr
    }

    /// A minimum above the number of replicas could never be met.
    fn required_replicas(&self, min_insync_replicas: usize) -> usize {
        min_insync_replicas.min(self.followers.len() + 1)
    }

    /// The smallest LEO over the maximal ISR. A member that is no replica here (yet) holds everything back.
    fn smallest_log_end(&self, local: NodeId, own_end: Offset, log_start: Offset) -> Offset {
        let others = self.isr.maximal_ids().filter(|node| *node != local);
        let ends =
            others.map(|node| self.followers.get(&node).map_or(log_start, |f| f.log_end_offset));
        ends.min().map_or(own_end, |end| end.min(own_end))
    }

    fn broker_epochs(&self, isr: &BTreeSet<NodeId>) -> BTreeMap<NodeId, BrokerEpoch> {
        let epoch =
            |node| self.followers.get(node).map_or(BrokerEpoch::UNKNOWN, |f| f.broker_epoch);
        isr.iter().map(|node| (*node, epoch(node))).collect()
    }
}

impl Partition {
    /// Begins to lead with `epoch`, which must be newer than any seen; an older one changes nothing.
    ///
    /// Followers in the ISR start as caught up now, so that an election does not throw healthy ones out (case B72), but
    /// with an unknown LEO: only a fetch in this epoch counts towards the HW.
    pub fn become_leader(
        &mut self,
        epoch: LeaderEpoch,
        assignment: Assignment,
        now_ms: i64,
    ) -> Result<(), ReplicationError> {
        self.enter_epoch(epoch)?;
        self.rules.min_insync_replicas = assignment.min_insync_replicas;
        assert!(assignment.isr.contains(&self.local), "a leader is in its ISR: {assignment:?}");
        let epoch_start_offset = self.log.log_end_offset;
        let others = assignment.replicas.iter().filter(|&&node| node != self.local);
        let unheard = |&node| {
            let caught_up_ms = assignment.isr.contains(&node).then_some(now_ms);
            (node, Follower::unheard(self.log.log_start_offset, caught_up_ms))
        };
        self.state = State::Leader(Leading {
            epoch_start_offset,
            followers: others.map(unheard).collect(),
            isr: IsrState::committed(assignment.isr, assignment.partition_epoch),
            looked_ms: now_ms,
        });
        self.effects.push(Effect::LeaderElected { epoch, start_offset: epoch_start_offset });
        self.advance_high_watermark();
        Ok(())
    }

    /// The LEO when this leader's epoch began; `None` of a replica that does not lead.
    #[must_use]
    pub fn epoch_start_offset(&self) -> Option<Offset> {
        self.leading().ok().map(|leading| leading.epoch_start_offset)
    }

    /// Whether a write with `acks` may be appended now.
    ///
    /// Checked before the append, so that a refused write leaves no record (case B65).
    pub fn admit(&self, acks: Acks) -> Result<(), ReplicationError> {
        let leading = self.leading()?;
        let in_sync = leading.isr.committed_len();
        let required = leading.required_replicas(self.rules.min_insync_replicas);
        if acks == Acks::All && in_sync < required {
            return Err(ReplicationError::NotEnoughReplicas { in_sync, required });
        }
        Ok(())
    }

    /// Where a write that ends at `required_offset` (exclusive) and was appended in `epoch` stands.
    #[must_use]
    pub fn ack_state(&self, required_offset: Offset, epoch: LeaderEpoch) -> AckState {
        let Ok(leading) = self.leading() else { return AckState::NotLeader };
        let required = leading.required_replicas(self.rules.min_insync_replicas);
        if self.leader_epoch != epoch {
            AckState::NotLeader
        } else if self.high_watermark < required_offset {
            AckState::Waiting
        } else if leading.isr.committed_len() < required {
            AckState::NotEnoughReplicasAfterAppend
        } else {
            AckState::Acknowledged
        }
    }

    /// Answers a follower's fetch; `epochs` are those of the local log.
    ///
    /// Only an answer with records takes the fetch for a claim to have everything below its offset. An offset beyond the
    /// leader's LEO, or one in an epoch that ended earlier here, is none: that follower must cut its log first. After
    /// `Records` the owner reads from the asked offset up to this machine's LEO.
    pub fn answer_fetch(
        &mut self,
        question: &FetchQuestion,
        epochs: &LeaderEpochs,
        now_ms: i64,
    ) -> Result<FetchAnswer, ReplicationError> {
        self.check_question(question)?;
        let (log_start_offset, log_end_offset) =
            (self.log.log_start_offset, self.log.log_end_offset);
        let out_of_range = FetchAnswer::OutOfRange { log_start_offset, log_end_offset };
        let offset = question.fetch_offset;
        if offset < log_start_offset {
            return Ok(out_of_range);
        }
        if let Some(last) = question.last_fetched_epoch {
            // A leader that has written nothing yet begins with its own epoch, as in Kafka's cache (KIP-101; makeLeader).
            let first = epochs.entries().first().map_or(self.leader_epoch, |first| first.epoch);
            if last < first && offset == log_start_offset {
                // All that it has was deleted here, or never was here. Its producers would count what nobody committed,
                // and it would be in sync with other records than were committed below, so it begins anew; Kafka lets it
                // go on (seeds 2 and 95589 of the simulator).
                return Ok(out_of_range);
            }
            match self.end_offset_for(last, epochs)? {
                None => return Ok(out_of_range),
                Some(end) if end.epoch < last || end.end_offset < offset => {
                    return Ok(FetchAnswer::Diverging(end));
                }
                Some(_) => {}
            }
        }
        if offset > log_end_offset {
            return Ok(out_of_range);
        }
        self.follower_reached(question, now_ms);
        Ok(FetchAnswer::Records { high_watermark: self.high_watermark, log_start_offset })
    }

    /// Answers OffsetForLeaderEpoch; `None` for an epoch of which nothing is known here (KIP-101, KIP-279, KIP-320).
    pub fn answer_epoch_end(
        &self,
        question: EpochQuestion,
        epochs: &LeaderEpochs,
    ) -> Result<Option<EpochEnd>, ReplicationError> {
        self.check_leader()?;
        self.check_epoch(Some(question.leader_epoch))?;
        self.end_offset_for(question.epoch, epochs)
    }

    /// Looks whether a replica has been behind for longer than `replica.lag.time.max.ms`; to be called at least twice
    /// in that time.
    pub fn tick(&mut self, now_ms: i64) {
        self.follow_clock(now_ms);
        let Ok(leading) = self.leading() else { return };
        if leading.isr.proposed().is_some() {
            return;
        }
        let (in_sync, lagging): (BTreeSet<_>, BTreeSet<_>) =
            leading.isr.committed_ids().partition(|node| !self.lags(leading, *node, now_ms));
        if !lagging.is_empty() {
            self.propose(in_sync);
        }
    }

    /// The coordinator holds `isr` as version `partition_epoch` for this leader epoch, and nothing else is other than
    /// before, as in the answer to a proposal. A version that is not newer changes nothing.
    pub fn isr_committed(
        &mut self,
        epoch: LeaderEpoch,
        isr: &BTreeSet<NodeId>,
        partition_epoch: i32,
    ) {
        let current = self.leader_epoch;
        let State::Leader(leading) = &mut self.state else { return };
        if epoch == current && leading.isr.commit(isr.clone(), partition_epoch) {
            self.effects.push(Effect::IsrChanged { isr: isr.clone(), partition_epoch });
            self.advance_high_watermark();
        }
    }

    /// The coordinator holds another state for this leader epoch: replicas came or left, or the ISR or its minimum is
    /// another one. A version that is not newer changes nothing.
    ///
    /// All of it counts from one moment on. A leader that took a smaller ISR before the greater minimum of the same
    /// version would commit alone, while others may still be elected; one that took a smaller minimum although its epoch
    /// is over would commit what its successor does not have.
    pub fn assignment_committed(&mut self, epoch: LeaderEpoch, assignment: &Assignment) {
        let is_current = epoch == self.leader_epoch;
        let log_start_offset = self.log.log_start_offset;
        let State::Leader(leading) = &mut self.state else { return };
        if !is_current || assignment.partition_epoch <= leading.isr.partition_epoch() {
            return;
        }
        let local = self.local;
        leading.followers.retain(|node, _| assignment.replicas.contains(node));
        for node in assignment.replicas.iter().filter(|&&node| node != local) {
            let unheard = || Follower::unheard(log_start_offset, None);
            leading.followers.entry(*node).or_insert_with(unheard);
        }
        self.rules.min_insync_replicas = assignment.min_insync_replicas;
        self.isr_committed(epoch, &assignment.isr, assignment.partition_epoch);
    }

    /// The coordinator refused the proposal that was based on version `partition_epoch`.
    ///
    /// Asks for the committed set once more: with the version that this gets, what was refused can no longer be written
    /// by a copy of the request that is still on its way. Until then it counts as perhaps written.
    pub fn isr_refused(&mut self, epoch: LeaderEpoch, partition_epoch: i32) {
        let Ok(leading) = self.leading() else { return };
        let is_current = epoch == self.leader_epoch
            && partition_epoch == leading.isr.partition_epoch()
            && leading.isr.proposed().is_some();
        if is_current {
            let committed = leading.isr.committed_ids().collect();
            self.propose(committed);
        }
    }

    /// The proposal that waits for its answer: to be sent again when that takes too long.
    #[must_use]
    pub fn pending_proposal(&self) -> Option<IsrProposal> {
        let leading = self.leading().ok()?;
        Some(IsrProposal {
            leader: self.local,
            leader_epoch: self.leader_epoch,
            partition_epoch: leading.isr.partition_epoch(),
            isr: leading.isr.proposed()?.clone(),
        })
    }

    /// Takes `now_ms` for the present, whatever the clock has said before.
    ///
    /// When it went back, nobody can have caught up later than now: else a dead replica would stay in the ISR until
    /// the clock is where it was. When it stood far before, either it was set or this leader did not run: nobody could
    /// have fetched, so nobody is behind for it.
    fn follow_clock(&mut self, now_ms: i64) {
        let lag_time_max_ms = self.rules.replica_lag_time_max_ms;
        let State::Leader(leading) = &mut self.state else { return };
        let passed_ms = now_ms.saturating_sub(leading.looked_ms);
        leading.looked_ms = now_ms;
        let has_leapt = passed_ms > lag_time_max_ms;
        for follower in leading.followers.values_mut() {
            let caught_up_ms = follower.caught_up_ms;
            follower.caught_up_ms = caught_up_ms.map(|at_ms| match has_leapt {
                true => at_ms.saturating_add(passed_ms).min(now_ms),
                false => at_ms.min(now_ms),
            });
            follower.last_fetch = follower.last_fetch.map(|(at_ms, end)| (at_ms.min(now_ms), end));
        }
    }

    fn check_question(&self, question: &FetchQuestion) -> Result<(), ReplicationError> {
        let leading = self.leading()?;
        self.check_epoch(Some(question.leader_epoch))?;
        let follower = leading.followers.get(&question.replica);
        let follower = follower.ok_or(ReplicationError::UnknownReplica(question.replica))?;
        let (given, current) = (question.broker_epoch, follower.broker_epoch);
        if given < current {
            return Err(ReplicationError::StaleBrokerEpoch { given, current });
        }
        Ok(())
    }

    fn end_offset_for(
        &self,
        epoch: LeaderEpoch,
        epochs: &LeaderEpochs,
    ) -> Result<Option<EpochEnd>, ReplicationError> {
        let start_offset = self.leading()?.epoch_start_offset;
        let current = EpochEntry { epoch: self.leader_epoch, start_offset };
        Ok(epochs.end_offset_for_leader(epoch, current, self.log.log_end_offset))
    }

    fn follower_reached(&mut self, question: &FetchQuestion, now_ms: i64) {
        self.follow_clock(now_ms);
        let State::Leader(leading) = &mut self.state else { return };
        let Some(follower) = leading.followers.get_mut(&question.replica) else { return };
        follower.broker_epoch = question.broker_epoch;
        follower.reached(question.fetch_offset, self.log.log_end_offset, now_ms);
        self.propose_growth(question.replica, now_ms);
        self.advance_high_watermark();
    }

    /// A replica of the ISR that has reached the leader's LEO is never behind, however long ago it fetched.
    fn lags(&self, leading: &Leading, node: NodeId, now_ms: i64) -> bool {
        leading.followers.get(&node).is_some_and(|follower| {
            follower.log_end_offset < self.log.log_end_offset
                && !follower.was_caught_up_within(self.rules.replica_lag_time_max_ms, now_ms)
        })
    }

    /// A follower joins when it has all that is committed and all that earlier leaders left: with less it could be
    /// elected and lose both. And only when it would not be thrown out at the next look (case B72).
    fn propose_growth(&mut self, node: NodeId, now_ms: i64) {
        let Ok(leading) = self.leading() else { return };
        let Some(follower) = leading.followers.get(&node) else { return };
        let joins = follower.log_end_offset >= self.high_watermark
            && follower.log_end_offset >= leading.epoch_start_offset
            && follower.was_caught_up_within(self.rules.replica_lag_time_max_ms, now_ms);
        if joins && !leading.isr.contains(node) && leading.isr.proposed().is_none() {
            let isr = leading.isr.committed_ids().chain([node]).collect();
            self.propose(isr);
        }
    }

    fn propose(&mut self, isr: BTreeSet<NodeId>) {
        let State::Leader(leading) = &mut self.state else { return };
        let isr = leading.broker_epochs(&isr);
        leading.isr.propose(isr);
        if let Some(proposal) = self.pending_proposal() {
            self.effects.push(Effect::ProposeIsr(proposal));
        }
    }

    /// Rules 1 and 2 of the module's head.
    pub(super) fn advance_high_watermark(&mut self) {
        let Ok(leading) = self.leading() else { return };
        if leading.isr.committed_len() < leading.required_replicas(self.rules.min_insync_replicas) {
            return;
        }
        let LogPosition { log_start_offset, log_end_offset, .. } = self.log;
        let to = leading.smallest_log_end(self.local, log_end_offset, log_start_offset);
        self.raise_high_watermark(to);
    }
}

#[cfg(test)]
mod tests;
