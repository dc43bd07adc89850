//! Log directories that fail while the node runs: their partitions are refused from then on.
//!
//! What is in other directories is served as before. Without the directory of the metadata log, or
//! without any, the node stops. Source: KIP-112; ReplicaManager.handleLogDirFailure.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use duolog_log_core::event::{Event, EventKind};
use duolog_log_core::log::LogError;
use tokio_util::sync::CancellationToken;

use super::append::AppendError;
use super::task::{Command, Owner};
use super::{Partition, Partitions};
use crate::clock;
use crate::instruments::Instruments;
use crate::log_dirs::LogDir;

/// Takes offline what fails, until the node stops, or has to.
pub(crate) async fn watch(
    partitions: Arc<Partitions>,
    instruments: Arc<Instruments>,
    stopping: CancellationToken,
    lost: CancellationToken,
) {
    let dirs = &partitions.shared().log_dirs;
    loop {
        let dir = tokio::select! {
            () = stopping.cancelled() => return,
            dir = dirs.next_failed() => dir,
        };
        take_offline(&partitions, &instruments, &dir);
        if dirs.loss().is_some() {
            lost.cancel();
        }
    }
}

fn take_offline(partitions: &Partitions, instruments: &Instruments, dir: &Arc<LogDir>) {
    let (path, why) = (dir.path().display(), dir.failure().unwrap_or_default());
    let is_here = |one: &Arc<Partition>| Arc::ptr_eq(&one.log_dir(), dir);
    let all = partitions.all().into_iter().chain(partitions.metadata()).filter(is_here);
    let all: Vec<_> = all.collect();
    tracing::error!(directory = %path, error = why, partitions = all.len(),
        "the log directory is offline: all requests to its partitions are refused until the next start");
    all.iter().for_each(|partition| partition.go_offline());
    instruments.events.emit(|| {
        let event = Event::new(EventKind::LogDirOffline, clock::now_ms());
        event.cause(format!("{path}: {why}"))
    });
}

impl Partition {
    /// Lets go of the log, whose directory has failed.
    fn go_offline(self: &Arc<Self>) {
        // What is in a directory that cannot be read is not nothing.
        self.untouched.store(false, Ordering::Release);
        self.command(Command::GoOffline);
    }

    /// What a partition is refused with whose directory cannot be used.
    pub(super) fn offline_error(&self) -> AppendError {
        LogError::Storage(format!("log directory {} is offline", self.log_dir().path().display()))
            .into()
    }
}

impl Owner {
    /// Nothing is written any more. Returns whether the log is to be let go of.
    pub(super) fn go_offline(&mut self, partition: &Partition) -> bool {
        if !partition.is_offline() {
            // It has moved to another directory meanwhile.
            return false;
        }
        let error = partition.offline_error();
        if self.is_awaited() {
            self.fail(partition, &error.to_string());
        } else {
            partition.published.set_failed(&error.to_string());
        }
        true
    }
}
