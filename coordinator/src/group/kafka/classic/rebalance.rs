//! From one generation to the next.

use bytes::Bytes;

use super::{ClassicGroup, Joining, Phase};
use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{MemberId, Timer};
use crate::group::response::Response;

impl ClassicGroup {
    /// Begins a rebalance, or ends the join phase of the one under way if nobody is missing.
    pub(super) fn rebalance_or_complete_join(&mut self, cx: &mut Context<'_>) {
        match self.phase {
            Phase::Empty | Phase::CompletingRebalance | Phase::Stable => self.prepare_rebalance(cx),
            Phase::PreparingRebalance(_) => self.complete_join_if_all_joined(cx),
        }
    }

    /// Asks all members to join; the first members of an empty group get company for a while.
    pub(in crate::group) fn prepare_rebalance(&mut self, cx: &mut Context<'_>) {
        if self.phase == Phase::CompletingRebalance {
            self.fail_syncs(GroupError::RebalanceInProgress, cx);
        }
        self.unsynced.clear();
        cx.cancel(Timer::Sync(cx.group.clone()));
        let joining = if self.phase == Phase::Empty {
            let delay_ms = cx.config.initial_rebalance_delay_ms;
            let remaining_ms = self.rebalance_timeout_ms().saturating_sub(delay_ms).max(0);
            cx.set_timer(Timer::Join(cx.group.clone()), delay_ms);
            Joining::Initial { delay_ms, remaining_ms, member_added: false }
        } else {
            cx.set_timer(Timer::Join(cx.group.clone()), self.rebalance_timeout_ms());
            Joining::Rejoin
        };
        self.enter(Phase::PreparingRebalance(joining), cx);
        tracing::debug!(group = %cx.group, generation = self.generation, "rebalancing");
        self.complete_join_if_all_joined(cx);
    }

    /// A rejoin ends when all members are back and no given id is outstanding; the initial delay
    /// is not cut short.
    pub(super) fn complete_join_if_all_joined(&mut self, cx: &mut Context<'_>) {
        if self.phase == Phase::PreparingRebalance(Joining::Rejoin) && self.all_joined() {
            self.complete_join(cx);
        }
    }

    pub(super) fn all_joined(&self) -> bool {
        self.joining == self.members.len() && self.pending.is_empty()
    }

    /// [`Timer::Join`] fired.
    pub(in crate::group) fn join_phase_over(&mut self, cx: &mut Context<'_>) {
        match self.phase {
            Phase::PreparingRebalance(Joining::Initial {
                delay_ms,
                remaining_ms,
                member_added: true,
            }) if remaining_ms > 0 => {
                let next_ms = cx.config.initial_rebalance_delay_ms.min(remaining_ms);
                cx.set_timer(Timer::Join(cx.group.clone()), next_ms);
                self.phase = Phase::PreparingRebalance(Joining::Initial {
                    delay_ms: next_ms,
                    remaining_ms: remaining_ms.saturating_sub(delay_ms).max(0),
                    member_added: false,
                });
            }
            Phase::PreparingRebalance(_) => self.complete_join(cx),
            Phase::Empty | Phase::CompletingRebalance | Phase::Stable => {}
        }
    }

    /// Ends the join phase: members that did not come back are out, static ones excepted until
    /// their session ends.
    pub(super) fn complete_join(&mut self, cx: &mut Context<'_>) {
        cx.cancel(Timer::Join(cx.group.clone()));
        let missing: Vec<MemberId> = self
            .members
            .iter()
            .filter(|(_, member)| member.joining.is_none() && member.instance.is_none())
            .map(|(id, _)| id.clone())
            .collect();
        for id in missing {
            self.expel(&id, cx);
        }
        if self.members.is_empty() {
            self.become_empty(cx);
        } else if self.elect_leader() {
            self.begin_generation(cx);
        } else {
            // Only static members are left and none came back: their sessions decide. Clients may
            // ask for no timeout at all, or a negative one.
            cx.set_timer(Timer::Join(cx.group.clone()), self.rebalance_timeout_ms().max(1));
        }
    }

    fn become_empty(&mut self, cx: &mut Context<'_>) {
        self.next_generation();
        self.protocol = None;
        self.enter(Phase::Empty, cx);
        cx.decide(self.record(cx.group));
    }

    fn begin_generation(&mut self, cx: &mut Context<'_>) {
        self.next_generation();
        self.protocol = self.votes.winner(&self.members);
        self.enter(Phase::CompletingRebalance, cx);
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        for id in &ids {
            self.renew(id, cx);
            let leads = self.leader.as_ref() == Some(id);
            let Some(member) = self.members.get_mut(id) else { continue };
            member.is_new = false;
            if let Some(request) = member.joining.take() {
                let response = self.joined(id, leads);
                cx.respond(Some(request), Ok(Response::JoinGroup(response)));
            }
        }
        self.joining = 0;
        self.unsynced = ids.into_iter().collect();
        cx.set_timer(Timer::Sync(cx.group.clone()), self.rebalance_timeout_ms());
    }

    /// A leader that did not come back loses its place to the first member that did. `false`: none
    /// did.
    fn elect_leader(&mut self) -> bool {
        let joined = |id: &&MemberId| self.members.get(*id).is_some_and(|m| m.joining.is_some());
        let leader =
            self.leader.iter().find(joined).or_else(|| self.members.keys().find(joined)).cloned();
        match leader {
            Some(leader) => {
                self.leader = Some(leader);
                true
            }
            None => false,
        }
    }

    /// Sends the members that wait for the leader's assignment away with `error`.
    fn fail_syncs(&mut self, error: GroupError, cx: &mut Context<'_>) {
        for (id, member) in &mut self.members {
            member.assignment = Bytes::new();
            if let Some(request) = member.syncing.take() {
                cx.respond(Some(request), Err(error));
                // Its session may have run out unnoticed while it waited.
                cx.set_session(id, member.session_timeout_ms);
            }
        }
    }

    /// The longest that any member asks for.
    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0)
    }

    fn next_generation(&mut self) {
        self.generation = self.generation.checked_add(1).unwrap_or(0);
    }

    pub(super) fn enter(&mut self, phase: Phase, cx: &Context<'_>) {
        self.phase = phase;
        self.state_ms = cx.now.wall_ms;
    }
}
