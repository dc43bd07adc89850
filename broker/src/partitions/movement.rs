//! Moving partitions to other log directories while they are written and read.
//!
//! The copy grows in `topic-partition.<id>-future` of the other directory. That folder is also what says
//! that a move is wanted: a start goes on with it. Once the copy has caught up:
//!
//! 1. the metadata notes that it is about to take the log's place, and the checkpoints of its directory
//!    name the partition;
//! 2. the owner, between two rounds of appends, has the rest copied and synced and the folder renamed
//!    ([`Relocation::finish`]), and goes on there;
//! 3. the old folder is renamed, to be removed later, and the metadata notes that the partition is there.
//!
//! A start that finds the note takes the new folder if it has its name, and else the old one. Until 3
//! ends it refuses to go on without the new directory. Source: KIP-113, KIP-858; ReplicaAlterLogDirsThread.

mod carry;

use std::path::PathBuf;
use std::sync::Arc;

use duolog_log_core::log::LogError;
use duolog_log_core::log::relocation::Progress;
use duolog_log_core::storage::checkpoint::{Durability, read_topic_id, write_topic_id};
use duolog_log_core::storage::disk::{DiskError, DiskResult, EntryKind};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Partition;
use super::deletion::{self, parse_folder};
use crate::log_dirs::LogDir;
use crate::node::Node;
use crate::random;

use carry::Carrier;
pub(super) use carry::Relocating;

/// Behind the name of a folder that is to take a partition's place.
const FUTURE_SUFFIX: &str = "-future";

/// A move that is under way.
#[derive(Debug)]
pub struct Movement {
    target: Arc<LogDir>,
    folder: PathBuf,
    state: Mutex<State>,
    /// Nobody wants it any more.
    stop: CancellationToken,
    /// Its end, whichever.
    done: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    progress: Arc<Progress>,
    /// From now on it is not given up.
    commits: bool,
}

impl Movement {
    fn to(target: Arc<LogDir>, folder: PathBuf) -> Arc<Self> {
        let (stop, done) = (CancellationToken::new(), CancellationToken::new());
        Arc::new(Self { target, folder, state: Mutex::default(), stop, done })
    }

    /// Where to.
    pub fn target(&self) -> &Arc<LogDir> {
        &self.target
    }

    /// How far the copy is.
    pub fn progress(&self) -> Arc<Progress> {
        self.state.lock().progress.clone()
    }

    fn is_wanted(&self) -> bool {
        !self.stop.is_cancelled()
    }

    /// Gives it up, unless it is being committed.
    fn give_up(&self) {
        if !self.state.lock().commits {
            self.stop.cancel();
        }
    }

    /// Whether it is still wanted; it is carried out then.
    fn commit(&self) -> bool {
        let mut state = self.state.lock();
        state.commits = self.is_wanted();
        state.commits
    }
}

impl Partition {
    /// The move that is under way.
    pub fn movement(&self) -> Option<Arc<Movement>> {
        self.movement.lock().clone()
    }

    /// Whether its files have to stay what they are.
    pub(super) fn is_moving(&self) -> bool {
        self.movement.lock().is_some()
    }

    /// Whether the checkpoints of `dir` have to name it.
    pub(super) fn is_noted_in(&self, dir: &Arc<LogDir>) -> bool {
        let arrives = |movement: &Arc<Movement>| {
            Arc::ptr_eq(&movement.target, dir) && movement.state.lock().commits
        };
        Arc::ptr_eq(&self.log_dir(), dir) || self.movement().as_ref().is_some_and(arrives)
    }

    /// Gives a move up, and waits for its end; one that is being committed is carried out.
    pub(super) async fn end_movement(&self) {
        if let Some(movement) = self.movement() {
            movement.give_up();
            movement.done.cancelled().await;
        }
    }
}

/// Has `partition` moved to `target`: the copy is begun once this returns. One that was on its way to
/// another directory no longer is; where it is already it stays.
///
/// Errors: the other directory takes no folder.
pub async fn begin(
    node: &Arc<Node>,
    partition: &Arc<Partition>,
    target: &Arc<LogDir>,
) -> Result<(), LogError> {
    loop {
        let held = partition.movement();
        match held {
            Some(held) if Arc::ptr_eq(&held.target, target) && held.is_wanted() => return Ok(()),
            Some(held) => {
                held.give_up();
                held.done.cancelled().await;
            }
            None if Arc::ptr_eq(&partition.log_dir(), target) => return Ok(()),
            None => {
                let movement = Movement::to(target.clone(), future_folder(partition, target)?);
                if !take_up(partition, &movement) {
                    continue;
                }
                let made = make_folder(partition, &movement).await;
                if let Err(error) = made {
                    end(partition, &movement);
                    return Err(error);
                }
                let (node, partition) = (node.clone(), partition.clone());
                let carrier = Carrier { node: node.clone(), partition, movement };
                node.background.spawn(carrier.run());
                return Ok(());
            }
        }
    }
}

/// Whether `movement` is the only one of its partition.
fn take_up(partition: &Partition, movement: &Arc<Movement>) -> bool {
    let mut held = partition.movement.lock();
    let is_first = held.is_none();
    held.get_or_insert_with(|| movement.clone());
    is_first
}

fn end(partition: &Partition, movement: &Movement) {
    *partition.movement.lock() = None;
    movement.done.cancel();
}

fn future_folder(partition: &Partition, target: &LogDir) -> Result<PathBuf, LogError> {
    let failed = |error| LogError::from(DiskError::new("name", target.path(), error));
    let id = random::bytes::<16>().map_err(failed)?.map(|byte| format!("{byte:02x}")).concat();
    let suffix = format!("-{}.{id}{FUTURE_SUFFIX}", partition.index);
    Ok(target.path().join(deletion::named(&partition.topic, &suffix)))
}

async fn make_folder(partition: &Partition, movement: &Movement) -> Result<(), LogError> {
    let disk = partition.shared.log_dirs.disk().clone();
    let (folder, root) = (movement.folder.clone(), movement.target.path().to_owned());
    let id = partition.topic_id;
    blocking(move || -> Result<(), LogError> {
        disk.create_dir_all(&folder)?;
        write_topic_id(&*disk, &folder, id, Durability::Synced)?;
        Ok(disk.sync_dir(&root)?)
    })
    .await?
}

/// Goes on with the moves that the last run left, and removes copies that nobody wants. Blocks.
pub fn resume(node: &Arc<Node>) -> DiskResult<()> {
    let shared = node.partitions.shared();
    let disk = shared.log_dirs.disk();
    let image = node.controller.image().clone();
    for dir in shared.log_dirs.online() {
        for entry in disk.list(dir.path())? {
            let Some(index) = parse_future(&entry.name) else { continue };
            if entry.kind != EntryKind::Dir {
                continue;
            }
            let path = dir.path().join(&entry.name);
            // A long name of a topic is cut.
            let topic = read_topic_id(&**disk, &path)?.and_then(|id| image.topic_by_id(id));
            let Some(partition) = topic.and_then(|topic| node.partitions.find(topic.id, index))
            else {
                disk.remove_dir_all(&path)?;
                continue;
            };
            if partition.is_offline() {
                continue;
            }
            let movement = Movement::to(dir.clone(), path.clone());
            let is_there = Arc::ptr_eq(&partition.log_dir(), dir);
            if is_there || !take_up(&partition, &movement) {
                disk.remove_dir_all(&path)?;
                continue;
            }
            let carrier = Carrier { node: node.clone(), partition, movement };
            node.background.spawn(carrier.run());
        }
    }
    Ok(())
}

/// The partition of a folder `topic-partition.<id>-future`.
fn parse_future(name: &str) -> Option<i32> {
    let (folder, _id) = name.strip_suffix(FUTURE_SUFFIX)?.rsplit_once('.')?;
    Some(parse_folder(folder)?.1)
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LogError> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|error| LogError::Storage(error.to_string()))
}

#[cfg(test)]
mod tests;
