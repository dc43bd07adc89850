//! What has to be done now and then: checkpoints, retention, recovery after an unclean stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duolog_log_core::log::Shutdown;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::checkpoints::Checkpoint;
use super::cleaner;
use super::{Partition, Partitions, movement};
use crate::limits::CLOSING_MAX;
use crate::log_dirs::LogDir;
use crate::node::Node;

/// Between two looks for logs that nobody writes to.
const IDLE_CHECK_INTERVAL_MS: i64 = 10_000;

/// Least time between two recovery point checkpoints that rolls ask for.
const SEALED_CHECKPOINT_PAUSE: Duration = Duration::from_secs(1);

/// Between two tries of deletions that the disk refused.
const DELETION_RETRY_MS: i64 = 10_000;

/// Starts the background work of all partitions.
pub fn start(node: &Arc<Node>) {
    // Before anything is compacted.
    if let Err(error) = movement::resume(node) {
        tracing::error!(%error, "moves to other log directories wait for the next start");
    }
    let shared = node.partitions.shared().clone();
    let timed = shared.clone();
    let stopping = node.stopping.clone();
    node.background.spawn(async move {
        tokio::select! {
            () = timed.timer.run() => {}
            () = stopping.cancelled() => {}
        }
    });
    let times = &node.config.housekeeping;
    node.background.spawn(note_sealed(node.partitions.clone(), node.stopping.clone()));
    for (checkpoint, interval_ms) in [
        (Checkpoint::RecoveryPoint, times.flush_checkpoint_interval_ms),
        (Checkpoint::LogStart, times.start_checkpoint_interval_ms),
        (Checkpoint::HighWatermark, times.high_watermark_checkpoint_interval_ms),
    ] {
        let (partitions, last) = (node.partitions.clone(), Arc::new(AtomicU64::new(0)));
        every(node, interval_ms, move || {
            write_changed(partitions.clone(), checkpoint, last.clone())
        });
    }
    let partitions = node.partitions.clone();
    every(node, IDLE_CHECK_INTERVAL_MS, move || rest(partitions.clone()));
    let controller = Arc::downgrade(&node.controller);
    every(node, DELETION_RETRY_MS, move || {
        let controller = controller.upgrade();
        async move {
            if let Some(controller) = controller {
                controller.delete_what_is_left().await;
            }
        }
    });
    let partitions = node.partitions.clone();
    let stopping = node.stopping.clone();
    every(node, times.retention_check_interval_ms, move || {
        keep_house(partitions.clone(), stopping.clone())
    });
    let partitions = node.partitions.clone();
    every(node, times.producer_id_expiration_check_interval_ms, move || {
        // What was not opened since has no producers in memory.
        let opened = partitions.all().into_iter().filter(|partition| partition.was_opened());
        opened.for_each(|partition| partition.expire_producers());
        std::future::ready(())
    });
    node.background.spawn(recover(node.clone()));
    if node.config.housekeeping.compacts {
        node.background.spawn(cleaner::run(node.clone()));
    }
}

/// Runs `work` every `interval_ms` until the node stops.
fn every<F: Future<Output = ()> + Send>(
    node: &Arc<Node>,
    interval_ms: i64,
    work: impl Fn() -> F + Send + 'static,
) {
    let period = Duration::from_millis(interval_ms.max(1).unsigned_abs());
    let stopping = node.stopping.clone();
    node.background.spawn(async move {
        let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                _ = ticks.tick() => work().await,
            }
        }
    });
}

/// Writes a checkpoint unless it would say what it said `last`.
async fn write_changed(partitions: Arc<Partitions>, checkpoint: Checkpoint, last: Arc<AtomicU64>) {
    let fingerprint = checkpoint.fingerprint(&partitions);
    if last.load(Ordering::Relaxed) != fingerprint
        && write(partitions, checkpoint).await == Written::Yes
    {
        last.store(fingerprint, Ordering::Relaxed);
    }
}

/// Writes the recovery points soon after a sealed segment was synced: what is damaged later below
/// them costs nothing behind it.
async fn note_sealed(partitions: Arc<Partitions>, stopping: CancellationToken) {
    let work = async {
        loop {
            partitions.shared().seal_synced.notified().await;
            write(partitions.clone(), Checkpoint::RecoveryPoint).await;
            // One file holds all partitions: many rolls have it written once.
            tokio::time::sleep(SEALED_CHECKPOINT_PAUSE).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = stopping.cancelled() => {}
    }
}

/// Whether a checkpoint is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Yes,
    No,
}

async fn write(partitions: Arc<Partitions>, checkpoint: Checkpoint) -> Written {
    let written = tokio::task::spawn_blocking(move || checkpoint.write(&partitions)).await;
    match written.map_err(std::io::Error::other) {
        Ok(Ok(())) => return Written::Yes,
        Ok(Err(error)) => tracing::error!(?checkpoint, %error, "cannot write a checkpoint"),
        Err(error) => tracing::error!(?checkpoint, %error, "cannot write a checkpoint"),
    }
    Written::No
}

/// Lets logs that nobody writes to give their memory back.
async fn rest(partitions: Arc<Partitions>) {
    for partition in partitions.all().into_iter().chain(partitions.metadata()) {
        partition.rest_when_idle();
    }
}

/// Has every partition look for what is too old now; does not wait.
pub fn keep_house_now(node: &Node) {
    node.background.spawn(keep_house(node.partitions.clone(), node.stopping.clone()));
}

/// Lets every partition look for what is too old; opens those that nobody has used yet, one by one,
/// but none that was never written.
async fn keep_house(partitions: Arc<Partitions>, stopping: CancellationToken) {
    let written = |partition: &Arc<Partition>| !partition.is_untouched() && !partition.is_offline();
    for partition in partitions.all().into_iter().chain(partitions.metadata()).filter(written) {
        if stopping.is_cancelled() {
            return;
        }
        match partition.reader().await {
            Ok(_) => partition.keep_house(),
            Err(error) => {
                tracing::debug!(topic = %partition.topic, partition = partition.index, %error,
                    "cannot open");
            }
        }
    }
}

/// In directories that were not left cleanly, recovers every log, also those that nobody asks for: only
/// then may the next stop be called clean.
async fn recover(node: Arc<Node>) {
    let shared = node.partitions.shared();
    let mut failed = Vec::new();
    for partition in node.partitions.all().into_iter().filter(|one| !one.is_untouched()) {
        let dir = partition.log_dir();
        if !dir.is_online() || dir.shutdown() == Shutdown::Clean {
            continue;
        }
        if node.stopping.is_cancelled() {
            return;
        }
        // Who cannot be opened has been told of, and keeps no other from its recovery.
        if partition.reader().await.is_err() {
            failed.push(dir);
        }
    }
    let whole = |dir: &&Arc<LogDir>| !failed.iter().any(|failed| Arc::ptr_eq(failed, dir));
    shared.log_dirs.online().filter(whole).for_each(|dir| dir.set_recovered());
}

/// Ends the background work, closes every log for good, writes the checkpoints, and in each directory
/// the marker of a clean stop if it was one. The metadata log is the last.
pub async fn stop(node: &Node) {
    let partitions = &node.partitions;
    node.background.close();
    node.background.wait().await;
    let dirs = &partitions.shared().log_dirs;
    let mut unclean: Vec<_> =
        dirs.online().filter(|dir| !dir.is_recovered()).map(|dir| dir.path().to_owned()).collect();
    let mut closing = JoinSet::new();
    let open = partitions.all().into_iter().filter(|partition| !partition.is_offline());
    for partition in open {
        if closing.len() >= CLOSING_MAX {
            // A task that panics ends the process.
            unclean.extend(closing.join_next().await.and_then(Result::ok).flatten());
        }
        closing.spawn(stop_one(partition));
    }
    while let Some(closed) = closing.join_next().await {
        unclean.extend(closed.ok().flatten());
    }
    if let Some(metadata) = partitions.metadata() {
        unclean.extend(stop_one(metadata).await);
    }
    let mut written = true;
    for checkpoint in [Checkpoint::RecoveryPoint, Checkpoint::LogStart, Checkpoint::HighWatermark] {
        written &= write(partitions.clone(), checkpoint).await == Written::Yes;
    }
    for dir in dirs.online().filter(|dir| written && !unclean.iter().any(|at| at == dir.path())) {
        if let Err(error) = dir.mark_clean() {
            tracing::error!(directory = %dir.path().display(), %error,
                "cannot note the clean stop");
        }
    }
}

/// Closes a log for good; returns its directory if the next start has to scan it.
async fn stop_one(partition: Arc<Partition>) -> Option<PathBuf> {
    let closed = partition.stop().await;
    if let Err(error) = &closed {
        tracing::error!(topic = %partition.topic, partition = partition.index, %error,
            "cannot close the log");
    }
    closed.is_err().then(|| partition.log_dir().path().to_owned())
}

#[cfg(test)]
mod tests;
