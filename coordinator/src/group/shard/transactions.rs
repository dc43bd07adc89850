//! Positions in transactions (KIP-98, KIP-447).

use super::kafka::admit_commit;
use super::{Group, GroupShard};
use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{GroupId, OffsetCommit, TxnOffsetCommit};
use crate::group::kafka::offsets;
use crate::group::response::Response;
use crate::shard::{BatchForm, Outcome};
use crate::time::Now;

impl GroupShard {
    pub(super) fn commit_in_transaction(
        &mut self,
        txn: TxnOffsetCommit,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        let TxnOffsetCommit { commit, producer, verified } = txn;
        if commit.group.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        let id = commit.group.clone();
        let admitted = self.with_known_group(&id, now, out, |group, cx| admit(group, &commit, cx));
        match admitted {
            Some(admitted) => admitted?,
            None if commit.generation < 0 => {}
            None => return Err(GroupError::IllegalGeneration),
        }
        let metadata_max = self.config.offset_metadata_max;
        // A position that is refused leaves nothing pending (case B40).
        let (records, topics) = offsets::commit(commit, metadata_max, now.wall_ms);
        if !records.is_empty() {
            out.batch = BatchForm::InTransaction { producer, verified };
            out.records.extend(records);
        }
        Ok(Response::OffsetCommit(topics))
    }

    /// Has the positions forgotten that wait for a transaction, or they would come back: those of
    /// `topic`, or all. They name no topic id, so the name alone says whose they are.
    pub(super) fn forget_pending(
        &self,
        group: &GroupId,
        topic: Option<&str>,
        out: &mut Outcome<Self>,
    ) {
        let waiting = self.pending.of_group(group);
        let waiting = waiting.filter(|(held, _)| topic.is_none_or(|topic| *topic == ***held));
        let gone = waiting.map(|(topic, index)| offsets::tombstone(group, topic, index));
        let new: Vec<_> = gone.filter(|tombstone| !out.records.contains(tombstone)).collect();
        out.records.extend(new);
    }

    /// Topics and partitions of a group whose positions wait for the end of a transaction.
    pub fn unstable_positions<'a>(
        &'a self,
        group: &str,
    ) -> impl Iterator<Item = (&'a std::sync::Arc<str>, i32)> + use<'a> {
        self.pending.of_group(group)
    }
}

/// As for a plain commit, but a producer that names no member may commit for any group, and one
/// that does may while its group is being assigned. Source: `ClassicGroup.validateOffsetCommit`.
fn admit(group: &mut Group, commit: &OffsetCommit, cx: &mut Context<'_>) -> Result<(), GroupError> {
    if group.image.is_rocketmq() || group.has_rocketmq_members() {
        return Err(GroupError::HeldByRocketMq);
    }
    let names_nobody =
        commit.generation < 0 && commit.member.is_empty() && commit.instance.is_none();
    if names_nobody {
        return Ok(());
    }
    match admit_commit(group, commit, cx) {
        Err(GroupError::RebalanceInProgress) => Ok(()),
        Err(GroupError::StaleMemberEpoch) => Err(GroupError::IllegalGeneration),
        admitted => admitted,
    }
}
