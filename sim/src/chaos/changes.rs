//! What an operator changes while it runs: leaders, replicas, configs; and the one blow of a calm run.

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::NodeId;
use duolog_log_core::replication::election::UncleanElection;
use duolog_log_core::replication::partition::Role;

use crate::checker::Stop;
use crate::coordinator::{COORDINATOR, Coordinator};
use crate::plan::{BlowKind, FlushPolicy, Planted};
use crate::run::Simulation;

/// With the planted fault, nodes act on a lower minimum so long before it is written.
const MINIMUM_BELIEVED_FOR_MS: i64 = 1_000;

impl Simulation {
    /// The one thing that goes wrong in a calm run.
    pub(crate) fn strike_with(&mut self, blow: BlowKind) {
        let Some(leader) = self.coordinator.state.leader else { return };
        match blow {
            BlowKind::MoveLeader => {
                let mut isr = self.coordinator.state.isr.iter().copied();
                let Some(next) = isr.find(|node| *node != leader) else { return };
                self.with_coordinator(|coordinator, round| coordinator.move_to(next, round));
            }
            BlowKind::KillLeader => self.kill(leader, Stop::Process),
            BlowKind::CutPowerOfLeader => self.cut_power(leader),
            BlowKind::EndSessionOfLeader => self.end_session(leader),
            BlowKind::ReplaceLeader => {
                let target = self.with_another_instead(Some(leader));
                self.reassign_to(&target);
            }
        }
    }

    pub(super) fn move_leader(&mut self, node: NodeId) {
        let preferred = self.coordinator.state.preferred_leader().unwrap_or(node);
        let to = if self.random.happens(400) { preferred } else { node };
        self.with_coordinator(|coordinator, round| coordinator.move_to(to, round));
    }

    pub(super) fn end_session(&mut self, node: NodeId) {
        self.with_coordinator(|coordinator, round| coordinator.expire(node, round));
    }

    /// Moves the partition to other replicas, also when it moves already; and sometimes back a moment later, so that who
    /// has just left comes again.
    pub(super) fn reassign(&mut self) {
        let mut target: Vec<_> = self.coordinator.state.target_replicas().collect();
        if self.random.happens(350) {
            let in_ms = self.random.between(50, 700);
            self.reassign_in(in_ms, target.clone());
        }
        let leader = self.coordinator.state.leader;
        match self.random.below(10) {
            0..3 => target = self.with_another_instead(None),
            3..5 => target = self.with_another_instead(leader),
            5..7 if target.len() < 5 => target.extend(self.newcomer()),
            5..9 if target.len() > 1 => {
                let whom = if self.random.happens(400) { leader } else { None };
                let whom = whom.or_else(|| self.random.choose(&target));
                target.retain(|node| Some(*node) != whom);
            }
            _ => target.rotate_left(1),
        }
        self.reassign_to(&target);
    }

    pub(crate) fn reassign_to(&mut self, target: &[NodeId]) {
        self.with_coordinator(|coordinator, round| coordinator.reassign(target, round));
    }

    /// The target with a newcomer in the place of `whom`, or of any.
    fn with_another_instead(&mut self, whom: Option<NodeId>) -> Vec<NodeId> {
        let mut target: Vec<_> = self.coordinator.state.target_replicas().collect();
        let whom = whom.or_else(|| self.random.choose(&target));
        let place = target.iter_mut().find(|node| Some(**node) == whom);
        if let Some(newcomer) = self.newcomer()
            && let Some(place) = place
        {
            *place = newcomer;
        }
        target
    }

    /// A node that is no replica in the end.
    fn newcomer(&mut self) -> Option<NodeId> {
        let target: Vec<_> = self.coordinator.state.target_replicas().collect();
        let others: Vec<_> =
            self.plan.nodes.iter().copied().filter(|node| !target.contains(node)).collect();
        self.random.choose(&others)
    }

    pub(super) fn cancel_reassignment(&mut self) {
        self.with_coordinator(Coordinator::cancel_reassignment);
    }

    /// `min.insync.replicas` is raised or lowered.
    pub(super) fn change_minimum(&mut self) {
        let now = self.coordinator.state.min_insync_replicas;
        let next = self.random.choose(&[1, 1, 2, 2, 3]).unwrap_or(2);
        let in_ms = match self.plan.planted {
            Some(Planted::MinimumBelievedAtOnce) if next < now => {
                for id in self.plan.nodes.clone() {
                    self.with_node(id, |node, step| {
                        node.run(step, |process, _, step| process.believe_minimum(next, step));
                    });
                }
                MINIMUM_BELIEVED_FOR_MS
            }
            _ => 0,
        };
        self.set_minimum_in(in_ms, next);
    }

    /// DeleteRecords to somewhere below the leader's HW, also inside a batch.
    pub(super) fn delete_records(&mut self) {
        let Some(leader) = self.coordinator.state.leader else { return };
        let Some(node) = self.nodes.get(&leader) else { return };
        let Some(process) = &node.process else { return };
        if process.replica.role() != Role::Leader {
            return;
        }
        let (start, end) =
            (process.replica.log_start_offset().0, process.replica.high_watermark().0);
        let to = self.random.between(start, start + (end - start) / 2);
        self.with_node(leader, |node, step| {
            node.run(step, |process, _, step| process.raise_log_start(to, step));
        });
    }

    pub(super) fn flip_unclean(&mut self) {
        if self.plan.flips_unclean {
            self.coordinator.unclean = match self.coordinator.unclean {
                UncleanElection::Allowed => UncleanElection::Refused,
                UncleanElection::Refused => UncleanElection::Allowed,
            };
            let now = self.coordinator.unclean;
            self.seen.coverage.unclean_flips += 1;
            let at = (self.now_ms, COORDINATOR);
            self.seen
                .fault(at, EventKind::LeaderElect, || format!("unclean election is {now:?} now"));
        }
    }

    pub(super) fn flip_flush(&mut self, node: NodeId) {
        let policies =
            [FlushPolicy::WithCheckpoints, FlushPolicy::AfterMs(50), FlushPolicy::EveryAppend];
        let policy = self.random.choose(&policies).unwrap_or(FlushPolicy::WithCheckpoints);
        if let Some(found) = self.nodes.get_mut(&node) {
            found.flush = policy;
        }
    }
}
