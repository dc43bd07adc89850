//! What a timer coordinator is asked and told, and what it answers.

use std::sync::Arc;

use duolog_log_core::ids::{Offset, TopicPartition};

use crate::record::timer::TimedMessage;

/// What decisions concern: those of one key are made one after another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A message that is being stored.
    Message(u64),
    /// All that wait.
    Waiting,
    /// What is on its way to a target.
    Target(TopicPartition),
}

/// A message in the log that waits for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When it is due, milliseconds since 1970.
    pub due_ms: i64,
    /// Where it stands in the log.
    pub offset: Offset,
}

/// An input.
#[derive(Clone, Debug)]
pub enum Event {
    /// Store a message until its time; answered by [`Response::Stored`].
    Store {
        /// Names it among those that are being stored.
        key: Key,
        /// It.
        timed: TimedMessage,
    },
    /// It is in the log.
    Stored {
        /// As in [`Self::Store`].
        key: Key,
    },
    /// Which messages that may have this id wait for a time in a range? Answered by
    /// [`Response::Found`]; only the log tells for sure.
    Find {
        /// The message's own id.
        id: Arc<str>,
        /// Inclusive.
        from_ms: i64,
        /// Exclusive.
        to_ms: i64,
    },
    /// Forget a message; answered by [`Response::Recalled`].
    Recall(Waiting),
    /// Time has come for some.
    Due,
    /// It is in the log that these have something to be delivered.
    Noted(Vec<TopicPartition>),
    /// See [`crate::delivery::Delivers::done`].
    Done {
        /// The target.
        target: TopicPartition,
        /// Offset of the last note that is done.
        through: Offset,
        /// [`Key::Target`].
        key: Key,
    },
    /// Some of the log may not be needed any more.
    Trim,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The message stands in the log at this offset.
    Stored(Offset),
    /// They wait.
    Found(Vec<Waiting>),
    /// Whether it was still waiting.
    Recalled(bool),
    /// Noted.
    Done,
}

/// News.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// There are open notes for this target.
    Deliver(TopicPartition),
    /// Nothing below this offset is needed any more.
    Trim(Offset),
}
