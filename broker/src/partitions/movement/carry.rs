//! Carrying a move out: copy, let the owner go on there, leave the old folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;
use duolog_log_core::log::compaction::{Pace, Stopped};
use duolog_log_core::log::relocation::{Relocation, RelocationError};
use duolog_log_core::log::{LogError, OpenHint};
use duolog_log_core::storage::disk::DiskResult;
use tokio_util::sync::CancellationToken;

use super::{Movement, blocking, end};
use crate::clock;
use crate::controller::ControllerError;
use crate::data_dir::DirectoryId;
use crate::instruments::Passage;
use crate::log_dirs::LogDir;
use crate::node::Node;
use crate::partitions::append::AppendError;
use crate::partitions::task::{Command, Owner};
use crate::partitions::{Partition, checkpoints, deletion, folder};

/// A copy that lacks less has caught up: the owner copies the rest between two rounds.
const CAUGHT_UP_BYTES: u64 = 256 << 10;

/// Before a move is tried again that the disk refused for lack of room, or a gate.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What the owner needs to go on elsewhere.
#[derive(Debug)]
pub(in crate::partitions) struct Relocating {
    relocation: Relocation,
    target: Arc<LogDir>,
    place: PathBuf,
    hint: OpenHint,
}

/// Why a move does not come to its end now.
enum Obstacle {
    /// It is not wanted any more, or the node stops.
    Stopped,
    /// There is no room for now.
    Retry(AppendError),
    /// It cannot be.
    Failed(AppendError),
}

impl From<AppendError> for Obstacle {
    fn from(error: AppendError) -> Self {
        match &error {
            AppendError::Deleted | AppendError::Stopping => Self::Stopped,
            AppendError::Gate => Self::Retry(error),
            AppendError::Log(log) if log.is_retriable() => Self::Retry(error),
            _ => Self::Failed(error),
        }
    }
}

impl From<RelocationError> for Obstacle {
    fn from(error: RelocationError) -> Self {
        match error {
            RelocationError::Stopped => Self::Stopped,
            RelocationError::Log(error) | RelocationError::Torn(error) => {
                AppendError::Log(error).into()
            }
        }
    }
}

impl From<LogError> for Obstacle {
    fn from(error: LogError) -> Self {
        AppendError::Log(error).into()
    }
}

impl From<ControllerError> for Obstacle {
    fn from(error: ControllerError) -> Self {
        Self::Failed(AppendError::Log(LogError::Storage(error.to_string())))
    }
}

/// The parts of one move.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    pub(super) node: Arc<Node>,
    pub(super) partition: Arc<Partition>,
    pub(super) movement: Arc<Movement>,
}

impl Carrier {
    /// Moves the partition, or removes the copy.
    pub(super) async fn run(self) {
        let (node, partition, movement) = (&self.node, &self.partition, &self.movement);
        let old = partition.dir();
        let (topic, index) = (&partition.topic, partition.index);
        let to = movement.target.path().display();
        match self.until_moved().await {
            Ok(()) => {
                tracing::info!(%topic, partition = index, %to, "moved to another log directory");
                self.leave(old).await;
            }
            // The next start goes on.
            Err(_)
                if movement.is_wanted()
                    && (node.stopping.is_cancelled() || partition.is_offline()) => {}
            Err(obstacle) => {
                if let Obstacle::Failed(error) | Obstacle::Retry(error) = obstacle {
                    tracing::error!(%topic, partition = index, %to, %error,
                        "not moved to another log directory");
                }
                self.remove_copy().await;
            }
        }
        end(partition, movement);
    }

    async fn remove_copy(&self) {
        let disk = self.node.partitions.shared().log_dirs.disk().clone();
        let folder = self.movement.folder.clone();
        let removed = blocking(move || disk.remove_dir_all(&folder)).await;
        if let Ok(Err(error)) = removed
            && !error.is_not_found()
        {
            tracing::error!(%error, "cannot remove a copy that is not wanted any more");
        }
    }

    /// Resolves once nobody wants the move any more, or the node stops.
    async fn stopped(&self) {
        tokio::select! {
            () = self.movement.stop.cancelled() => {}
            () = self.node.stopping.cancelled() => {}
        }
    }

    /// Waits at a gate.
    async fn pass(&self, point: GatePoint) -> Result<(), Obstacle> {
        let passage = tokio::select! {
            () = self.stopped() => return Err(Obstacle::Stopped),
            passage = self.partition.gate(point, self.partition.offsets().log_end) => passage,
        };
        match passage {
            Passage::Go => Ok(()),
            Passage::Drop | Passage::Fail => Err(AppendError::Gate.into()),
        }
    }

    async fn until_moved(&self) -> Result<(), Obstacle> {
        let movers = &self.node.partitions.shared().movers;
        let _turn = tokio::select! {
            () = self.stopped() => return Err(Obstacle::Stopped),
            turn = movers.acquire() => turn.map_err(|_| Obstacle::Stopped)?,
        };
        // What an earlier run of the process copied counts in the first attempt.
        let dir = self.partition.log_dir();
        let mut proven_end = dir.hints().of(&self.partition).recovery_point.unwrap_or(0);
        loop {
            match self.attempt(proven_end).await {
                Err(Obstacle::Retry(error)) => {
                    let (topic, index) = (&self.partition.topic, self.partition.index);
                    tracing::warn!(%topic, partition = index, %error,
                        "moving to another log directory is tried again");
                }
                outcome => return outcome,
            }
            proven_end = 0;
            self.movement.state.lock().commits = false;
            tokio::select! {
                () = self.stopped() => return Err(Obstacle::Stopped),
                () = tokio::time::sleep(RETRY_PAUSE) => {}
            }
        }
    }

    async fn attempt(&self, proven_end: i64) -> Result<(), Obstacle> {
        // Through the owner, which from now on lets nothing take the place of segments.
        self.partition.ask(Command::Open).await?;
        let relocation = self.copied(proven_end).await?;
        if !self.movement.commit() {
            return Err(Obstacle::Stopped);
        }
        self.note(Some(self.movement.target.id())).await?;
        let replaced = self.replace(relocation).await;
        if replaced.is_err() && self.partition.published.failure().is_none() {
            self.note(None).await?;
        }
        replaced
    }

    async fn note(&self, target: Option<DirectoryId>) -> Result<(), ControllerError> {
        let (controller, partition) = (&self.node.controller, &self.partition);
        controller.note_move(partition.topic_id, partition.index, target).await
    }

    /// Lets the copy take the log's place.
    async fn replace(&self, relocation: Relocation) -> Result<(), Obstacle> {
        let (all, target) = (self.node.partitions.clone(), self.movement.target.clone());
        blocking(move || checkpoints::write_all_in(&target, &all))
            .await?
            .map_err(LogError::from)?;
        self.pass(GatePoint::LogDirReplaceBefore).await?;
        let (partition, target) = (&self.partition, self.movement.target.clone());
        let relocating = Box::new(Relocating {
            relocation,
            place: target.path().join(folder(&partition.topic, partition.index)),
            target,
            hint: partition.reopen_hint(),
        });
        Ok(partition.ask(|reply| Command::Relocate(relocating, reply)).await?)
    }

    /// A copy that has caught up.
    async fn copied(&self, proven_end: i64) -> Result<Relocation, Obstacle> {
        let partition = &self.partition;
        let reader = partition.open_reader().ok_or(Obstacle::Stopped)?;
        let disk = self.node.partitions.shared().log_dirs.disk().clone();
        let (from, to) = (partition.dir(), self.movement.folder.clone());
        let (identity, run) = (partition.identity(), partition.shared.leader_epoch());
        let started = blocking(move || {
            let folders = (from.as_path(), to.as_path());
            Relocation::start(disk, &reader, folders, &identity, run, proven_end)
        });
        let mut relocation = started.await??;
        self.movement.state.lock().progress = relocation.progress();
        loop {
            self.pass(GatePoint::LogDirCopy).await?;
            let mut pace = UntilStopped {
                wanted: self.movement.stop.clone(),
                node: self.node.stopping.clone(),
            };
            let (bytes, back) = blocking(move || (relocation.copy(&mut pace), relocation)).await?;
            relocation = back;
            if bytes? < CAUGHT_UP_BYTES {
                return Ok(relocation);
            }
        }
    }

    /// The old folder goes, and the metadata forgets it.
    async fn leave(&self, old: PathBuf) {
        // Whatever the gate says, the log is in the other directory now. A start finds what is left.
        if let Err(Obstacle::Stopped) = self.pass(GatePoint::LogDirReplaceAfter).await {
            return;
        }
        let (topic, index) = (&self.partition.topic, self.partition.index);
        let (shared, all) = (self.node.partitions.shared().clone(), self.node.partitions.clone());
        let delay_ms = self.partition.config().file_delete_delay_ms;
        let renamed = blocking(move || -> DiskResult<()> {
            deletion::leave_folder(&shared, &old, delay_ms)?;
            checkpoints::write_all(&all)
        });
        let renamed = renamed.await.and_then(|renamed| Ok(renamed?));
        if let Err(error) = renamed {
            // The note stays: the next start removes it.
            tracing::error!(%topic, partition = index, %error,
                "cannot remove the folder in the old log directory");
            return;
        }
        let (id, dir) = (self.partition.topic_id, self.movement.target.id());
        if let Err(error) = self.node.controller.note_moved(id, index, dir).await {
            tracing::warn!(%topic, partition = index, %error,
                "a move stays noted until the next start");
        }
    }
}

impl Owner {
    /// Goes on in another folder, once it holds all that this one does.
    pub(in crate::partitions) async fn relocate(
        &mut self,
        partition: &Arc<Partition>,
        relocating: Relocating,
    ) -> Result<(), AppendError> {
        if let Some(text) = &self.failed {
            return Err(LogError::Storage(text.clone()).into());
        }
        let Relocating { mut relocation, target, place, hint } = relocating;
        let last = self.log.last_state()?;
        let now_ms = clock::now_ms();
        let finished = blocking(move || relocation.finish(&last, &place, hint, now_ms)).await?;
        let moved = match finished {
            Ok(moved) => moved,
            Err(RelocationError::Torn(error)) => {
                self.fail(partition, &error.to_string());
                return Err(error.into());
            }
            Err(RelocationError::Log(error)) => return Err(error.into()),
            Err(RelocationError::Stopped) => return Err(AppendError::Stopping),
        };
        let before = std::mem::replace(&mut self.log, moved);
        self.log.take_place_of(before);
        partition.log_dir().partition_went();
        target.partition_came();
        partition.log_dir.store(target);
        partition.reader.store(Some(Arc::new(self.log.reader())));
        self.forget_flush();
        partition.published.set_synced(self.log.recovery_point());
        self.advance(partition);
        // Whoever waits for the disk hears of no flush in the old folder any more.
        partition.waiters.wake();
        let cause = partition.log_dir().path().display().to_string();
        partition.emit(EventKind::LogDirMove, Some(self.log.log_end_offset()), Some(&cause));
        Ok(())
    }
}

/// Copies as fast as can be, until nobody wants it or the node stops.
struct UntilStopped {
    wanted: CancellationToken,
    node: CancellationToken,
}

impl Pace for UntilStopped {
    fn passed(&mut self, _bytes: u64) -> Result<(), Stopped> {
        let stopped = self.wanted.is_cancelled() || self.node.is_cancelled();
        if stopped { Err(Stopped) } else { Ok(()) }
    }
}
