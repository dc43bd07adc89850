//! The end of a run: nothing goes wrong any more, all must get well, and every log is read once more.

use super::{Report, Simulation, Violation};
use crate::clients::Client;
use crate::node::{Node, Process};
use crate::storage;

impl Simulation {
    /// From now on nothing goes wrong.
    pub(super) fn heal(&mut self) {
        self.network.heal();
        self.halts.clear();
        self.full_until.clear();
        for node in self.nodes.values_mut() {
            node.disk.clear_faults();
            node.disk.set_capacity(None);
            node.slow_until_ms = 0;
        }
        self.coordinator.stalled_until_ms = 0;
    }

    /// Whether all replicas are in sync with one leader, everything is committed and answered, and nobody else holds
    /// anything.
    pub(super) fn is_healed(&self) -> bool {
        let state = &self.coordinator.state;
        let Some(leader) = state.leader.and_then(|leader| self.nodes.get(&leader)) else {
            return false;
        };
        let Some(leader) = &leader.process else { return false };
        let end = leader.log.log_end_offset();
        let is_well = |process: &Process| {
            process.replica.leader_epoch() == state.leader_epoch
                && process.log.log_end_offset() == end
                && process.replica.high_watermark().0 == end
        };
        let is_as_it_should_be = |node: &Node| {
            let is_replica = state.replicas.contains(&node.id);
            let process = node.process.as_ref();
            process.is_some_and(|p| if is_replica { is_well(p) } else { p.is_empty() })
        };
        state.isr.len() == state.replicas.len()
            && !state.is_moving()
            && leader.replica.leader_epoch() == state.leader_epoch
            && !self.clients.iter().any(Client::is_waiting)
            && self.nodes.values().all(is_as_it_should_be)
    }

    /// Reads every log from its files once more.
    pub(super) fn check_end(&mut self) {
        let checker = &mut self.seen.checker;
        for (id, node) in &self.nodes {
            let Some(process) = &node.process else { continue };
            let found = storage::read_all(&process.log);
            let differs = match (checker.shadow(*id), &found) {
                (Some(shadow), Some(found)) => shadow.first_difference(found),
                _ => Some(0),
            };
            if let Some(offset) = differs {
                checker.violate(|| format!("the files of node {id} differ at {offset}"));
            }
        }
        checker.check_healed();
        if checker.has_losses() {
            return;
        }
        let first = self.coordinator.state.preferred_leader();
        let log = first.and_then(|id| checker.shadow(id)).filter(|log| log.start() == 0);
        let Some(log) = log else { return };
        let wrong = self.clients.iter().find_map(|c| c.missing_or_doubled(log.entries()));
        let hanging = self.nodes.values().find(|node| {
            node.process.as_ref().is_some_and(|process| {
                process.replica.last_stable_offset() < process.replica.high_watermark()
            })
        });
        let hanging = hanging.map(|node| format!("a transaction hangs on node {}", node.id));
        if let Some(wrong) = wrong.or(hanging) {
            checker.violate(|| wrong);
        }
    }

    pub(super) fn report(self, seed: u64) -> Report {
        let mut coverage = self.seen.coverage;
        self.seen.checker.count(&mut coverage);
        coverage.messages_overtaken += self.overtaken;
        let now_ms = self.now_ms;
        let broken = self.seen.checker.violation();
        let broken = broken.map(|what| Violation::Broken(format!("at {now_ms} ms: {what}")));
        let violation = broken.or(self.not_healed.map(Violation::NotHealed));
        Report {
            seed,
            plan: self.plan,
            violation,
            trace_hash: self.seen.trace.hash(),
            lines: self.seen.trace.into_lines(),
            coverage,
        }
    }
}
