//! What goes wrong, and when.

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::NodeId;
use duolog_log_core::testing::mem_disk::{Crash, Fault};

use crate::checker::Stop;
use crate::coordinator::COORDINATOR;
use crate::network::CutOff;
use crate::plan::timing;
use crate::run::Simulation;

mod changes;

/// How a process ends whose disk was told to stop inside a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    Process,
    Power,
}

/// For how long a disk is full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Full {
    Shortly,
    /// Far longer than a replica may lag.
    Long,
}

impl Simulation {
    /// One thing goes wrong.
    pub(crate) fn strike(&mut self) {
        let state = &self.coordinator.state;
        // Leaders are where it hurts; who is no replica has little to lose.
        let node = match state.leader {
            Some(leader) if self.random.happens(300) => Some(leader),
            _ if self.random.happens(900) => self.random.choose(&state.replicas),
            _ => self.random.choose(&self.plan.nodes),
        };
        let Some(node) = node else { return };
        match self.random.below(140) {
            0..12 => self.kill(node, Stop::Process),
            12..16 => self.stop_cleanly(node),
            16..27 => self.cut_power(node),
            27..30 => self.cut_power_of_several(),
            30..37 => self.halt_inside_a_call(node),
            37..52 => self.cut_off(node),
            52..58 => self.slow_down(node),
            58..62 => self.fill_disk(node, Full::Shortly),
            62..64 => self.fill_disk(node, Full::Long),
            64..67 => self.break_disk(node),
            67..83 => self.move_leader(node),
            83..88 => self.delete_records(),
            88..93 => self.end_session(node),
            93..97 => self.flip_unclean(),
            97..101 => self.flip_flush(node),
            101..117 => self.reassign(),
            117..120 => self.cancel_reassignment(),
            120..129 => self.change_minimum(),
            129..135 => self.set_clock(node),
            _ => self.stall_coordinator(),
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
            self.plan.nodes.clone().into_iter().filter(|_| self.random.happens(600)).collect();
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

    fn fill_disk(&mut self, node: NodeId, full: Full) {
        let room = self.random.below(2_000);
        let for_ms = match full {
            Full::Shortly => self.random.between(100, 900),
            Full::Long => self.random.between(10, 20) * timing::REPLICA_LAG_TIME_MAX_MS,
        };
        if let Some(found) = self.nodes.get_mut(&node) {
            found.disk.set_capacity(Some(found.disk.used_bytes() + room));
            self.full_until.insert(node, self.now_ms + for_ms);
        }
        self.seen.coverage.long_full_disks += u64::from(full == Full::Long);
        self.seen.fault((self.now_ms, node), EventKind::FaultDisk, || {
            format!("{room} bytes are left for {for_ms} ms")
        });
    }

    fn break_disk(&mut self, node: NodeId) {
        let calls = self.random.below(20);
        if let Some(found) = self.nodes.get_mut(&node) {
            found.disk.fail_operation(found.disk.operations() + calls, Fault::Io);
        }
    }

    /// The clock of `node` is set: forward or back, by little or by far more than a replica may lag.
    fn set_clock(&mut self, node: NodeId) {
        let (near, far) = (timing::REPLICA_LAG_TIME_MAX_MS, 3_600_000);
        let by_ms = match self.random.happens(500) {
            true => self.random.between(-near, near),
            false => self.random.between(-far, far),
        };
        if let Some(found) = self.nodes.get_mut(&node) {
            found.clock_ahead_ms += by_ms;
        }
        self.seen.coverage.clock_jumps += 1;
        self.seen.fault((self.now_ms, node), EventKind::FaultClock, || {
            format!("the clock jumps by {by_ms} ms")
        });
    }

    /// The coordinator answers nobody for a while.
    fn stall_coordinator(&mut self) {
        let for_ms = self.random.between(100, 600);
        self.coordinator.stalled_until_ms = self.now_ms + for_ms;
        self.seen.coverage.coordinator_stalls += 1;
        let at = (self.now_ms, COORDINATOR);
        self.seen.fault(at, EventKind::FaultNetwork, || format!("answers nobody for {for_ms} ms"));
    }
}
