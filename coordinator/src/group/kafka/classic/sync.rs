//! SyncGroup (key 14).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::event::{Event, EventKind, Protocol};

use super::{ClassicGroup, Phase, revoke};
use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{MemberId, SyncGroup, Timer};
use crate::group::response::{Response, SyncGroupResponse};
use crate::shard::RequestId;

impl ClassicGroup {
    /// Answered now, or when the leader's assignment is committed.
    pub(in crate::group) fn sync(
        &mut self,
        request: RequestId,
        sync: SyncGroup,
        cx: &mut Context<'_>,
    ) {
        if let Err(error) = self.admit_sync(&sync) {
            cx.respond(Some(request), Err(error));
            return;
        }
        self.unsynced.remove(&sync.member);
        if self.unsynced.is_empty() {
            cx.cancel(Timer::Sync(cx.group.clone()));
        }
        if self.phase == Phase::Stable {
            let response = self.synced(&sync.member);
            cx.respond(Some(request), Ok(Response::SyncGroup(response)));
            return;
        }
        self.park_sync(&sync.member, request, cx);
        if self.leader.as_ref() == Some(&sync.member) {
            self.assign(sync.assignments, cx);
        }
    }

    fn admit_sync(&self, sync: &SyncGroup) -> Result<(), GroupError> {
        self.validate(&sync.member, sync.instance.as_ref(), sync.generation)?;
        let differs = |asked: &Option<Arc<str>>, own: &Option<Arc<str>>| {
            asked.is_some() && own.is_some() && asked != own
        };
        if differs(&sync.protocol_type, &self.protocol_type)
            || differs(&sync.protocol, &self.protocol)
        {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        match self.phase {
            Phase::Empty => Err(GroupError::UnknownMemberId),
            Phase::PreparingRebalance(_) => Err(GroupError::RebalanceInProgress),
            Phase::CompletingRebalance | Phase::Stable => Ok(()),
        }
    }

    /// Puts a sync to wait; an earlier one of the same member is told to try again.
    fn park_sync(&mut self, id: &MemberId, request: RequestId, cx: &mut Context<'_>) {
        let Some(member) = self.members.get_mut(id) else { return };
        if let Some(earlier) = member.syncing.replace(request) {
            cx.respond(Some(earlier), Err(GroupError::RebalanceInProgress));
        }
    }

    /// The leader has spoken: records the generation and answers all that wait. Members it forgot
    /// get nothing; what it says of others is ignored.
    fn assign(&mut self, assignments: Vec<(MemberId, Bytes)>, cx: &mut Context<'_>) {
        let mut assignments: BTreeMap<MemberId, Bytes> = assignments.into_iter().collect();
        for (id, member) in &mut self.members {
            // A copy: it must not hold the request that it came in.
            let given = assignments.remove(id);
            member.assignment = given.map_or_else(Bytes::new, |b| Bytes::copy_from_slice(&b));
            let held = std::mem::replace(&mut member.held, member.assignment.clone());
            revoke::tell(id, (&held, &member.assignment), "assigned to another", cx);
        }
        // Recorded with the time at which the join phase ended, as Kafka does.
        cx.decide(self.record(cx.group));
        self.enter(Phase::Stable, cx);
        cx.events.emit(|| {
            Event::new(EventKind::GroupAssign, cx.now.wall_ms).protocol(Protocol::Kafka).cause(
                format!(
                    "group {}: generation {} of {} members",
                    cx.group,
                    self.generation,
                    self.members.len()
                ),
            )
        });
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        for id in ids {
            let waiting = self.members.get_mut(&id).and_then(|member| member.syncing.take());
            if let Some(request) = waiting {
                let response = self.synced(&id);
                cx.respond(Some(request), Ok(Response::SyncGroup(response)));
                self.renew(&id, cx);
            }
        }
    }

    fn synced(&self, id: &MemberId) -> SyncGroupResponse {
        SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: self
                .members
                .get(id)
                .map_or_else(Bytes::new, |member| member.assignment.clone()),
        }
    }

    /// [`Timer::Sync`] fired: members that have not asked for their assignment are out.
    pub(in crate::group) fn sync_phase_over(&mut self, cx: &mut Context<'_>) {
        if !matches!(self.phase, Phase::CompletingRebalance | Phase::Stable) {
            return;
        }
        let late = std::mem::take(&mut self.unsynced);
        if late.is_empty() {
            return;
        }
        for id in &late {
            self.expel(id, cx);
        }
        self.prepare_rebalance(cx);
    }
}
