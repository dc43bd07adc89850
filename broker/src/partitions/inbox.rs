//! What waits for a partition's owner, where the owner is, and who runs it.
//!
//! ```text
//! Closed ──command──▶ Running (opens the log) ──inbox empty──▶ Resting ──command──▶ Running …
//! Running ──Close──▶ Closed        Running ──Delete──▶ Gone
//! ```

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;

use super::append::AppendError;
use super::task::{Command, Next, Owner};
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
    /// A task has it.
    Running,
    /// The topic was deleted.
    Gone,
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

    /// Whether the log is not open.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.0.lock().owner, OwnerPlace::Closed)
    }

    /// Takes no more commands, if the log is not open; returns whether that was so.
    pub(super) fn end_if_closed(&self) -> bool {
        let mut state = self.0.lock();
        let closed = matches!(state.owner, OwnerPlace::Closed);
        if closed {
            state.owner = OwnerPlace::Gone;
        }
        closed
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

impl Partition {
    /// Puts `command` into the inbox and sees to it that somebody works on it.
    pub(super) fn command(self: &Arc<Self>, command: Command) {
        let mut state = self.inbox.0.lock();
        if matches!(state.owner, OwnerPlace::Gone) {
            drop(state);
            return command.refuse(&AppendError::Deleted);
        }
        if matches!(state.owner, OwnerPlace::Closed) && !command.opens() {
            drop(state);
            return command.refuse(&AppendError::Stopping);
        }
        state.commands.push_back(command);
        if matches!(state.owner, OwnerPlace::Running) {
            return;
        }
        let owner = match mem::replace(&mut state.owner, OwnerPlace::Running) {
            OwnerPlace::Resting(owner) => Some(owner),
            OwnerPlace::Closed | OwnerPlace::Running | OwnerPlace::Gone => None,
        };
        drop(state);
        self.shared.runtime.spawn(run(self.clone(), owner));
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
                Next::Closed => {
                    return partition.leave(OwnerPlace::Closed, &AppendError::Stopping);
                }
                Next::Gone => return partition.leave(OwnerPlace::Gone, &AppendError::Deleted),
            }
        }
        match partition.inbox.rest(owner) {
            Some(still) => owner = still,
            None => return,
        }
    }
}
