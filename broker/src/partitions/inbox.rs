//! What waits for a partition's owner, where the owner is, and who runs it.
//!
//! ```text
//! Closed ──command──▶ Running (opens the log) ──inbox empty──▶ Resting ──command──▶ Running …
//! Running ──Stop──▶ Stopped        Running ──Delete──▶ Gone        Running ──GoOffline──▶ Closed
//! ```
//!
//! Whoever finds the owner at rest takes it along as [`Work`]. A request's thread performs one
//! round of appends itself, since a hand-over to another thread and back costs more than the
//! round; whatever else there is to do is a task's, and so is all that came during that round.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::append::{AppendError, AppendResult};
use super::task::{Command, Owner};
use super::{Partition, open};

/// Commands that wait, and the owner while it has nothing to do.
#[derive(Debug)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Debug)]
struct State {
    commands: VecDeque<Command>,
    owner: OwnerPlace,
}

#[derive(Debug)]
enum OwnerPlace {
    /// The log is not open.
    Closed,
    /// The log is open and nothing waits.
    Resting(Box<Owner>),
    /// A task has it, or a request's thread.
    Running,
    /// The topic was deleted.
    Gone,
    /// The node has stopped: the log is closed for good.
    Stopped,
}

/// Why nothing more is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The topic was deleted.
    Deleted,
    /// The node stops.
    Stopped,
}

/// How the owner goes on after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// With the log open.
    Serve,
    /// The log was closed, since the node stops.
    Stopped,
    /// For good.
    Gone,
    /// Without the log, whose directory has failed.
    Offline,
}

impl Next {
    /// What is refused with that comes too late.
    pub(super) fn error(self, partition: &Partition) -> AppendError {
        match self {
            Self::Serve | Self::Stopped | Self::Gone => AppendError::Stopping,
            Self::Offline => partition.offline_error(),
        }
    }
}

impl Inbox {
    /// Empty, of a log that is not open.
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { commands: VecDeque::new(), owner: OwnerPlace::Closed }))
    }

    /// Whether the topic was deleted.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.0.lock().owner, OwnerPlace::Gone)
    }

    /// Takes no more commands, if the log is not open; returns whether there is nothing left to close.
    pub(super) fn end_if_closed(&self, end: End) -> bool {
        let mut state = self.0.lock();
        match state.owner {
            OwnerPlace::Closed => {
                state.owner = match end {
                    End::Deleted => OwnerPlace::Gone,
                    End::Stopped => OwnerPlace::Stopped,
                };
                true
            }
            OwnerPlace::Gone | OwnerPlace::Stopped => true,
            OwnerPlace::Resting(_) | OwnerPlace::Running => false,
        }
    }

    /// The appends at the front.
    fn take_appends(&self) -> VecDeque<Command> {
        let mut state = self.0.lock();
        let is_other = |command: &Command| !matches!(command, Command::Append(_));
        let others = match state.commands.iter().position(is_other) {
            Some(first) => state.commands.split_off(first),
            None => VecDeque::new(),
        };
        mem::replace(&mut state.commands, others)
    }

    fn take_commands(&self) -> Option<VecDeque<Command>> {
        let mut state = self.0.lock();
        (!state.commands.is_empty()).then(|| mem::take(&mut state.commands))
    }

    /// Puts the owner away if nothing has come in the meantime.
    fn rest(&self, owner: Box<Owner>) -> Option<Box<Owner>> {
        let mut state = self.0.lock();
        if state.commands.is_empty() {
            state.owner = OwnerPlace::Resting(owner);
            None
        } else {
            Some(owner)
        }
    }
}

/// An append that has its place behind those before it.
#[derive(Debug)]
#[must_use = "dropped, it leaves the writing to a task and the answer to nobody"]
pub struct Placed {
    pub(super) work: Option<Work>,
    pub(super) answer: oneshot::Receiver<AppendResult>,
}

impl Placed {
    /// Sees to it that it is written, here and now if nobody else is at it, together with all that
    /// waits by then. The answer comes through what is returned.
    pub fn begin(self) -> oneshot::Receiver<AppendResult> {
        if let Some(work) = self.work {
            work.perform();
        }
        self.answer
    }
}

/// A partition's owner in the hands of whoever found it at rest, or the duty to open the log.
/// Dropped, it is left to a task.
#[derive(Debug)]
pub(super) struct Work {
    /// `None` once there is nothing left to do.
    partition: Option<Arc<Partition>>,
    /// `None` while the log is closed.
    owner: Option<Box<Owner>>,
}

impl Work {
    /// Writes the appends that wait, on this thread. What has to wait for something (a log that is
    /// closed, armed gates) and what came in the meantime is left to a task.
    fn perform(mut self) {
        let Some(partition) = self.partition.take() else { return };
        self.owner = match self.owner.take() {
            Some(mut owner) if partition.shared.instruments.gates.is_idle() => {
                owner.append_ungated(&partition, partition.inbox.take_appends());
                match partition.inbox.rest(owner) {
                    Some(owner) => Some(owner),
                    None => return,
                }
            }
            owner => owner,
        };
        self.partition = Some(partition);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(partition) = self.partition.take() {
            let runtime = partition.shared.runtime.clone();
            runtime.spawn(run(partition, self.owner.take()));
        }
    }
}

impl Partition {
    /// Puts `command` into the inbox and has a task work on it.
    pub(super) fn command(self: &Arc<Self>, command: Command) {
        drop(self.place(command));
    }

    /// Puts `command` into the inbox; returns the work on it if nobody is at it and the log is open.
    pub(super) fn place(self: &Arc<Self>, command: Command) -> Option<Work> {
        let mut state = self.inbox.0.lock();
        if matches!(state.owner, OwnerPlace::Gone) {
            drop(state);
            command.refuse(&AppendError::Deleted);
            return None;
        }
        let stopped = match state.owner {
            OwnerPlace::Stopped => true,
            OwnerPlace::Closed => !command.opens(),
            OwnerPlace::Resting(_) | OwnerPlace::Running | OwnerPlace::Gone => false,
        };
        if stopped {
            drop(state);
            command.refuse(&AppendError::Stopping);
            return None;
        }
        state.commands.push_back(command);
        if matches!(state.owner, OwnerPlace::Running) {
            return None;
        }
        let owner = match mem::replace(&mut state.owner, OwnerPlace::Running) {
            OwnerPlace::Resting(owner) => Some(owner),
            OwnerPlace::Closed | OwnerPlace::Running | OwnerPlace::Gone | OwnerPlace::Stopped => {
                None
            }
        };
        drop(state);
        let work = Work { partition: Some(self.clone()), owner };
        // Opening the log is a task's, and begins at once: before the caller goes on with the work,
        // others on its thread may wait for the log to be open.
        work.owner.is_some().then_some(work)
    }

    /// Refuses all that waits, and leaves the partition as `place` says.
    fn leave(&self, place: OwnerPlace, error: &AppendError) {
        self.reader.store(None);
        let commands = {
            let mut state = self.inbox.0.lock();
            state.owner = place;
            mem::take(&mut state.commands)
        };
        commands.into_iter().for_each(|command| command.refuse(error));
        self.waiters.wake();
    }
}

/// The owner's task: works until nothing waits.
async fn run(partition: Arc<Partition>, owner: Option<Box<Owner>>) {
    let mut owner = match owner {
        Some(owner) => owner,
        None => match open::open(&partition).await {
            Ok(owner) => owner,
            Err(error) => return partition.leave(OwnerPlace::Closed, &error),
        },
    };
    loop {
        if let Some(commands) = partition.inbox.take_commands() {
            match owner.perform(&partition, commands).await {
                Next::Serve => {}
                Next::Stopped => {
                    return partition.leave(OwnerPlace::Stopped, &AppendError::Stopping);
                }
                Next::Gone => return partition.leave(OwnerPlace::Gone, &AppendError::Deleted),
                // Whoever wants it opened is refused there.
                Next::Offline => {
                    let error = partition.offline_error();
                    return partition.leave(OwnerPlace::Closed, &error);
                }
            }
        }
        match partition.inbox.rest(owner) {
            Some(still) => owner = still,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
