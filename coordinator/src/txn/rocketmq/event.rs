//! What a coordinator of half messages is asked and told, and what it answers.

use duolog_log_core::ids::{Offset, TopicPartition};

use super::check_back::Verdict;
use crate::delivery::StoredMessage;
use crate::record::half::HalfMessage;

/// What decisions concern: those of one key are made one after another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A message that is being stored.
    New(u64),
    /// The half message at this offset.
    Half(Offset),
    /// What is on its way to a target.
    Target(TopicPartition),
}

/// How a half message ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It goes there: to the queue it was meant for.
    Commit(TopicPartition),
    /// It goes nowhere.
    Rollback,
}

/// An input. Of those about a half message, `key` is [`Key::Half`].
#[derive(Clone, Debug)]
pub enum Event {
    /// Store a half message; answered by [`Response::Stored`].
    Store {
        /// [`Key::New`]: names it among those that are being stored.
        key: Key,
        /// It.
        half: HalfMessage,
    },
    /// It is in the log.
    Stored {
        /// As in [`Self::Store`].
        key: Key,
    },
    /// Decide how a half message ends; answered by [`Response::Ended`].
    End {
        /// Which.
        key: Key,
        /// How.
        ending: Ending,
    },
    /// Note that a producer is about to be asked; answered by [`Response::Checked`].
    Check {
        /// About which.
        key: Key,
    },
    /// Give up asking; answered by [`Response::Ended`].
    GiveUp {
        /// About which.
        key: Key,
        /// Where it goes instead of its queue.
        target: TopicPartition,
        /// As what.
        message: StoredMessage,
    },
    /// The log has what goes there.
    GivenUp {
        /// As in [`Self::GiveUp`].
        key: Key,
        /// As in [`Self::GiveUp`].
        target: TopicPartition,
    },
    /// It is in the log that something is to be delivered there.
    Noted(TopicPartition),
    /// See [`crate::delivery::Delivers::done`].
    Done {
        /// The target.
        target: TopicPartition,
        /// Offset of the last note that is done.
        through: Offset,
        /// [`Key::Target`].
        key: Key,
    },
    /// Time for a look at what is open.
    Round,
    /// Which messages are due, of those behind `after`? Answered by [`Response::Due`].
    Due {
        /// Exclusive.
        after: Offset,
        /// At most so many.
        count: usize,
    },
    /// Some of the log may not be needed any more.
    Trim,
}

/// A half message that something is to be done about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Where it stands.
    pub half: Offset,
    /// How often it was asked about.
    pub times: i32,
    /// What.
    pub verdict: Verdict,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The message stands in the log at this offset.
    Stored(Offset),
    /// It is decided: now, or was before.
    Ended {
        /// By this request.
        now: bool,
    },
    /// It is the so manieth time; `None`: it is not open any more.
    Checked(Option<i32>),
    /// These are due, in order; fewer than asked for: there are no more.
    Due(Vec<Due>),
    /// Noted.
    Done,
}

/// News.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// There are open notes for this target.
    Deliver(TopicPartition),
    /// Ask about what is due.
    Round,
    /// Nothing below this offset is needed any more.
    Trim(Offset),
}

/// The one alarm: the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm;
