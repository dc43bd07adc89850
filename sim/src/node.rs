//! One node: a disk, and while it is up a process with a log and a replication machine.

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::{LeaderEpoch, NodeId};
use duolog_log_core::log::{LogError, Shutdown};
use duolog_log_core::replication::election::Restart;
use duolog_log_core::replication::partition::{Partition, PartitionRules};
use duolog_log_core::testing::mem_disk::MemDisk;

use crate::checker::Stop;
use crate::message::{Address, Envelope, Message};
use crate::observer::Observer;
use crate::plan::{FlushPolicy, Plan, Planted, timing};
use crate::storage;
use crate::trace::ReplicaView;

mod following;
mod leading;
mod process;

pub use process::Process;

/// What a node works with during one step.
pub struct Step<'a> {
    pub now_ms: i64,
    /// What the node takes for the time of day.
    pub clock_ms: i64,
    pub node: NodeId,
    pub out: &'a mut Vec<Envelope>,
    pub seen: &'a mut Observer,
}

impl Step<'_> {
    fn send(&mut self, to: Address, message: Message) {
        self.out.push(Envelope { from: Address::Node(self.node), to, message });
    }

    fn event(&mut self, kind: EventKind, at: (i64, LeaderEpoch), cause: impl FnOnce() -> String) {
        self.seen.event((self.now_ms, self.node), kind, at, cause);
    }
}

/// One replica's machine.
pub struct Node {
    pub id: NodeId,
    pub disk: MemDisk,
    pub process: Option<Process>,
    pub flush: FlushPolicy,
    /// How it stopped last.
    pub stop: Stop,
    /// Whether it may have lost unsynced writes since it last registered.
    doubt: Restart,
    /// Until then everything that it gets waits.
    pub slow_until_ms: i64,
    /// How far its clock is ahead.
    pub clock_ahead_ms: i64,
    /// Whether a start is planned.
    pub starting: bool,
    knows_boots: bool,
    bounds: storage::Bounds,
    rules: PartitionRules,
    plan: NodePlan,
}

#[derive(Clone, Copy)]
struct NodePlan {
    truncation: duolog_log_core::replication::partition::TruncationRule,
    planted: Option<Planted>,
}

impl Node {
    pub fn new(id: NodeId, plan: &Plan) -> Self {
        Self {
            id,
            disk: MemDisk::new(),
            process: None,
            flush: plan.flush,
            stop: Stop::Clean,
            doubt: Restart::LogKept,
            slow_until_ms: 0,
            clock_ahead_ms: 0,
            starting: false,
            knows_boots: plan.knows_boots,
            bounds: storage::Bounds {
                segment_bytes: plan.segment_bytes,
                retention_bytes: plan.retention_bytes,
            },
            rules: PartitionRules {
                min_insync_replicas: plan.min_insync_replicas,
                replica_lag_time_max_ms: timing::REPLICA_LAG_TIME_MAX_MS,
            },
            plan: NodePlan { truncation: plan.truncation, planted: plan.planted },
        }
    }

    /// Opens the log and registers. `nonce` names this start.
    pub fn start(&mut self, nonce: u64, step: &mut Step<'_>) -> Result<(), LogError> {
        let shutdown = match self.stop {
            Stop::Clean => Shutdown::Clean,
            Stop::Process | Stop::InsideCall | Stop::Power { .. } => Shutdown::Unclean,
        };
        let opened = storage::open(&self.disk, shutdown, self.bounds, step.now_ms)?;
        let Some(found) = storage::read_all(&opened.log) else {
            step.seen.checker.violate(|| format!("node {} cannot read its log", self.id));
            return Ok(());
        };
        step.seen.checker.reopened(self.id, self.stop, found);
        let replica = self.replica(&opened);
        step.seen.checker.restarted_at(self.id, self.stop, replica.high_watermark().0);
        let forgets = self.plan.planted == Some(Planted::EpochsForgottenAfterCrash)
            && self.stop != Stop::Clean;
        let mut process = Process::new(opened.log, replica, nonce, self.doubt);
        process.planted = self.plan.planted;
        process.flush = self.flush;
        if forgets {
            process.epochs_known_from = process.log.log_end_offset();
        }
        let end = process.log.log_end_offset();
        step.event(EventKind::FaultRestart, (end, LeaderEpoch::UNKNOWN), || {
            format!("log recovered up to {end}, {}", process.epochs_in_words())
        });
        process.register(step);
        self.process = Some(process);
        Ok(())
    }

    fn replica(&self, opened: &storage::Opened) -> Partition {
        let position = storage::position(&opened.log);
        Partition::new(self.id, self.rules, position, opened.high_watermark)
            .truncating_by(self.plan.truncation)
    }

    /// Drops the log of a process that has heard that it is no replica any more, and begins with an empty one.
    fn drop_log(&mut self, step: &mut Step<'_>) {
        let Some(old) = self.process.take_if(|process| process.is_removed) else { return };
        let end = old.log.log_end_offset();
        let opened = storage::drop_log(&self.disk, old.log)
            .and_then(|()| storage::open(&self.disk, Shutdown::Clean, self.bounds, step.now_ms));
        match opened {
            Ok(opened) => {
                step.seen.checker.started_anew(self.id, 0);
                step.seen.coverage.logs_dropped += 1;
                step.event(EventKind::LogDelete, (end, LeaderEpoch::UNKNOWN), || {
                    "the whole log: no replica any more".to_owned()
                });
                let replica = self.replica(&opened);
                let (log, is_removed) = (opened.log, false);
                self.process = Some(Process { log, replica, is_removed, ..old });
            }
            Err(error) => {
                self.stopped(Stop::InsideCall);
                self.failed(&error, step);
            }
        }
    }

    /// Gives a message to the process.
    pub fn handle(&mut self, from: Address, message: Message, step: &mut Step<'_>) {
        self.run(step, |process, disk, step| process.handle(disk, from, message, step));
        self.drop_log(step);
        if self.process.as_ref().is_some_and(|process| process.broker_epoch.is_some()) {
            self.doubt = Restart::LogKept;
        }
    }

    /// Lets the process look after itself.
    pub fn upkeep(&mut self, step: &mut Step<'_>) {
        let flush = self.flush;
        self.run(step, |process, disk, step| {
            process.flush = flush;
            process.upkeep(disk, step)
        });
    }

    /// Lets a follower ask again.
    pub fn poll(&mut self, step: &mut Step<'_>) {
        self.run(step, |process, disk, step| process.follow(disk, step));
    }

    /// A broken disk ends the process, as it would end a node's writing.
    pub fn run(
        &mut self,
        step: &mut Step<'_>,
        act: impl FnOnce(&mut Process, &MemDisk, &mut Step<'_>) -> Result<(), LogError>,
    ) {
        let Some(process) = &mut self.process else { return };
        if let Err(error) = act(process, &self.disk, step) {
            self.failed(&error, step);
        }
    }

    fn failed(&mut self, error: &LogError, step: &mut Step<'_>) {
        step.event(EventKind::FaultDisk, (-1, LeaderEpoch::UNKNOWN), || error.to_string());
        match error {
            LogError::StorageFull(_) => step.seen.coverage.disk_full += 1,
            _ => step.seen.coverage.disk_errors += 1,
        }
        if !self.disk.is_halted() {
            self.stopped(Stop::InsideCall);
            self.disk = self.disk.kill();
        }
    }

    /// The process is gone, so.
    pub fn stopped(&mut self, stop: Stop) {
        self.process = None;
        self.stop = stop;
        let kept = match stop {
            Stop::Clean => true,
            Stop::Process | Stop::InsideCall => self.knows_boots,
            Stop::Power { .. } => false,
        };
        if !kept {
            self.doubt = Restart::LogInDoubt;
        }
    }

    /// Up to where the log is on disk.
    pub fn synced(&self) -> i64 {
        match (&self.process, self.stop) {
            (Some(process), _) => process.log.recovery_point(),
            (None, Stop::Power { synced }) => synced,
            (None, _) => 0,
        }
    }

    pub fn view(&self) -> ReplicaView {
        let replica = self.process.as_ref().map(|process| &process.replica);
        let offset = |of: fn(&Partition) -> duolog_log_core::ids::Offset| {
            replica.map(of).unwrap_or_default()
        };
        ReplicaView {
            node: self.id,
            role: replica.map(Partition::role),
            leader_epoch: replica.map_or(LeaderEpoch::UNKNOWN, Partition::leader_epoch),
            log_start_offset: offset(Partition::log_start_offset),
            high_watermark: offset(Partition::high_watermark),
            log_end_offset: offset(Partition::log_end_offset),
            in_sync_replicas: replica.map(|r| r.in_sync_replicas().collect()).unwrap_or_default(),
        }
    }
}
