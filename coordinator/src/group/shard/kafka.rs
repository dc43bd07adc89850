//! Kafka's requests to a group.

use std::sync::Arc;

use super::{Group, GroupShard, Live};
use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{
    Heartbeat, JoinGroup, LeaveGroup, OffsetCommit, OffsetDelete, OffsetFetch, SyncGroup,
    UnknownGroup,
};
use crate::group::kafka::{consumer, expiry, offsets};
use crate::group::response::{LeftMember, PartitionResult, Response};
use crate::shard::{Outcome, RequestId};
use crate::time::Now;

impl GroupShard {
    pub(super) fn join(
        &mut self,
        request: Option<RequestId>,
        join: JoinGroup,
        now: Now,
    ) -> Outcome<Self> {
        let mut out = Outcome::default();
        // Nobody can be a member without an answer.
        let Some(request) = request else { return out };
        let timeouts = self.config.session_timeout_min_ms..=self.config.session_timeout_max_ms;
        let refusal = if join.group.is_empty() {
            Some(GroupError::InvalidGroupId)
        } else if !timeouts.contains(&join.session_timeout_ms) {
            Some(GroupError::InvalidSessionTimeout)
        } else if !join.member.is_empty() && !self.groups.contains_key(&join.group) {
            Some(GroupError::UnknownMemberId)
        } else {
            None
        };
        let id = join.group.clone();
        self.with_group(&id, now, &mut out, |group, cx| {
            if let Some(error) = refusal {
                cx.refuse_join(request, join.member, error);
            } else if group.has_rocketmq_members() {
                cx.refuse_join(request, join.member, GroupError::HeldByRocketMq);
            } else if group.has_consumers() {
                let response = group.join_consumers(&join, cx);
                cx.respond(Some(request), Ok(Response::JoinGroup(response)));
            } else {
                group.classic(cx).join(request, join, cx);
                Self::take_from_rocketmq(group, cx);
            }
        });
        out
    }

    pub(super) fn sync(
        &mut self,
        request: Option<RequestId>,
        sync: SyncGroup,
        now: Now,
    ) -> Outcome<Self> {
        let mut out = Outcome::default();
        let Some(request) = request else { return out };
        if sync.group.is_empty() {
            out.respond(Some(request), Err(GroupError::InvalidGroupId));
            return out;
        }
        let id = sync.group.clone();
        let taken = self.with_known_group(&id, now, &mut out, |group, cx| match &mut group.live {
            Live::Classic(classic) => {
                classic.sync(request, sync, cx);
                Self::take_from_rocketmq(group, cx);
                true
            }
            Live::Consumer(_) => {
                let answer = group.sync_consumers(&sync, cx).map(Response::SyncGroup);
                cx.respond(Some(request), answer);
                true
            }
            Live::Idle | Live::RocketMq(_) => false,
        });
        if taken != Some(true) {
            out.respond(Some(request), Err(GroupError::UnknownMemberId));
        }
        out
    }

    pub(super) fn heartbeat(
        &mut self,
        heartbeat: Heartbeat,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        if heartbeat.group.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        let id = heartbeat.group.clone();
        self.with_known_group(&id, now, out, |group, cx| match &mut group.live {
            Live::Classic(classic) => {
                let Heartbeat { member, instance, generation, .. } = &heartbeat;
                classic.heartbeat(member, instance.as_ref(), *generation, cx)
            }
            Live::Consumer(_) => group.classic_heartbeat(&heartbeat, cx),
            Live::Idle | Live::RocketMq(_) => Err(GroupError::UnknownMemberId),
        })
        .unwrap_or(Err(GroupError::UnknownMemberId))
    }

    pub(super) fn leave(
        &mut self,
        leave: LeaveGroup,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        if leave.group.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        let LeaveGroup { group: id, members } = leave;
        if self.groups.get(&id).is_some_and(Group::has_consumers) {
            let left = self.with_group(&id, now, out, |group, cx| group.classic_leave(members, cx));
            return Ok(Response::LeaveGroup(left));
        }
        let is_live =
            self.groups.get(&id).is_some_and(|group| matches!(group.live, Live::Classic(_)));
        if !is_live {
            let unknown = members.into_iter().map(|leaving| LeftMember {
                member: leaving.member,
                instance: leaving.instance,
                error: Some(GroupError::UnknownMemberId),
            });
            return Ok(Response::LeaveGroup(unknown.collect()));
        }
        let left = self.with_group(&id, now, out, |group, cx| {
            let left = group.classic(cx).leave(members, cx);
            Self::take_from_rocketmq(group, cx);
            left
        });
        Ok(Response::LeaveGroup(left))
    }

    pub(super) fn commit(
        &mut self,
        commit: OffsetCommit,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        let id = commit.group.clone();
        let admitted = self
            .with_known_group(&id, now, out, |group, cx| admit_commit(group, &commit, cx))
            .unwrap_or_else(|| admit_commit_to_missing(&commit));
        admitted?;
        let metadata_max = self.config.offset_metadata_max;
        let (records, topics) = offsets::commit(commit, metadata_max, now.wall_ms);
        out.records.extend(records);
        Ok(Response::OffsetCommit(topics))
    }

    pub(super) fn fetch(&self, fetch: OffsetFetch) -> Result<Response, GroupError> {
        let image = self.image(&fetch.group);
        if let Some(consumers) = image.and_then(|image| image.consumer.as_ref()) {
            consumer::check_fetch(consumers, fetch.member.as_ref())?;
        }
        Ok(Response::OffsetFetch(offsets::fetch(image, fetch.topics)))
    }

    pub(super) fn delete_offsets(
        &mut self,
        delete: OffsetDelete,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        let group = self.groups.get(&delete.group).ok_or(GroupError::GroupIdNotFound)?;
        let wants = match &group.live {
            Live::RocketMq(members) if members.has_members() => {
                return Err(GroupError::NonEmptyGroup);
            }
            // Ids that were given out hold no position.
            Live::Classic(classic) if !classic.is_empty() => {
                if classic.protocol_type().map(|text| &**text) != Some("consumer") {
                    return Err(GroupError::NonEmptyGroup);
                }
                // Before its first generation a group of consumers may want any topic.
                |image: &_, topic: &_| expiry::is_subscribed_or_new(image, topic)
            }
            _ => |image: &_, topic: &_| expiry::is_subscribed(image, topic),
        };
        let mut answer = Vec::with_capacity(delete.topics.len());
        for (topic, partitions) in delete.topics {
            let error = wants(&group.image, &topic).then_some(GroupError::GroupSubscribedToTopic);
            for &partition in &partitions {
                let is_there = group.image.offset(&topic, partition).is_some()
                    || self.pending.has(&delete.group, &topic, partition);
                if error.is_none() && is_there {
                    out.records.push(offsets::tombstone(&delete.group, &topic, partition));
                }
            }
            let result = |partition| PartitionResult { partition, error };
            answer.push((topic, partitions.into_iter().map(result).collect()));
        }
        Ok(Response::OffsetDelete(answer))
    }
}

pub(super) fn admit_commit(
    group: &mut Group,
    commit: &OffsetCommit,
    cx: &mut Context<'_>,
) -> Result<(), GroupError> {
    if let Some(image) = &group.image.consumer {
        let topic_id = |name: &str| cx.known.metadata.topic(name).map(|topic| topic.id);
        return consumer::check_commit(image, commit, topic_id);
    }
    match &mut group.live {
        Live::Classic(classic) => {
            let instance: Option<&Arc<str>> = commit.instance.as_ref();
            classic.admit_commit(&commit.member, instance, commit.generation, cx)
        }
        // As a classic group with members refuses whoever is none of them.
        Live::RocketMq(members) if members.has_members() => Err(GroupError::UnknownMemberId),
        Live::RocketMq(_) | Live::Consumer(_) | Live::Idle if commit.generation < 0 => Ok(()),
        Live::RocketMq(_) | Live::Consumer(_) | Live::Idle => Err(GroupError::UnknownMemberId),
    }
}

/// A consumer that manages its partitions itself founds its group by its first commit.
fn admit_commit_to_missing(commit: &OffsetCommit) -> Result<(), GroupError> {
    match commit.unknown_group {
        _ if commit.generation < 0 => Ok(()),
        UnknownGroup::IllegalGeneration => Err(GroupError::IllegalGeneration),
        UnknownGroup::NotFound => Err(GroupError::GroupIdNotFound),
    }
}
