//! What Kafka's requests ask of a group, one function each.
//!
//! Errors, unless more is said, are the coordinator's refusals of the whole request, and
//! `NotCoordinator` before there is a coordinator: the client looks for it, which makes one.

use std::collections::BTreeSet;
use std::sync::Arc;

use duolog_coordinator::error::{GroupError, Refusal};
use duolog_coordinator::group::event::{
    ConsumerGroupHeartbeat, DeleteGroup, DescribeGroup, Event, GroupId, Heartbeat, JOIN_EPOCH,
    JoinGroup, LeaveGroup, ListGroups, OffsetCommit, OffsetDelete, OffsetFetch, SyncGroup,
    TxnOffsetCommit,
};
use duolog_coordinator::group::response::{
    CommittedTopic, DeletedOffsets, DescribedConsumerGroup, DescribedGroup, FetchedTopic,
    HeartbeatResponse, JoinGroupResponse, LeftMember, ListedGroup, Response, SyncGroupResponse,
};
use duolog_coordinator::shard::TransactionEnd;
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::Offset;

use super::{Coordinators, answered};

/// The value of an answer of the kind that its request has.
macro_rules! answer_of {
    ($answer:expr, $kind:pat => $value:expr) => {
        match $answer? {
            $kind => Ok($value),
            other => unreachable!("a coordinator answers in kind, not with {other:?}"),
        }
    };
}

impl Coordinators {
    /// JoinGroup; answered when the rebalance is through. Gate `group.join`.
    pub async fn join_group(&self, join: JoinGroup) -> Result<JoinGroupResponse, GroupError> {
        self.pass(GatePoint::GroupJoin, of_client(&join.client_id)).await?;
        let group = join.group.clone();
        let answer = self.ask(&group, Event::JoinGroup(Box::new(join))).await;
        answer_of!(answer, Response::JoinGroup(joined) => joined)
    }

    /// SyncGroup; answered when the leader has assigned. Gate `group.sync`.
    pub async fn sync_group(
        &self,
        client: &str,
        sync: SyncGroup,
    ) -> Result<SyncGroupResponse, GroupError> {
        self.pass(GatePoint::GroupSync, of_client(client)).await?;
        let group = sync.group.clone();
        let answer = self.ask(&group, Event::SyncGroup(sync)).await;
        answer_of!(answer, Response::SyncGroup(synced) => synced)
    }

    /// Heartbeat. Gate `group.heartbeat`.
    pub async fn heartbeat(&self, client: &str, heartbeat: Heartbeat) -> Result<(), GroupError> {
        self.pass(GatePoint::GroupHeartbeat, of_client(client)).await?;
        let group = heartbeat.group.clone();
        let answer = self.ask(&group, Event::Heartbeat(heartbeat)).await;
        answer_of!(answer, Response::Heartbeat => ())
    }

    /// ConsumerGroupHeartbeat. Gates `group.join` for a member that joins, else `group.heartbeat`.
    pub async fn consumer_group_heartbeat(
        &self,
        heartbeat: ConsumerGroupHeartbeat,
    ) -> Result<HeartbeatResponse, Refusal> {
        let point = if heartbeat.epoch == JOIN_EPOCH {
            GatePoint::GroupJoin
        } else {
            GatePoint::GroupHeartbeat
        };
        self.pass(point, of_client(&heartbeat.client_id)).await?;
        let group = heartbeat.group.clone();
        let answer = self.ask(&group, Event::ConsumerGroupHeartbeat(Box::new(heartbeat))).await;
        let answer: Result<_, GroupError> =
            answer_of!(answer, Response::ConsumerGroupHeartbeat(answer) => answer);
        answer?
    }

    /// ConsumerGroupDescribe, one of its groups.
    pub async fn describe_consumer_group(
        &self,
        group: GroupId,
    ) -> Result<DescribedConsumerGroup, Refusal> {
        let answer = self.ask(&group, Event::DescribeConsumerGroup(group.clone())).await;
        let answer: Result<_, GroupError> =
            answer_of!(answer, Response::DescribeConsumerGroup(answer) => answer);
        answer?
    }

    /// OffsetDelete: topics and partitions in the order asked.
    pub async fn delete_offsets(&self, delete: OffsetDelete) -> Result<DeletedOffsets, GroupError> {
        let group = delete.group.clone();
        let answer = self.ask(&group, Event::OffsetDelete(delete)).await;
        answer_of!(answer, Response::OffsetDelete(deleted) => deleted)
    }

    /// LeaveGroup: one answer for each member, in order.
    pub async fn leave_group(&self, leave: LeaveGroup) -> Result<Vec<LeftMember>, GroupError> {
        let group = leave.group.clone();
        let answer = self.ask(&group, Event::LeaveGroup(leave)).await;
        answer_of!(answer, Response::LeaveGroup(left) => left)
    }

    /// OffsetCommit: topics and partitions in the order asked. Gate `offset.commit.before`, at each
    /// partition.
    pub async fn commit_offsets(
        &self,
        client: &str,
        commit: OffsetCommit,
    ) -> Result<Vec<CommittedTopic>, GroupError> {
        if !self.instruments.gates.is_idle() {
            for topic in &commit.topics {
                for partition in &topic.partitions {
                    let subject = GateSubject {
                        topic: Some(&topic.topic),
                        partition: Some(partition.partition),
                        offset: Some(Offset(partition.offset)),
                        client: Some(client),
                    };
                    self.pass(GatePoint::OffsetCommitBefore, subject).await?;
                }
            }
        }
        let group = commit.group.clone();
        let answer = self.ask(&group, Event::OffsetCommit(commit)).await;
        answer_of!(answer, Response::OffsetCommit(committed) => committed)
    }

    /// TxnOffsetCommit: as [`Self::commit_offsets`], once the transaction commits.
    pub async fn commit_in_transaction(
        &self,
        txn: TxnOffsetCommit,
    ) -> Result<Vec<CommittedTopic>, GroupError> {
        let group = txn.commit.group.clone();
        let answer = self.ask(&group, Event::TxnOffsetCommit(txn)).await;
        answer_of!(answer, Response::OffsetCommit(committed) => committed)
    }

    /// Writes the marker of a transaction into one partition of `__consumer_offsets`; its positions
    /// there count, or are forgotten, from then on.
    pub async fn end_transaction(
        &self,
        partition: i32,
        end: TransactionEnd,
    ) -> Result<(), GroupError> {
        let shard = self.groups.shard_at(partition).ok_or(GroupError::NotCoordinator)?;
        let answer = answered(shard.submit(Event::EndTransaction(end))).await;
        answer_of!(answer, Response::Done => ())
    }

    /// Topics and partitions of a group whose positions wait for the end of a transaction
    /// (KIP-447); `None` before its coordinator has read its log.
    pub fn unstable_positions(&self, group: &str) -> Option<BTreeSet<(Arc<str>, i32)>> {
        self.shard(group).ok()?.read(|groups| {
            let positions = groups.unstable_positions(group);
            positions.map(|(topic, index)| (topic.clone(), index)).collect()
        })
    }

    /// OffsetFetch of one group: in the order asked, or all by name.
    pub async fn fetch_offsets(&self, fetch: OffsetFetch) -> Result<Vec<FetchedTopic>, GroupError> {
        let group = fetch.group.clone();
        let answer = self.ask(&group, Event::OffsetFetch(fetch)).await;
        answer_of!(answer, Response::OffsetFetch(fetched) => fetched)
    }

    /// ListGroups: the groups of all coordinators, by name.
    ///
    /// Errors: one of them is not ready. A list that lacks some groups would pass for the whole.
    pub async fn list_groups(&self, list: ListGroups) -> Result<Vec<ListedGroup>, GroupError> {
        let mut groups = Vec::new();
        for answer in self.ask_all(&Event::ListGroups(list)).await {
            let part: Result<Vec<_>, GroupError> =
                answer_of!(answer, Response::ListGroups(listed) => listed);
            groups.extend(part?);
        }
        groups.sort_by(|a, b| a.group.cmp(&b.group));
        Ok(groups)
    }

    /// DescribeGroups, one of its groups.
    pub async fn describe_group(
        &self,
        describe: DescribeGroup,
    ) -> Result<DescribedGroup, GroupError> {
        let group = describe.group.clone();
        let answer = self.ask(&group, Event::DescribeGroup(describe)).await;
        answer_of!(answer, Response::DescribeGroup(described) => described)
    }

    /// DeleteGroups, one of its groups.
    pub async fn delete_group(&self, delete: DeleteGroup) -> Result<(), GroupError> {
        let group = delete.group.clone();
        let answer = self.ask(&group, Event::DeleteGroup(delete)).await;
        answer_of!(answer, Response::DeleteGroup => ())
    }
}

fn of_client(client: &str) -> GateSubject<'_> {
    GateSubject { client: Some(client), ..GateSubject::default() }
}
