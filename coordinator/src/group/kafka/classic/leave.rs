//! LeaveGroup (key 13) and sessions that end.

use std::sync::Arc;

use duolog_log_core::event::{Event, EventKind, Protocol};

use super::{ClassicGroup, Phase};
use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{LeavingMember, MemberId};
use crate::group::response::LeftMember;

impl ClassicGroup {
    /// Each member by itself; the group rebalances once.
    pub(in crate::group) fn leave(
        &mut self,
        members: Vec<LeavingMember>,
        cx: &mut Context<'_>,
    ) -> Vec<LeftMember> {
        let mut left = Vec::with_capacity(members.len());
        let mut any = false;
        for leaving in members {
            let result = self.leave_one(&leaving, cx);
            any |= result.is_ok();
            left.push(LeftMember {
                member: leaving.member,
                instance: leaving.instance,
                error: result.err(),
            });
        }
        match self.phase {
            _ if !any => {}
            Phase::Stable | Phase::CompletingRebalance => self.prepare_rebalance(cx),
            Phase::PreparingRebalance(_) => self.complete_join_if_all_joined(cx),
            Phase::Empty => {}
        }
        left
    }

    fn leave_one(
        &mut self,
        leaving: &LeavingMember,
        cx: &mut Context<'_>,
    ) -> Result<(), GroupError> {
        let id = match &leaving.instance {
            // An administrator removes a static member.
            Some(instance) if leaving.member.is_empty() => {
                self.instances.get(instance).cloned().ok_or(GroupError::UnknownMemberId)?
            }
            _ => leaving.member.clone(),
        };
        if self.pending.remove(&id) {
            cx.cancel_session(&id);
            return Ok(());
        }
        if !leaving.member.is_empty() {
            self.validate_member(&id, leaving.instance.as_ref())?;
        } else if leaving.instance.is_none() {
            return Err(GroupError::UnknownMemberId);
        }
        self.expel(&id, cx);
        tell_leave(&id, leaving.reason.clone().unwrap_or_else(|| Arc::from("left")), cx);
        Ok(())
    }

    /// [`Timer::Session`](crate::group::event::Timer::Session) fired: a member was silent too
    /// long, or a given id was not come back with (case B54).
    pub(in crate::group) fn session_over(&mut self, id: &MemberId, cx: &mut Context<'_>) {
        if self.pending.remove(id) {
            if matches!(self.phase, Phase::PreparingRebalance(_)) && self.all_joined() {
                self.complete_join(cx);
            }
            return;
        }
        let Some(member) = self.members.get(id) else { return };
        if member.may_be_silent() {
            return;
        }
        self.expel(id, cx);
        tell_leave(id, Arc::from("session expired"), cx);
        match self.phase {
            Phase::Stable | Phase::CompletingRebalance => self.prepare_rebalance(cx),
            Phase::PreparingRebalance(_) if self.all_joined() => self.complete_join(cx),
            Phase::PreparingRebalance(_) | Phase::Empty => {}
        }
    }
}

fn tell_leave(id: &MemberId, cause: Arc<str>, cx: &Context<'_>) {
    tracing::debug!(group = %cx.group, member = %id, %cause, "member left");
    cx.events.emit(|| {
        Event::new(EventKind::GroupLeave, cx.now.wall_ms)
            .protocol(Protocol::Kafka)
            .client(id.clone())
            .cause(format!("group {}: {cause}", cx.group))
    });
}
