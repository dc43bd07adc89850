//! Consumer groups (KIP-848), and what of the classic protocol reaches them.

use std::collections::BTreeSet;

use super::{Group, GroupShard, Live};
use crate::error::{GroupError, Refusal};
use crate::group::context::Context;
use crate::group::event::{
    ConsumerGroupHeartbeat, GroupId, Heartbeat, JOIN_EPOCH, JoinGroup, LeavingMember, MemberId,
    SyncGroup, Timer,
};
use crate::group::image::consumer::ConsumerImage;
use crate::group::kafka::classic::{ClassicGroup, Upgrading};
use crate::group::kafka::consumer::{self, Draft, Leaving};
use crate::group::response::{
    HeartbeatResponse, JoinGroupResponse, LeftMember, Notice, Response, SyncGroupResponse,
};
use crate::record::Record;
use crate::shard::Outcome;
use crate::time::Now;

/// Why a member of a consumer group is put out, as events tell it.
const EXPIRED: &str = "session expired";

impl GroupShard {
    pub(super) fn consumer_group_heartbeat(
        &mut self,
        request: ConsumerGroupHeartbeat,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Response {
        let answer = consumer::check(&request, &self.config).and_then(|()| {
            let id = request.group.clone();
            if request.epoch == JOIN_EPOCH {
                return self
                    .with_group(&id, now, out, |group, cx| group.consumer_heartbeat(request, cx));
            }
            self.with_known_group(&id, now, out, |group, cx| group.consumer_heartbeat(request, cx))
                .unwrap_or_else(|| Err(not_found(&id)))
        });
        Response::ConsumerGroupHeartbeat(answer)
    }

    pub(super) fn describe_consumer_group(&self, id: &GroupId) -> Response {
        let group = self.groups.get(id);
        let answer = match group.map(|group| &group.image.consumer) {
            Some(Some(image)) => Ok(consumer::describe(image, &self.config.consumer.assignors)),
            Some(None) => Err(not_a_consumer_group(id)),
            None => Err(not_found(id)),
        };
        Response::DescribeConsumerGroup(answer)
    }

    /// [`Timer::Revocation`], [`Timer::Rejoin`] or [`Timer::MemberSync`] fired.
    pub(super) fn consumer_timer(&mut self, timer: Timer, now: Now, out: &mut Outcome<Self>) {
        let (group, member, cause) = match timer {
            Timer::Revocation(group, member) => {
                let image = self.image(&group).and_then(|image| image.consumer.as_ref());
                if !image.is_some_and(|image| consumer::Live::is_late(image, &member)) {
                    return;
                }
                (group, member, "partitions not given up in time")
            }
            Timer::Rejoin(group, member) => (group, member, "not joined again in time"),
            Timer::MemberSync(group, member) => (group, member, "not synced in time"),
            _ => return,
        };
        self.with_known_group(&group, now, out, |group, cx| {
            group.expel_consumers(&BTreeSet::from([member]), cause, cx);
        });
    }
}

fn not_found(id: &GroupId) -> Refusal {
    Refusal::new(GroupError::GroupIdNotFound, format!("Group {id} not found."))
}

fn not_a_consumer_group(id: &GroupId) -> Refusal {
    Refusal::new(GroupError::GroupIdNotFound, format!("Group {id} is not a consumer group."))
}

impl Group {
    /// The consumer group's live half, made anew if something else lives or nothing.
    fn consumers(&mut self, cx: &mut Context<'_>) -> Option<(&mut consumer::Live, &ConsumerImage)> {
        let image = self.image.consumer.as_ref()?;
        if !matches!(self.live, Live::Consumer(_)) {
            self.live = Live::Consumer(Box::new(consumer::Live::resume(image, cx)));
        }
        match &mut self.live {
            Live::Consumer(live) => Some((live, image)),
            Live::Idle | Live::Classic(_) | Live::RocketMq(_) => unreachable!("made above"),
        }
    }

    fn consumer_heartbeat(
        &mut self,
        request: ConsumerGroupHeartbeat,
        cx: &mut Context<'_>,
    ) -> Result<HeartbeatResponse, Refusal> {
        if self.has_rocketmq_members() {
            return Err(GroupError::HeldByRocketMq.into());
        }
        if request.epoch < JOIN_EPOCH {
            return self.consumer_leave(request, cx);
        }
        if let Some((live, image)) = self.consumers(cx) {
            return live.heartbeat(Draft::of(image), request, cx);
        }
        if request.epoch != JOIN_EPOCH {
            return Err(not_a_consumer_group(cx.group));
        }
        let mut live = Box::<consumer::Live>::default();
        let upgrading = match &self.live {
            Live::Classic(classic) if !classic.is_empty() => Some(classic.upgrading()),
            _ => None,
        };
        let draft = match &upgrading {
            Some(upgrading) if !consumer::upgrade_allowed(upgrading, cx.config) => {
                return Err(not_a_consumer_group(cx.group));
            }
            Some(upgrading) => consumer::from_classic(upgrading, cx)?,
            None => Draft::new(self.ends(cx)),
        };
        let response = live.heartbeat(draft, request, cx)?;
        self.give_way(upgrading.as_ref(), cx);
        self.live = Live::Consumer(live);
        Ok(response)
    }

    /// The records that end what an empty group was before it becomes a consumer group.
    fn ends(&self, cx: &Context<'_>) -> Vec<Record> {
        let mut records = Vec::new();
        if self.image.classic.is_some() {
            records.push(Record::Group { group: cx.group.clone(), value: None });
        }
        if self.image.family.is_some() {
            records.push(Record::Family { group: cx.group.clone(), value: None });
        }
        records
    }

    /// Ends what lived before the group became a consumer group; members of the classic protocol go
    /// on in it.
    fn give_way(&mut self, upgrading: Option<&Upgrading>, cx: &mut Context<'_>) {
        match &mut self.live {
            Live::Classic(classic) => {
                let error = match upgrading {
                    Some(_) => GroupError::RebalanceInProgress,
                    // Ids that were given out are worth nothing any more.
                    None => GroupError::UnknownMemberId,
                };
                classic.abandon(error, cx);
            }
            Live::RocketMq(_) => {
                cx.cancel(Timer::Consumers(cx.group.clone()));
                let group = cx.group.clone();
                cx.out.notices.push(Notice::ConsumerGroup { group, view: None });
            }
            Live::Idle | Live::Consumer(_) => {}
        }
        for member in upgrading.into_iter().flat_map(|from| &from.value.members) {
            cx.set_session(&member.member_id, member.session_timeout_ms);
        }
    }

    fn consumer_leave(
        &mut self,
        request: ConsumerGroupHeartbeat,
        cx: &mut Context<'_>,
    ) -> Result<HeartbeatResponse, Refusal> {
        let Some((_, image)) = self.consumers(cx) else {
            return Err(not_a_consumer_group(cx.group));
        };
        match consumer::Live::leave(Draft::of(image), request, cx)? {
            Leaving::ForNow(response) => Ok(response),
            Leaving::ForGood(response, id) => {
                self.expel_consumers(&BTreeSet::from([id]), "left", cx);
                Ok(response)
            }
        }
    }

    /// Takes members out, those that are there; the group becomes a classic one if only classic
    /// members are left.
    pub(super) fn expel_consumers(
        &mut self,
        ids: &BTreeSet<MemberId>,
        cause: &str,
        cx: &mut Context<'_>,
    ) {
        let Some((live, image)) = self.consumers(cx) else { return };
        let known: BTreeSet<MemberId> =
            ids.iter().filter(|id| image.members.contains_key(*id)).cloned().collect();
        if known.is_empty() {
            return;
        }
        // As long as all that leave are classic, they were no reason to be a consumer group.
        let was_mixed =
            known.iter().any(|id| image.members.get(id).is_some_and(|member| !member.is_classic()));
        match consumer::to_classic(image, &known, cx).filter(|_| was_mixed) {
            Some(downgraded) => {
                let mut classic = self.become_classic(downgraded, cx);
                classic.prepare_rebalance(cx);
                self.live = Live::Classic(classic);
            }
            None => live.expel(image, &known, cause, cx),
        }
    }

    /// Ends the consumer group in favour of the classic one that it is now.
    fn become_classic(
        &self,
        (downgraded, records): (Upgrading, Vec<Record>),
        cx: &mut Context<'_>,
    ) -> Box<ClassicGroup> {
        if let Some(image) = &self.image.consumer {
            consumer::Live::abandon(image, cx);
        }
        records.into_iter().for_each(|record| cx.decide(record));
        tracing::debug!(group = %cx.group, "the consumer group is a classic one now");
        Box::new(ClassicGroup::downgraded(downgraded, cx))
    }

    pub(super) fn join_consumers(
        &mut self,
        join: &JoinGroup,
        cx: &mut Context<'_>,
    ) -> JoinGroupResponse {
        let Some((live, image)) = self.consumers(cx) else {
            return JoinGroupResponse::refused(join.member.clone(), GroupError::UnknownMemberId);
        };
        let (response, draft) = match live.join(Draft::of(image), join, cx) {
            Ok(joined) => joined,
            Err(refused) => return refused,
        };
        // It may have taken the place of the last member that spoke the consumer protocol.
        let replaced = join.instance.as_ref().is_some_and(|instance| {
            image.static_member(instance).is_some_and(|(_, member)| !member.is_classic())
        });
        let none = BTreeSet::new();
        let downgraded = consumer::to_classic(&draft, &none, cx).filter(|_| replaced);
        draft.commit(cx);
        let Some(downgraded) = downgraded else { return response };
        let generation = downgraded.0.value.generation;
        let classic = self.become_classic(downgraded, cx);
        self.live = Live::Classic(classic);
        JoinGroupResponse { generation, ..response }
    }

    pub(super) fn sync_consumers(
        &mut self,
        sync: &SyncGroup,
        cx: &mut Context<'_>,
    ) -> Result<SyncGroupResponse, GroupError> {
        let (live, image) = self.consumers(cx).ok_or(GroupError::UnknownMemberId)?;
        live.sync(image, sync, cx)
    }

    pub(super) fn classic_heartbeat(
        &mut self,
        heartbeat: &Heartbeat,
        cx: &mut Context<'_>,
    ) -> Result<Response, GroupError> {
        let (live, image) = self.consumers(cx).ok_or(GroupError::UnknownMemberId)?;
        live.classic_heartbeat(image, heartbeat, cx).map(|()| Response::Heartbeat)
    }

    pub(super) fn classic_leave(
        &mut self,
        members: Vec<LeavingMember>,
        cx: &mut Context<'_>,
    ) -> Vec<LeftMember> {
        let Some((_, image)) = self.consumers(cx) else { return Vec::new() };
        let (gone, left) = consumer::Live::classic_leave(image, members);
        self.expel_consumers(&gone, "left", cx);
        left
    }

    /// A member's session ended.
    pub(super) fn consumer_expired(&mut self, member: &MemberId, cx: &mut Context<'_>) {
        self.expel_consumers(&BTreeSet::from([member.clone()]), EXPIRED, cx);
    }

    /// Ends an empty consumer group; nothing lives of it afterwards.
    pub(super) fn end_consumers(&mut self, cx: &mut Context<'_>) {
        let Some(image) = &self.image.consumer else { return };
        for fact in image.tombstones() {
            cx.decide(Record::Consumer { group: cx.group.clone(), fact });
        }
        if matches!(self.live, Live::Consumer(_)) {
            self.live = Live::Idle;
        }
    }
}
