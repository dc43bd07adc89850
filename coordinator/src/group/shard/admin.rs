//! What tools ask of all kinds of groups, and what time and deleted topics do to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Group, GroupShard, Live};
use crate::error::GroupError;
use crate::group::config::RocketMqListing;
use crate::group::event::{
    DeleteGroup, DeletedTopic, DescribeGroup, Event, GroupId, ListGroups, MissingGroup, Timer,
};
use crate::group::kafka::subscription::CONSUMER;
use crate::group::kafka::{expiry, offsets};
use crate::group::response::{
    CLASSIC_TYPE, CONSUMER_TYPE, DescribedGroup, GroupState, ListedGroup, Notice, Response,
};
use crate::limits::TOMBSTONES_MAX;
use crate::record::Record;
use crate::shard::{Outcome, RequestId, TimerChange};
use crate::time::Now;

impl Group {
    /// Type as on the wire.
    fn type_name(&self) -> &'static str {
        match self.image.consumer {
            Some(_) => CONSUMER_TYPE,
            None => CLASSIC_TYPE,
        }
    }
}

impl GroupShard {
    pub(super) fn list(&self, list: &ListGroups) -> Response {
        let wanted = |filter: &[Arc<str>]| -> Option<BTreeSet<String>> {
            let names = filter.iter().map(|name| name.trim().to_lowercase());
            (!filter.is_empty()).then(|| names.collect())
        };
        let (states, types) = (wanted(&list.states), wanted(&list.types));
        let lists = |names: &Option<BTreeSet<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.contains(&name.to_lowercase()))
        };
        let listed = self.groups.iter().map(|(id, group)| ListedGroup {
            group: id.clone(),
            protocol_type: self.protocol_type(group),
            state: group.state(),
            group_type: group.type_name(),
        });
        Response::ListGroups(
            listed
                .filter(|group| lists(&states, group.state.name()))
                .filter(|group| lists(&types, group.group_type))
                .collect(),
        )
    }

    /// Whether a client of the RocketMQ group holds the lock of any queue.
    #[must_use]
    pub fn has_locked_queues(&self, group: &str, now: Now) -> bool {
        self.locks.are_held(group, now)
    }

    /// How many groups there are of each type and state, as [`Self::list`] tells them.
    #[must_use]
    pub fn census(&self) -> BTreeMap<(&'static str, &'static str), usize> {
        let mut counts = BTreeMap::new();
        for group in self.groups.values() {
            *counts.entry((group.type_name(), group.state().name())).or_default() += 1;
        }
        counts
    }

    fn protocol_type(&self, group: &Group) -> Arc<str> {
        let of_rocketmq = || match self.config.rocketmq_listing {
            RocketMqListing::Untyped => Arc::from(""),
            RocketMqListing::Typed => Arc::from("rocketmq"),
        };
        if group.image.consumer.is_some() {
            return Arc::from(CONSUMER);
        }
        match &group.live {
            Live::Classic(classic) => classic.protocol_type().cloned().unwrap_or_default(),
            Live::RocketMq(_) => of_rocketmq(),
            Live::Idle if group.image.is_rocketmq() => of_rocketmq(),
            Live::Idle | Live::Consumer(_) => {
                group.image.protocol_type().cloned().unwrap_or_default()
            }
        }
    }

    pub(super) fn describe(&self, describe: &DescribeGroup) -> Response {
        let id = &describe.group;
        // To whoever asks for classic groups a consumer group is none.
        let found = self.groups.get(id);
        let group = found.filter(|group| group.image.consumer.is_none());
        if let Some(Group { live: Live::Classic(classic), .. }) = group {
            return Response::DescribeGroup(classic.describe(id));
        }
        let error = match (group, describe.missing) {
            (None, MissingGroup::NotFound) => Some(GroupError::GroupIdNotFound),
            _ => None,
        };
        Response::DescribeGroup(DescribedGroup {
            group: id.clone(),
            error,
            error_message: error.map(|_| match found {
                Some(_) => format!("Group {id} is not a classic group."),
                None => format!("Group {id} not found."),
            }),
            state: group.map_or(GroupState::Dead, Group::state),
            protocol_type: group.map_or_else(Default::default, |group| self.protocol_type(group)),
            protocol: Arc::from(""),
            members: Vec::new(),
        })
    }

    /// In steps of [`TOMBSTONES_MAX`]; the last one answers.
    pub(super) fn delete(
        &mut self,
        request: Option<RequestId>,
        delete: DeleteGroup,
        now: Now,
    ) -> Outcome<Self> {
        let mut out = Outcome::default();
        let id = delete.group.clone();
        let step = self.with_known_group(&id, now, &mut out, |group, cx| {
            if group.has_consumers() {
                return Err(GroupError::NonEmptyGroup);
            }
            match &mut group.live {
                Live::Classic(classic) if classic.state() != GroupState::Empty => {
                    return Err(GroupError::NonEmptyGroup);
                }
                Live::RocketMq(members) if members.has_members() => {
                    return Err(GroupError::NonEmptyGroup);
                }
                // Ids that were given out are worth nothing any more.
                Live::Classic(classic) => classic.abandon(GroupError::UnknownMemberId, cx),
                Live::RocketMq(_) => {
                    cx.cancel(Timer::Consumers(cx.group.clone()));
                    let group = cx.group.clone();
                    cx.out.notices.push(Notice::ConsumerGroup { group, view: None });
                }
                Live::Idle | Live::Consumer(_) => {}
            }
            group.live = Live::Idle;
            let (records, more) = offsets::forget_all(cx.group, &group.image, TOMBSTONES_MAX);
            cx.out.records.extend(records);
            if !more {
                let gone = cx.group.clone();
                if group.image.classic.is_some() {
                    cx.out.records.push(Record::Group { group: gone.clone(), value: None });
                }
                if let Some(image) = &group.image.consumer {
                    let ends = image.tombstones().into_iter();
                    let ends = ends.map(|fact| Record::Consumer { group: gone.clone(), fact });
                    cx.out.records.extend(ends);
                }
                if group.image.family.is_some() {
                    cx.out.records.push(Record::Family { group: gone, value: None });
                }
            }
            Ok(more)
        });
        match step {
            Some(Ok(true)) => out.follow_ups.push((request, Event::DeleteGroup(delete))),
            Some(Ok(false)) => {
                self.forget_pending(&id, None, &mut out);
                out.respond(request, Ok(Response::DeleteGroup));
            }
            Some(Err(error)) => out.respond(request, Err(error)),
            None => out.respond(request, Err(GroupError::GroupIdNotFound)),
        }
        out
    }

    /// Looks at every group, each under its own key, and comes again.
    pub(super) fn check_retention(&self, now: Now, out: &mut Outcome<Self>) {
        let groups = self.groups.keys().cloned();
        out.follow_ups.extend(groups.map(|group| (None, Event::ExpireOffsets(group))));
        let next = now.after(self.config.offsets_retention_check_interval_ms);
        out.timers.push(TimerChange::Set(Timer::OffsetsRetention, next));
    }

    pub(super) fn expire_offsets(
        &mut self,
        id: GroupId,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Response {
        let Some(group) = self.groups.get_mut(&id) else { return Response::Done };
        if matches!(group.live, Live::Consumer(_)) && !group.has_consumers() {
            group.live = Live::Idle;
        }
        // A heartbeat whose family record is not in the log yet counts as well.
        if !group.has_rocketmq_members() {
            let (state, retention_ms) = (group.state(), self.config.offsets_retention_ms);
            let expired =
                expiry::expired(&id, &group.image, state, &self.pending, retention_ms, now.wall_ms);
            out.records = expired.records;
            if expired.more {
                out.follow_ups.push((None, Event::ExpireOffsets(id)));
            }
        }
        Response::Done
    }

    pub(super) fn topic_deleted(&self, topic: &DeletedTopic, out: &mut Outcome<Self>) -> Response {
        let having = self
            .groups
            .iter()
            .filter(|(id, group)| {
                let mut waiting = self.pending.of_group(id);
                group.image.offsets.contains_key(&topic.name)
                    || waiting.any(|(held, _)| *held == topic.name)
            })
            .map(|(id, _)| Event::ForgetTopic { group: id.clone(), topic: topic.clone() });
        out.follow_ups.extend(having.map(|event| (None, event)));
        Response::Done
    }

    pub(super) fn forget_topic(
        &self,
        id: &GroupId,
        topic: DeletedTopic,
        out: &mut Outcome<Self>,
    ) -> Response {
        let Some(group) = self.groups.get(id) else { return Response::Done };
        let (records, more) =
            offsets::forget(id, &group.image, &topic.name, topic.id, TOMBSTONES_MAX);
        out.records = records;
        if more {
            out.follow_ups.push((None, Event::ForgetTopic { group: id.clone(), topic }));
        } else {
            self.forget_pending(id, Some(&topic.name), out);
        }
        Response::Done
    }
}
