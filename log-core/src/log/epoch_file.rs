//! The file of a log's leader epochs, which flushes write and nobody else.
//!
//! Until a flush has written it, a start finds newer epochs in the batches, which are scanned from
//! the recovery point on; entries that were cut off are cut off again.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::replication::epochs::LeaderEpochs;
use crate::storage::checkpoint::{self, Durability};
use crate::storage::disk::{Disk, DiskResult};

/// Lets one flush at a time write the file, none with older epochs after newer ones, and none once
/// the log is closed: its folder may be another log's by then.
#[derive(Debug, Default)]
pub(super) struct EpochFile {
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The file holds the epochs after so many changes, or more.
    Open {
        changes_written: u64,
    },
    Closed,
}

impl Default for State {
    fn default() -> Self {
        Self::Open { changes_written: 0 }
    }
}

impl EpochFile {
    /// Replaces the file in `dir` by `epochs`, synced, as they were after `changes` changes of an
    /// open log; does nothing when that would be no news. Waits for another one's write.
    pub(super) fn write(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        epochs: &LeaderEpochs,
        changes: u64,
    ) -> DiskResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Open { changes_written } if *changes_written < changes => {
                checkpoint::write_leader_epochs(disk, dir, epochs, Durability::Synced)?;
                *changes_written = changes;
                Ok(())
            }
            State::Open { .. } | State::Closed => Ok(()),
        }
    }

    /// Lets nobody write from now on. Waits for a write that is under way.
    pub(super) fn close(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Closed;
    }
}
