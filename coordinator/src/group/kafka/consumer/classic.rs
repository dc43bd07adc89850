//! Members of a consumer group that speak the classic protocol: each join, sync and heartbeat says
//! and is told what a heartbeat of the consumer protocol would, for that member alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::TopicId;

use super::protocol::{self, Subscription};
use super::{
    Draft, Live, admission, client_member, reconcile, subscription, target, tell_joined,
    tell_moved, without_epochs,
};
use crate::error::{GroupError, Refusal};
use crate::group::context::Context;
use crate::group::event::{
    FirstJoin, Heartbeat, JoinGroup, LeavingMember, MemberId, Protocol, SyncGroup, Timer,
};
use crate::group::image::consumer::{ConsumerImage, ConsumerMember};
use crate::group::kafka::subscription::CONSUMER;
use crate::group::response::{JoinGroupResponse, LeftMember, SyncGroupResponse};
use crate::record::consumer::{
    ClassicMetadata, ConsumerFact, MemberMetadata, MemberState, StoredProtocol,
};

impl Live {
    /// JoinGroup (key 11); answered at once. The draft goes back: what it makes of the group may be
    /// a classic one.
    pub(in crate::group) fn join<'a>(
        &mut self,
        mut draft: Draft<'a>,
        join: &JoinGroup,
        cx: &mut Context<'_>,
    ) -> Result<(JoinGroupResponse, Draft<'a>), JoinGroupResponse> {
        let is_unknown = join.member.is_empty();
        let id: MemberId =
            if is_unknown { TopicId(join.uuid).to_string().into() } else { join.member.clone() };
        let refuse = |error| JoinGroupResponse::refused(join.member.clone(), error);
        admission::check_room(&draft, &id, cx.config).map_err(|refusal| refuse(refusal.error))?;
        let subscription = read_subscription(&draft, join).map_err(refuse)?;
        if is_unknown && join.instance.is_none() && join.first_join == FirstJoin::WithGivenId {
            return Err(JoinGroupResponse::refused(id, GroupError::MemberIdRequired));
        }
        let before = classic_member(&mut draft, &id, join).map_err(|r| refuse(r.error))?;
        let is_new = !draft.members.contains_key(&id);
        self.follow(&mut draft, (&id, &*before), join, &subscription, cx)
            .map_err(|refusal| refuse(refusal.error))?;
        let member = client_member(&draft, &id);
        cx.cancel(Timer::Rejoin(cx.group.clone(), id.clone()));
        self.rejoining.remove(&id);
        cx.set_session(&id, join.session_timeout_ms);
        let sync = Timer::MemberSync(cx.group.clone(), id.clone());
        cx.set_timer(sync, join.rebalance_timeout_ms);
        if is_new {
            tell_joined(&id, cx);
        }
        tell_moved(&id, &before, &member, cx);
        let response = JoinGroupResponse {
            error: None,
            generation: member.current.epoch,
            protocol_type: Some(Arc::from(CONSUMER)),
            protocol: join.protocols.first().map(|first| first.name.clone()),
            leader: Arc::from(""),
            skip_assignment: false,
            member: id,
            members: Vec::new(),
        };
        Ok((response, draft))
    }

    /// Lets the group follow what a member wants now, and the member its target.
    fn follow(
        &mut self,
        draft: &mut Draft<'_>,
        (id, before): (&MemberId, &ConsumerMember),
        join: &JoinGroup,
        subscription: &Subscription,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        let is_new = !draft.members.contains_key(id);
        let after = updated(&before.metadata, join, subscription);
        let wish = subscription::wish(&before.metadata, &after);
        if is_new || after != before.metadata {
            draft.decide(ConsumerFact::Member(id.clone(), Some(after)));
        }
        self.follow_subscriptions(draft, &before.metadata, wish, cx)?;
        target::update(draft, cx);
        let owned = protocol::by_ids(&subscription.owned, &*cx.known.metadata);
        reconcile::advance(draft, id, Some(&owned), wish, cx)?;
        Ok(())
    }

    /// SyncGroup (key 14).
    pub(in crate::group) fn sync(
        &mut self,
        image: &ConsumerImage,
        sync: &SyncGroup,
        cx: &mut Context<'_>,
    ) -> Result<SyncGroupResponse, GroupError> {
        let (id, member) = known(image, &sync.member, sync.instance.as_ref())?;
        let (session_timeout_ms, first) = classic(member)?;
        if sync.generation != member.current.epoch {
            return Err(GroupError::IllegalGeneration);
        }
        let other_type = sync.protocol_type.as_deref().is_some_and(|text| text != CONSUMER);
        if other_type || sync.protocol.as_ref().is_some_and(|name| *name != first.name) {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        let is_revoking = member.current.state == MemberState::UnrevokedPartitions;
        if image.epoch.epoch > member.current.epoch && !is_revoking {
            self.await_rejoin(id, member, cx);
            return Err(GroupError::RebalanceInProgress);
        }
        cx.cancel(Timer::MemberSync(cx.group.clone(), id.clone()));
        cx.set_session(id, session_timeout_ms);
        let assigned = without_epochs(&member.current.assigned);
        Ok(SyncGroupResponse {
            protocol_type: sync.protocol_type.clone(),
            protocol: sync.protocol.clone(),
            assignment: protocol::to_bytes(&assigned, &first.metadata, &*cx.known.metadata),
        })
    }

    /// Heartbeat (key 12). The member is told to join again if there is anything new for it.
    pub(in crate::group) fn classic_heartbeat(
        &mut self,
        image: &ConsumerImage,
        heartbeat: &Heartbeat,
        cx: &mut Context<'_>,
    ) -> Result<(), GroupError> {
        let (id, member) = known(image, &heartbeat.member, heartbeat.instance.as_ref())?;
        let (session_timeout_ms, _) = classic(member)?;
        if heartbeat.generation != member.current.epoch {
            return Err(GroupError::IllegalGeneration);
        }
        cx.set_session(id, session_timeout_ms);
        let is_free = match member.current.state {
            MemberState::UnrevokedPartitions => true,
            MemberState::UnreleasedPartitions => !reconcile::waits_for_others(image, id, member),
            MemberState::Stable | MemberState::Unknown => false,
        };
        if member.current.epoch < image.epoch.epoch || is_free {
            self.await_rejoin(id, member, cx);
            return Err(GroupError::RebalanceInProgress);
        }
        Ok(())
    }

    /// The time in which it must come counts from the first word of it.
    fn await_rejoin(&mut self, id: &MemberId, member: &ConsumerMember, cx: &mut Context<'_>) {
        if self.rejoining.insert(id.clone()) {
            let timer = Timer::Rejoin(cx.group.clone(), id.clone());
            cx.set_timer(timer, member.metadata.rebalance_timeout_ms);
        }
    }

    /// LeaveGroup (key 13): who of them goes, and the answers.
    pub(in crate::group) fn classic_leave(
        image: &ConsumerImage,
        members: Vec<LeavingMember>,
    ) -> (BTreeSet<MemberId>, Vec<LeftMember>) {
        let mut gone = BTreeSet::new();
        let mut left = Vec::with_capacity(members.len());
        for leaving in members {
            let found = leaving_member(image, &leaving);
            let error = match &found {
                Ok(id) if gone.insert(id.clone()) => None,
                Ok(_) => Some(GroupError::UnknownMemberId),
                Err(error) => Some(*error),
            };
            let member = found.unwrap_or(leaving.member);
            left.push(LeftMember { member, instance: leaving.instance, error });
        }
        (gone, left)
    }
}

fn leaving_member(image: &ConsumerImage, leaving: &LeavingMember) -> Result<MemberId, GroupError> {
    // An administrator removes a static member by its instance id alone.
    let holder = leaving.instance.as_ref().filter(|_| leaving.member.is_empty());
    let (id, member) = match holder {
        Some(instance) => image.static_member(instance).ok_or(GroupError::UnknownMemberId)?,
        None => known(image, &leaving.member, leaving.instance.as_ref())?,
    };
    classic(member)?;
    Ok(id.clone())
}

fn known<'a>(
    image: &'a ConsumerImage,
    id: &MemberId,
    instance: Option<&Arc<str>>,
) -> Result<(&'a MemberId, &'a Arc<ConsumerMember>), GroupError> {
    match instance {
        Some(instance) => admission::static_member(image, id, instance).map_err(|r| r.error),
        None => image.members.get_key_value(id).ok_or(GroupError::UnknownMemberId),
    }
}

/// Its session timeout and the first protocol that it offers; others are unknown to this protocol.
fn classic(member: &ConsumerMember) -> Result<(i32, &StoredProtocol), GroupError> {
    let classic = member.metadata.classic.as_ref().ok_or(GroupError::UnknownMemberId)?;
    let first = classic.protocols.first().ok_or(GroupError::UnknownMemberId)?;
    Ok((classic.session_timeout_ms, first))
}

/// What a joining member says, if it can be in the group: a consumer that offers a protocol which
/// all classic members do.
fn read_subscription(image: &ConsumerImage, join: &JoinGroup) -> Result<Subscription, GroupError> {
    let offers: Vec<BTreeSet<&Arc<str>>> = image
        .members
        .values()
        .filter_map(|member| member.metadata.classic.as_ref())
        .map(|classic| classic.protocols.iter().map(|protocol| &protocol.name).collect())
        .collect();
    let is_common = |offered: &Protocol| offers.iter().all(|names| names.contains(&offered.name));
    let is_consumer = &*join.protocol_type == CONSUMER;
    let first = join.protocols.first().filter(|_| is_consumer);
    let first = first.filter(|_| join.protocols.iter().any(is_common));
    let first = first.ok_or(GroupError::InconsistentGroupProtocol)?;
    protocol::subscription(&first.metadata).map_err(|_| GroupError::InconsistentGroupProtocol)
}

/// The member of a join as it was. A static member without its id takes the place of its former
/// self, whichever protocol that spoke.
fn classic_member(
    draft: &mut Draft<'_>,
    id: &MemberId,
    join: &JoinGroup,
) -> Result<Arc<ConsumerMember>, Refusal> {
    let Some(instance) = &join.instance else { return Ok(client_member(draft, id)) };
    if !join.member.is_empty() {
        return Ok(admission::static_member(draft, id, instance)?.1.clone());
    }
    let holder = draft.static_member(instance);
    match holder.map(|(holder, member)| (holder.clone(), member.clone())) {
        Some((holder, member)) => Ok(admission::replace(draft, &holder, &member, id)),
        None => Ok(client_member(draft, id)),
    }
}

fn updated(
    before: &MemberMetadata,
    join: &JoinGroup,
    subscription: &Subscription,
) -> MemberMetadata {
    let stored = |offered: &Protocol| StoredProtocol {
        name: offered.name.clone(),
        // A copy: it must not hold the request that it came in.
        metadata: Bytes::copy_from_slice(&offered.metadata),
    };
    MemberMetadata {
        instance: join.instance.clone().or_else(|| before.instance.clone()),
        rack: subscription.rack.clone().or_else(|| before.rack.clone()),
        client_id: join.client_id.clone(),
        client_host: join.client_host.clone(),
        topics: subscription.topics.clone(),
        regex: Arc::from(""),
        rebalance_timeout_ms: join.rebalance_timeout_ms,
        assignor: before.assignor.clone(),
        classic: Some(ClassicMetadata {
            session_timeout_ms: join.session_timeout_ms,
            protocols: join.protocols.iter().map(stored).collect(),
        }),
    }
}
