//! What goes wrong, and when.

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::NodeId;
use duolog_log_core::replication::election::UncleanElection;
use duolog_log_core::replication::partition::Role;
use duolog_log_core::testing::mem_disk::{Crash, Fault};

use crate::checker::Stop;
use crate::network::CutOff;
use crate::plan::FlushPolicy;
use crate::run::Simulation;

/// How a process ends whose disk was told to stop inside a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    Process,
    Power,
}

impl Simulation {
    /// One thing goes wrong.
    pub(crate) fn strike(&mut self) {
        let Some(node) = self.random.choose(&self.plan.replicas) else { return };
        // Leaders are where it hurts.
        let node = match self.coordinator.state.leader {
            Some(leader) if self.random.happens(300) => leader,
            _ => node,
        };
        match self.random.below(100) {
            0..12 => self.kill(node, Stop::Process),
            12..16 => self.stop_cleanly(node),
            16..27 => self.cut_power(node),
            27..30 => self.cut_power_of_several(),
            30..37 => self.halt_inside_a_call(node),
            37..52 => self.cut_off(node),
            52..58 => self.slow_down(node),
            58..63 => self.fill_disk(node),
            63..66 => self.break_disk(node),
            66..82 => self.move_leader(node),
            82..87 => self.delete_records(),
            87..92 => self.end_session(node),
            92..96 => self.flip_unclean(),
            _ => self.flip_flush(node),
        }
    }

    /// The process of `node` dies; what it wrote stays.
    pub(crate) fn kill(&mut self, node: NodeId, stop: Stop) {
        let at = (self.now_ms, node);
        let Some(found) = self.nodes.get_mut(&node).filter(|node| node.process.is_some()) else {
            return;
        };
        found.stopped(stop);
        found.disk = found.disk.kill();
        self.seen.coverage.process_crashes += 1;
        self.seen.fault(at, EventKind::FaultCrash, || "the process dies".to_owned());
    }

    fn stop_cleanly(&mut self, node: NodeId) {
        let at = (self.now_ms, node);
        let Some(found) = self.nodes.get_mut(&node) else { return };
        let Some(process) = &mut found.process else { return };
        let closed = process.close(&found.disk, self.now_ms);
        let stop = if closed.is_ok() { Stop::Clean } else { Stop::InsideCall };
        found.stopped(stop);
        found.disk = found.disk.kill();
        self.seen.fault(at, EventKind::FaultCrash, || "the process is stopped".to_owned());
    }

    /// The machine of `node` loses power, whether or not its process is up.
    pub(crate) fn cut_power(&mut self, node: NodeId) {
        let at = (self.now_ms, node);
        let how = match self.random.happens(300) {
            true => Crash::ForgetUnsynced,
            false => Crash::Seeded(self.random.number()),
        };
        let Some(found) = self.nodes.get_mut(&node) else { return };
        let stop = match (&found.process, found.stop) {
            // Inside a call even what was synced may be on its way out, as when a log starts anew.
            (Some(_), _) if found.disk.is_halted() => Stop::Power { synced: 0 },
            (Some(_), _) => Stop::Power { synced: found.synced() },
            // A power cut after a clean stop finds everything on disk.
            (None, Stop::Clean) => Stop::Clean,
            (None, Stop::Process | Stop::InsideCall) => Stop::Power { synced: 0 },
            (None, stop @ Stop::Power { .. }) => stop,
        };
        found.stopped(stop);
        let (disk, losses) = found.disk.crash_counted(how);
        found.disk = disk;
        let coverage = &mut self.seen.coverage;
        coverage.power_losses += 1;
        coverage.writes_lost += losses.lost;
        coverage.writes_torn += losses.torn;
        self.seen.fault(at, EventKind::FaultPower, || {
            format!("{} unsynced writes lost, {} torn", losses.lost, losses.torn)
        });
    }

    fn cut_power_of_several(&mut self) {
        let down: Vec<_> =
            self.plan.replicas.clone().into_iter().filter(|_| self.random.happens(600)).collect();
        for node in down {
            self.cut_power(node);
        }
    }

    /// The next calls to the disk are counted; one of them is the last.
    fn halt_inside_a_call(&mut self, node: NodeId) {
        let calls = self.random.below(30);
        let halt = if self.random.happens(500) { Halt::Process } else { Halt::Power };
        let Some(found) = self.nodes.get_mut(&node) else { return };
        if found.process.is_some() {
            found.disk.fail_operation(found.disk.operations() + calls, Fault::Halt);
            self.halts.insert(node, halt);
        }
    }

    fn cut_off(&mut self, node: NodeId) {
        let kinds = [CutOff::All, CutOff::Coordinator, CutOff::Nodes, CutOff::Outgoing];
        let what = self.random.choose(&kinds).unwrap_or(CutOff::All);
        let for_ms = self.random.between(60, 1_000);
        self.network.cut_off(node, what, self.now_ms + for_ms);
        self.seen.coverage.isolations += 1;
        self.seen.fault((self.now_ms, node), EventKind::FaultNetwork, || {
            format!("cut off for {for_ms} ms: {what:?}")
        });
    }

    fn slow_down(&mut self, node: NodeId) {
        let for_ms = self.random.between(100, 800);
        if let Some(found) = self.nodes.get_mut(&node) {
            found.slow_until_ms = self.now_ms + for_ms;
        }
        self.seen.coverage.slow_disks += 1;
        self.seen
            .fault((self.now_ms, node), EventKind::FaultDisk, || format!("slow for {for_ms} ms"));
    }

    fn fill_disk(&mut self, node: NodeId) {
        let room = self.random.below(2_000);
        let until_ms = self.now_ms + self.random.between(100, 900);
        if let Some(found) = self.nodes.get_mut(&node) {
            found.disk.set_capacity(Some(found.disk.used_bytes() + room));
            self.full_until.insert(node, until_ms);
        }
        self.seen
            .fault((self.now_ms, node), EventKind::FaultDisk, || format!("{room} bytes are left"));
    }

    fn break_disk(&mut self, node: NodeId) {
        let calls = self.random.below(20);
        if let Some(found) = self.nodes.get_mut(&node) {
            found.disk.fail_operation(found.disk.operations() + calls, Fault::Io);
        }
    }

    fn move_leader(&mut self, node: NodeId) {
        let preferred = self.coordinator.state.preferred_leader().unwrap_or(node);
        let to = if self.random.happens(400) { preferred } else { node };
        self.with_coordinator(|coordinator, round| coordinator.move_to(to, round));
    }

    fn end_session(&mut self, node: NodeId) {
        self.with_coordinator(|coordinator, round| coordinator.expire(node, round));
    }

    /// DeleteRecords to somewhere below the leader's HW, also inside a batch.
    fn delete_records(&mut self) {
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

    fn flip_unclean(&mut self) {
        if self.plan.flips_unclean {
            self.coordinator.unclean = match self.coordinator.unclean {
                UncleanElection::Allowed => UncleanElection::Refused,
                UncleanElection::Refused => UncleanElection::Allowed,
            };
        }
    }

    fn flip_flush(&mut self, node: NodeId) {
        let policies =
            [FlushPolicy::WithCheckpoints, FlushPolicy::AfterMs(50), FlushPolicy::EveryAppend];
        let policy = self.random.choose(&policies).unwrap_or(FlushPolicy::WithCheckpoints);
        if let Some(found) = self.nodes.get_mut(&node) {
            found.flush = policy;
        }
    }
}
