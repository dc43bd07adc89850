//! JoinGroup (key 11).

use std::sync::Arc;

use duolog_log_core::event::{Event, EventKind, Protocol};

use super::member::{Member, kept};
use super::{ClassicGroup, Joining, Phase};
use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{FirstJoin, JoinGroup, LeaderReturn, MemberId};
use crate::group::response::{JoinGroupResponse, JoinedMember, Response};
use crate::limits::PENDING_MEMBERS_MAX;
use crate::shard::RequestId;

impl ClassicGroup {
    /// Answered now, when the rebalance is through, or when the group's record is committed.
    pub(in crate::group) fn join(
        &mut self,
        request: RequestId,
        join: JoinGroup,
        cx: &mut Context<'_>,
    ) {
        if !self.has_room_for(&join.member, cx.config.group_size_max) {
            self.expel(&join.member, cx);
            cx.refuse_join(request, Arc::from(""), GroupError::GroupMaxSizeReached);
            // One member less to wait for.
            self.complete_join_if_all_joined(cx);
        } else if !self.supports(&join.protocol_type, &join.protocols) {
            cx.refuse_join(request, join.member, GroupError::InconsistentGroupProtocol);
        } else if join.member.is_empty() {
            self.join_new(request, join, cx);
        } else if self.pending.contains(&join.member) && join.instance.is_none() {
            let id = join.member.clone();
            self.add(id, request, join, cx);
        } else if let Err(error) = self.validate_member(&join.member, join.instance.as_ref()) {
            cx.refuse_join(request, join.member, error);
        } else {
            self.rejoin(request, join, cx);
        }
    }

    /// While members join, those already waiting count, so that the last to come back are those
    /// turned away if `group.max.size` was lowered.
    fn has_room_for(&self, member: &MemberId, group_size_max: usize) -> bool {
        let known = self.members.get(member);
        match self.phase {
            Phase::Empty => true,
            Phase::PreparingRebalance(_) => {
                known.is_some_and(|known| known.joining.is_some()) || self.joining < group_size_max
            }
            Phase::CompletingRebalance | Phase::Stable => {
                known.is_some() || self.members.len() < group_size_max
            }
        }
    }

    fn join_new(&mut self, request: RequestId, join: JoinGroup, cx: &mut Context<'_>) {
        let id = new_member_id(join.instance.as_ref().unwrap_or(&join.client_id), join.uuid);
        if let Some(instance) = &join.instance {
            match self.instances.get(instance).cloned() {
                Some(old) => self.replace_static(&old, id, request, join, cx),
                None => self.add(id, request, join, cx),
            }
        } else if join.first_join == FirstJoin::WithGivenId {
            if self.pending.len() >= PENDING_MEMBERS_MAX {
                cx.refuse_join(request, Arc::from(""), GroupError::GroupMaxSizeReached);
                return;
            }
            self.pending.insert(id.clone());
            cx.set_session(&id, join.session_timeout_ms);
            cx.refuse_join(request, id, GroupError::MemberIdRequired);
        } else {
            self.add(id, request, join, cx);
        }
    }

    fn add(&mut self, id: MemberId, request: RequestId, join: JoinGroup, cx: &mut Context<'_>) {
        if let Phase::PreparingRebalance(Joining::Initial { member_added, .. }) = &mut self.phase {
            *member_added = true;
        }
        if self.members.is_empty() {
            self.protocol_type = Some(join.protocol_type.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(id.clone());
        }
        self.pending.remove(&id);
        // It cannot send heartbeats before it has its answer; a client that gave up must not be
        // waited for without end, though.
        cx.set_session(&id, cx.config.new_member_join_timeout_ms);
        tell_join(&id, join.reason.as_deref(), cx);
        self.insert(id.clone(), Member::joining(join));
        self.park_join(&id, request, cx);
        self.rebalance_or_complete_join(cx);
    }

    /// A member of the group joins again.
    fn rejoin(&mut self, request: RequestId, join: JoinGroup, cx: &mut Context<'_>) {
        let id = join.member.clone();
        let is_leader = self.leader.as_ref() == Some(&id);
        let unchanged =
            self.members.get(&id).is_some_and(|member| member.protocols == join.protocols);
        match self.phase {
            // It may not have got its answer: told the same again.
            Phase::CompletingRebalance if unchanged => {
                let response = self.joined(&id, is_leader);
                cx.respond(Some(request), Ok(Response::JoinGroup(response)));
            }
            // The leader may want a rebalance for reasons that its metadata do not show.
            Phase::Stable if unchanged && !is_leader => {
                let response = self.joined(&id, false);
                cx.respond(Some(request), Ok(Response::JoinGroup(response)));
            }
            Phase::PreparingRebalance(_) | Phase::CompletingRebalance | Phase::Stable => {
                self.update(&id, request, join, cx);
                self.rebalance_or_complete_join(cx);
            }
            Phase::Empty => cx.refuse_join(request, id, GroupError::UnknownMemberId),
        }
    }

    fn update(&mut self, id: &MemberId, request: RequestId, join: JoinGroup, cx: &mut Context<'_>) {
        if let Some(member) = self.members.get_mut(id) {
            self.votes.withdraw(&member.protocols);
            member.protocols = join.protocols.into_iter().map(kept).collect();
            self.votes.add(&member.protocols);
            member.rebalance_timeout_ms = join.rebalance_timeout_ms;
            member.session_timeout_ms = join.session_timeout_ms;
        }
        self.park_join(id, request, cx);
    }

    /// A static member comes back without its id: it takes the place of its former self, which is
    /// fenced (KIP-345, case B51). A stable group whose protocol stays keeps its generation.
    fn replace_static(
        &mut self,
        old: &MemberId,
        id: MemberId,
        request: RequestId,
        join: JoinGroup,
        cx: &mut Context<'_>,
    ) {
        let old_leader = self.leader.clone();
        let Some(mut member) = self.remove(old) else { return };
        cx.cancel_session(old);
        if let Some(request) = member.joining.take() {
            cx.refuse_join(request, old.clone(), GroupError::FencedInstanceId);
        }
        if let Some(request) = member.syncing.take() {
            cx.respond(Some(request), Err(GroupError::FencedInstanceId));
        }
        member.is_new = false;
        self.insert(id.clone(), member);
        if old_leader.as_ref() == Some(old) {
            self.leader = Some(id.clone());
        } else {
            self.leader.clone_from(&old_leader);
        }
        cx.set_session(&id, join.session_timeout_ms);
        let leader_return = join.leader_return;
        self.update(&id, request, join, cx);
        match self.phase {
            Phase::Stable if self.votes.winner(&self.members) == self.protocol => {
                self.keep_generation(&id, leader_return, old_leader, cx);
            }
            Phase::Stable => self.rebalance_or_complete_join(cx),
            // The leader may be assigning to the old id.
            Phase::CompletingRebalance => self.prepare_rebalance(cx),
            Phase::PreparingRebalance(_) | Phase::Empty => self.complete_join_if_all_joined(cx),
        }
    }

    /// Records the new id of a static member and answers its join with the present generation.
    fn keep_generation(
        &mut self,
        id: &MemberId,
        leader_return: LeaderReturn,
        old_leader: Option<MemberId>,
        cx: &mut Context<'_>,
    ) {
        cx.decide(self.record(cx.group));
        let Some(request) = self.members.get_mut(id).and_then(|member| member.joining.take())
        else {
            return;
        };
        self.joining -= 1;
        let leads = self.leader.as_ref() == Some(id);
        let response = match leader_return {
            LeaderReturn::SkipAssignment => {
                JoinGroupResponse { skip_assignment: leads, ..self.joined(id, leads) }
            }
            LeaderReturn::AsFollower => JoinGroupResponse {
                leader: old_leader.unwrap_or_default(),
                ..self.joined(id, false)
            },
        };
        cx.respond(Some(request), Ok(Response::JoinGroup(response)));
    }

    /// The answer to a member that is in this generation.
    pub(super) fn joined(&self, id: &MemberId, leads: bool) -> JoinGroupResponse {
        let as_joined = |(id, member): (&MemberId, &Member)| JoinedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            metadata: member.metadata(self.protocol.as_ref()),
        };
        JoinGroupResponse {
            error: None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member: id.clone(),
            members: if leads { self.members.iter().map(as_joined).collect() } else { Vec::new() },
        }
    }
}

fn tell_join(id: &MemberId, reason: Option<&str>, cx: &Context<'_>) {
    let reason = reason.unwrap_or("joined");
    tracing::debug!(group = %cx.group, member = %id, reason, "member joins");
    cx.events.emit(|| {
        Event::new(EventKind::GroupJoin, cx.now.wall_ms)
            .protocol(Protocol::Kafka)
            .client(id.clone())
            .cause(format!("group {}: {reason}", cx.group))
    });
}

/// `name-uuid`, the UUID as text.
fn new_member_id(name: &str, uuid: [u8; 16]) -> MemberId {
    let bits = u128::from_be_bytes(uuid);
    Arc::from(format!(
        "{name}-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        bits >> 96,
        (bits >> 80) & 0xFFFF,
        (bits >> 64) & 0xFFFF,
        (bits >> 48) & 0xFFFF,
        bits & 0xFFFF_FFFF_FFFF
    ))
}
