//! Threads that make writes durable, off the threads that serve requests.
//!
//! What was appended while one round of syncs ran is in the next: an owner asks for one flush point
//! at a time, so the more there is to do the more each sync covers. Segments that were sealed are
//! synced by a thread of their own: they are large, and no answer waits for them. With gates armed a
//! flush point passes them on its way there and back.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use duolog_log_core::gate::GatePoint;
use duolog_log_core::log::FlushPoint;
use duolog_log_core::storage::disk::DiskError;

use super::Partition;
use super::task::Command;
use crate::instruments::Passage;
use crate::limits::FLUSHES_WAITING_MAX;

#[derive(Debug)]
struct Request {
    partition: Arc<Partition>,
    point: Box<FlushPoint>,
}

/// Hands flush points to the threads, which end with the last handle.
#[derive(Debug)]
pub struct Flusher {
    awaited: SyncSender<Request>,
    sealed: SyncSender<Request>,
}

impl Flusher {
    /// Starts the threads.
    pub fn start() -> std::io::Result<Self> {
        let start = |name: &str| {
            let (sender, receiver) = sync_channel(FLUSHES_WAITING_MAX);
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(move || run(&receiver)).map(|_| sender)
        };
        Ok(Self { awaited: start("duolog-flusher")?, sealed: start("duolog-sealer")? })
    }

    /// Has `point` synced; `partition` is told how that ended.
    pub(super) fn flush(&self, partition: Arc<Partition>, point: Box<FlushPoint>) {
        let thread = if point.is_of_sealed_only() { &self.sealed } else { &self.awaited };
        let refused = thread.try_send(Request { partition, point });
        if let Err(TrySendError::Full(request) | TrySendError::Disconnected(request)) = refused {
            let error = std::io::Error::other("the flusher takes no more work");
            let error = DiskError::new("sync", &request.partition.dir(), error);
            request.partition.sync_ended(request.point, Err(error));
        }
    }
}

fn run(receiver: &Receiver<Request>) {
    while let Ok(Request { partition, point }) = receiver.recv() {
        let outcome = point.sync();
        partition.sync_ended(point, outcome);
    }
}

impl Partition {
    /// Hands a flush point to the flusher, through the gates when there are any.
    pub(super) fn flush(self: &Arc<Self>, point: Box<FlushPoint>) {
        if self.shared.instruments.gates.is_idle() {
            return self.shared.flusher.flush(self.clone(), point);
        }
        let partition = self.clone();
        self.shared.runtime.spawn(async move {
            match partition.gate(GatePoint::FlushBefore, point.offset()).await {
                Passage::Go => partition.shared.flusher.flush(partition.clone(), point),
                Passage::Drop => partition.command(Command::FlushDropped),
                Passage::Fail => partition.command(partition.failed_by_gate(point)),
            }
        });
    }

    /// The flusher is done with `point`.
    fn sync_ended(self: &Arc<Self>, point: Box<FlushPoint>, outcome: Result<(), DiskError>) {
        // A failure is never caught: what is on disk then is not known any more.
        if self.shared.instruments.gates.is_idle() || outcome.is_err() {
            return self.command(Command::SyncEnded(point, outcome));
        }
        let partition = self.clone();
        self.shared.runtime.spawn(async move {
            match partition.gate(GatePoint::FlushAfter, point.offset()).await {
                Passage::Go => partition.command(Command::SyncEnded(point, outcome)),
                Passage::Drop => partition.command(Command::FlushDropped),
                Passage::Fail => partition.command(partition.failed_by_gate(point)),
            }
        });
    }

    fn failed_by_gate(&self, point: Box<FlushPoint>) -> Command {
        let error = DiskError::new("sync", &self.dir(), std::io::Error::other("failed by a gate"));
        Command::SyncEnded(point, Err(error))
    }
}
