//! What the parts of a group's state machine work with.

use std::sync::Arc;

use duolog_log_core::event::Events;

use crate::error::GroupError;
use crate::group::config::GroupConfig;
use crate::group::event::{GroupId, MemberId, Timer};
use crate::group::metadata::Metadata;
use crate::group::response::{JoinGroupResponse, Response};
use crate::group::shard::GroupShard;
use crate::record::Record;
use crate::shard::{Answer, Outcome, RequestId, TimerChange, Undo};
use crate::time::Now;

/// The cluster's metadata, as far as they were told.
#[derive(Debug)]
pub(in crate::group) struct Known {
    pub(in crate::group) metadata: Arc<dyn Metadata>,
    /// Grows with every change.
    pub(in crate::group) version: u64,
}

/// One event's surroundings: the group it concerns, settings, time, and the outcome so far.
pub(in crate::group) struct Context<'a> {
    pub(in crate::group) group: &'a GroupId,
    pub(in crate::group) config: &'a GroupConfig,
    pub(in crate::group) known: &'a Known,
    pub(in crate::group) events: &'a Events,
    pub(in crate::group) now: Now,
    pub(in crate::group) out: &'a mut Outcome<GroupShard>,
}

impl Context<'_> {
    pub(in crate::group) fn respond(
        &mut self,
        request: Option<RequestId>,
        answer: Answer<GroupShard>,
    ) {
        self.out.respond(request, answer);
    }

    pub(in crate::group) fn refuse_join(
        &mut self,
        request: RequestId,
        member: MemberId,
        error: GroupError,
    ) {
        let refused = JoinGroupResponse::refused(member, error);
        self.out.responses.push((request, Ok(Response::JoinGroup(refused))));
    }

    /// Adds a record whose failure takes the group's live state back.
    pub(in crate::group) fn decide(&mut self, record: Record) {
        self.out.records.push(record);
        self.out.undo = Undo::Group;
    }

    pub(in crate::group) fn set_timer(&mut self, timer: Timer, delay_ms: i32) {
        self.set_timer_at(timer, self.now.after(i64::from(delay_ms)));
    }

    pub(in crate::group) fn set_timer_at(&mut self, timer: Timer, tick_ms: i64) {
        self.out.timers.push(TimerChange::Set(timer, tick_ms));
    }

    pub(in crate::group) fn set_session(&mut self, member: &MemberId, delay_ms: i32) {
        self.set_timer(Timer::Session(self.group.clone(), member.clone()), delay_ms);
    }

    pub(in crate::group) fn cancel(&mut self, timer: Timer) {
        self.out.timers.push(TimerChange::Cancel(timer));
    }

    pub(in crate::group) fn cancel_session(&mut self, member: &MemberId) {
        self.cancel(Timer::Session(self.group.clone(), member.clone()));
    }
}
