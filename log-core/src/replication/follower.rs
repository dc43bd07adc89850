//! The follower's part: copy the leader's log, and first let go of what the leader never had.
//!
//! ```text
//! become_follower ──▶ cut wanted? ──truncated──▶ epochs settled? ──answer──▶ fetching ⟲
//!    OnFetch         no (*)                      yes                         Diverging, OutOfRange ──▶ cut wanted
//!    AskFirst        no (*)                      asks until both agree       OutOfRange ──▶ cut wanted
//!    HighWatermark   to its own HW               yes                         OutOfRange ──▶ cut wanted
//! ```
//!
//! (*) A log that knows no epoch is cut to the HW: nothing better is known of it.
//!
//! A cut to the HW loses what a slow HW does not cover yet, though every replica had it (KIP-101); a cut to the end of
//! the last common epoch keeps all that the leader has. Where the leader lacks whole epochs it names the largest one
//! below, and the cut takes another round (KIP-279, case B63).
//!
//! An answer counts only for the question that would be asked again now: what is late or doubled changes nothing.
//! Source: AbstractFetcherThread, ReplicaFetcherThread.

use super::effect::Effect;
use super::epochs::{EpochEnd, LeaderEpochs};
use super::partition::{Partition, State};
use super::terms::{EpochQuestion, FetchAnswer, FetchQuestion, ReplicationError, TruncationRule};
use crate::ids::{BrokerEpoch, LeaderEpoch, NodeId, Offset};

/// What a follower keeps beside its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Following {
    pub(super) leader: NodeId,
    cut: Option<Cut>,
    /// Whether the end of the last common epoch is still to be asked for.
    epochs: Epochs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Epochs {
    Unsettled,
    Settled,
    /// The leader knows nothing of the epoch of the last record: the fetch will tell where it starts.
    Unplaced,
}

/// What must go from the local log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Everything from here on.
    To(Offset),
    /// Everything; the log goes on here.
    AnewAt(Offset),
}

/// What a follower does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowerStep {
    /// Ask the leader for records.
    Fetch(FetchQuestion),
    /// Ask the leader where an epoch ends.
    AskEpochEnd(EpochQuestion),
    /// Cut the local log to this offset (exclusive), then tell [`Partition::truncated`] where it ends.
    TruncateTo(Offset),
    /// Drop the whole local log and go on at this offset, then tell [`Partition::restarted_at`].
    StartAnewAt(Offset),
}

/// What becomes of the records of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// Append them, tell [`Partition::appended`], then [`Partition::leader_told`].
    Append,
    /// There are none, or they are not for the log as it is now: look at [`Partition::follower_step`].
    Nothing,
}

/// How batches from the leader come into the log; see [`Partition::plan_append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendPlan {
    /// As they are.
    AtLogEnd,
    /// The first one begins below the log's end: the log must be started anew there.
    AfterStartAnewAt(Offset),
}

impl Partition {
    /// Begins to follow `leader` with `epoch`; an older epoch changes nothing. `last_epoch` is that of the last record
    /// of the local log.
    pub fn become_follower(
        &mut self,
        epoch: LeaderEpoch,
        leader: NodeId,
        last_epoch: Option<LeaderEpoch>,
    ) -> Result<(), ReplicationError> {
        self.enter_epoch(epoch)?;
        let cuts_to_high_watermark =
            self.truncation == TruncationRule::HighWatermark || last_epoch.is_none();
        let cut = (cuts_to_high_watermark && self.high_watermark < self.log.log_end_offset)
            .then_some(Cut::To(self.high_watermark));
        let epochs = match self.truncation {
            TruncationRule::AskFirst => Epochs::Unsettled,
            TruncationRule::OnFetch | TruncationRule::HighWatermark => Epochs::Settled,
        };
        self.state = State::Follower(Following { leader, cut, epochs });
        Ok(())
    }

    /// What this follower does next; `None` when it is none. `epochs` are those of the local log, `broker_epoch` that
    /// of this run of the node.
    #[must_use]
    pub fn follower_step(
        &self,
        broker_epoch: BrokerEpoch,
        epochs: &LeaderEpochs,
    ) -> Option<FollowerStep> {
        let State::Follower(following) = &self.state else { return None };
        let last_epoch = epochs.latest().map(|entry| entry.epoch);
        Some(match (following.cut, following.epochs, last_epoch) {
            (Some(Cut::To(offset)), ..) => FollowerStep::TruncateTo(offset),
            (Some(Cut::AnewAt(offset)), ..) => FollowerStep::StartAnewAt(offset),
            (None, Epochs::Unsettled, Some(epoch)) => {
                FollowerStep::AskEpochEnd(EpochQuestion { leader_epoch: self.leader_epoch, epoch })
            }
            (None, ..) => FollowerStep::Fetch(FetchQuestion {
                replica: self.local,
                broker_epoch,
                leader_epoch: self.leader_epoch,
                fetch_offset: self.log.log_end_offset,
                last_fetched_epoch: last_epoch.filter(|_| {
                    self.truncation == TruncationRule::OnFetch
                        || following.epochs == Epochs::Unplaced
                }),
            }),
        })
    }

    /// The leader answered `question`.
    pub fn fetch_answered(
        &mut self,
        question: &FetchQuestion,
        answer: FetchAnswer,
        epochs: &LeaderEpochs,
    ) -> Fetched {
        let next = self.follower_step(question.broker_epoch, epochs);
        if next != Some(FollowerStep::Fetch(*question)) {
            return Fetched::Nothing;
        }
        let cut = match answer {
            FetchAnswer::Records { .. } => return Fetched::Append,
            FetchAnswer::Diverging(end) => self.common_end(end, epochs),
            FetchAnswer::OutOfRange { log_start_offset, log_end_offset } => {
                self.out_of_range(question, log_start_offset, log_end_offset)
            }
        };
        self.want_cut(cut);
        Fetched::Nothing
    }

    /// The leader answered where `question.epoch` ends.
    pub fn epoch_end_answered(
        &mut self,
        question: EpochQuestion,
        end: Option<EpochEnd>,
        epochs: &LeaderEpochs,
    ) {
        let next = self.follower_step(BrokerEpoch::UNKNOWN, epochs);
        if next != Some(FollowerStep::AskEpochEnd(question)) {
            return;
        }
        let State::Follower(following) = &mut self.state else { return };
        let Some(end) = end else {
            // Kafka cuts to the HW here. But the leader may have deleted all of that epoch after an unclean election,
            // and then what is below the HW is not its log either.
            following.epochs = Epochs::Unplaced;
            return;
        };
        if end.epoch == question.epoch {
            // The leader has the epoch of our last record: once cut to its end, the logs are one.
            following.epochs = Epochs::Settled;
        }
        let cut = self.common_end(end, epochs);
        self.want_cut(cut);
    }

    /// How batches that begin at `base_offset` and of which the first ends at `last_offset` (inclusive) come in.
    ///
    /// A leader's log may start inside a batch (DeleteRecords, case B28); a follower that has nothing yet asks for
    /// that start and gets the whole batch. One that has records of its own there has none of the leader's: those all
    /// end where a batch of the leader ends. Source: Partition.appendRecordsToFollowerOrFutureReplica.
    #[must_use]
    pub fn plan_append(&self, base_offset: Offset, last_offset: Offset) -> AppendPlan {
        let end = self.log.log_end_offset;
        if base_offset < end && last_offset >= end {
            AppendPlan::AfterStartAnewAt(base_offset)
        } else {
            AppendPlan::AtLogEnd
        }
    }

    /// The leader's HW and log start, as told in a fetch answer: a follower's HW is the smaller of that and its LEO.
    ///
    /// The log start follows at most to that HW, so that a follower deletes nothing that is not committed; and it
    /// follows first, since what is left of an older epoch below the leader's start was never compared with its log.
    pub fn leader_told(&mut self, leader_high_watermark: Offset, leader_log_start: Offset) {
        let State::Follower(_) = self.state else { return };
        let to = leader_high_watermark.min(self.log.log_end_offset).max(self.high_watermark);
        let start = leader_log_start.min(to);
        if start > self.log.log_start_offset {
            self.effects.push(Effect::RaiseLogStart { to: start });
        }
        self.raise_high_watermark(to);
    }

    /// The local log was cut to `log_end_offset` (exclusive); only a follower does that.
    pub fn truncated(&mut self, log_end_offset: Offset, first_unstable_offset: Option<Offset>) {
        assert!(log_end_offset <= self.log.log_end_offset, "a truncation never lengthens");
        self.log.log_end_offset = log_end_offset;
        self.log.log_start_offset = self.log.log_start_offset.min(log_end_offset);
        self.log.first_unstable_offset = first_unstable_offset;
        self.high_watermark = self.high_watermark.min(log_end_offset);
        self.was_cut(log_end_offset);
    }

    /// The local log was dropped and goes on at `offset`; only a follower does that.
    pub fn restarted_at(&mut self, offset: Offset) {
        self.log.log_start_offset = offset;
        self.log.log_end_offset = offset;
        self.log.first_unstable_offset = None;
        self.high_watermark = offset;
        self.was_cut(offset);
    }

    fn was_cut(&mut self, log_end_offset: Offset) {
        assert!(!matches!(self.state, State::Leader(_)), "a leader never truncates");
        if let State::Follower(following) = &mut self.state {
            following.cut = None;
        }
        self.last_stable_offset = self.stable_offset();
        self.effects.push(Effect::Truncated { log_end_offset });
        self.check_order();
    }

    fn want_cut(&mut self, cut: Cut) {
        let log_end_offset = self.log.log_end_offset;
        if let State::Follower(following) = &mut self.state
            && cut != Cut::To(log_end_offset)
        {
            following.cut = Some(cut);
        }
    }

    /// Where the logs agree, by the leader's answer for the largest epoch that it has, not above the one asked for.
    /// Source: AbstractFetcherThread.getOffsetTruncationState.
    fn common_end(&self, leader: EpochEnd, epochs: &LeaderEpochs) -> Cut {
        let log_end_offset = self.log.log_end_offset;
        match epochs.end_offset_for(leader.epoch, log_end_offset) {
            Some(own) if own.epoch == leader.epoch => {
                Cut::To(own.end_offset.min(leader.end_offset))
            }
            // Unknown here: go back to the largest one below it, and ask again.
            Some(own) => Cut::To(own.end_offset),
            None if leader.end_offset < log_end_offset => Cut::To(leader.end_offset),
            // All that is here is of epochs that the leader never had.
            None => Cut::AnewAt(self.log.log_start_offset),
        }
    }

    fn out_of_range(&self, question: &FetchQuestion, start: Offset, end: Offset) -> Cut {
        let offset = question.fetch_offset;
        if offset < start {
            // The leader has deleted what would come next.
            Cut::AnewAt(start)
        } else if offset > end {
            // The leader's log is shorter: it was elected without being in sync.
            Cut::To(end)
        } else if question.last_fetched_epoch.is_some() {
            // In range, but in an epoch from before all that the leader still knows.
            Cut::AnewAt(start)
        } else {
            Cut::To(offset)
        }
    }
}

#[cfg(test)]
mod tests;
