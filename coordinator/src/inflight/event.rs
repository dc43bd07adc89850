//! What a coordinator of messages in hand is asked and told, and what it answers.

use std::sync::Arc;

use duolog_log_core::ids::{Offset, TopicId, TopicPartition};
pub use duolog_log_core::offset_set::OffsetSet;

use crate::delivery::StoredMessage;
use crate::group::event::OwnPositions;
use crate::record::share::{DeliveryState, Lease, SharePartition};

/// What decisions concern: those of one key are made one after another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A group's window over a partition.
    Window(SharePartition),
    /// What is on its way to a target.
    Target(TopicPartition),
}

/// An input.
#[derive(Clone, Debug)]
pub enum Event {
    /// About one window.
    Of {
        /// [`Key::Window`].
        key: Key,
        /// What.
        ask: Ask,
    },
    /// Some may have been in hand for as long as they may.
    Due,
    /// It is in the log that this has something to be delivered.
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
    /// A topic was deleted.
    TopicGone(TopicId),
    /// A group was deleted, with its positions.
    GroupGone(Arc<str>),
    /// Some of the log may not be needed any more.
    Trim,
}

/// What is asked of a window, or told about it.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Begin at this offset, unless there is a window already.
    Open(i64),
    /// What may be taken? Answered by [`Response::Plan`].
    Plan {
        /// So many at most.
        count: usize,
        /// In order: nothing while something is in hand.
        order: Option<Order>,
    },
    /// Take all of this, or nothing; answered by [`Response::Taken`].
    Take(Take),
    /// These are done with; answered by [`Response::Settled`].
    Settle {
        /// Which; those that are not in hand count for nothing.
        offsets: OffsetSet,
        /// The delivery that is meant.
        popped_ms: i64,
        /// How they ended.
        state: DeliveryState,
    },
    /// In hand for another time; answered by [`Response::Delayed`].
    Delay {
        /// Which.
        offset: i64,
        /// The delivery that is meant.
        popped_ms: i64,
        /// What is true from now on.
        lease: Lease,
    },
    /// The group goes on at another offset, its position, which is on disk; what was in hand is nobody's
    /// concern any more.
    Reset(i64),
    /// The group or its position is gone.
    Forget,
    /// The log's oldest snapshot is of this window.
    Refresh,
    /// A message was delivered too often; answered by [`Response::Buried`].
    Bury {
        /// Which.
        offset: i64,
        /// Where its copy goes; `None`: there is nothing to copy, or nowhere to put it.
        copy: Option<(TopicPartition, StoredMessage)>,
    },
    /// Its copy is in the log.
    Buried {
        /// Which.
        offset: i64,
        /// Where its copy goes.
        target: TopicPartition,
    },
    /// Its records are in the log.
    Moved(Moved),
    /// The start that was told is committed, and on disk.
    Committed(i64),
    /// The start that was told is not committed: somebody else has set the position meanwhile, which
    /// is on disk.
    Overruled {
        /// The start.
        offset: i64,
        /// The position; `None`: it is gone.
        by: Option<i64>,
    },
}

/// In order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The client's name for this attempt: when it asks again, it gets the same messages again.
    pub attempt: Option<Arc<str>>,
}

/// What is taken.
#[derive(Clone, Debug, Default)]
pub struct Take {
    /// Messages that were delivered before.
    pub again: Vec<i64>,
    /// Messages that were to be delivered again, and are not there any more.
    pub gone: Vec<i64>,
    /// Messages that were not delivered yet.
    pub fresh: Option<Fresh>,
    /// Until when, and the name of the delivery.
    pub lease: Lease,
    /// How often a message is delivered before it is dead.
    pub deliveries_max: u16,
    /// As in [`Ask::Plan`].
    pub order: Option<Order>,
}

/// Messages from the window's end on.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    /// The window's end, as it was told.
    pub from: i64,
    /// The window's end from now on: what lies between and is not named is passed over.
    pub next: i64,
    /// Which are taken, rising.
    pub offsets: Vec<i64>,
}

/// What has changed in a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// The window was opened at this offset, which was the position then.
    pub opened: Option<i64>,
    /// Somebody else set the position to this offset.
    pub reset: Option<i64>,
    /// There may be room for those who found none.
    pub made_room: bool,
}

/// What may be taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Messages that were delivered before, with how often they will have been: rising offsets.
    pub again: Vec<(i64, u16)>,
    /// The window's end: what follows was not delivered yet.
    pub next: i64,
    /// So many of these may be taken.
    pub room: usize,
    /// Nothing may be taken before what is in hand is settled or its time is up.
    pub is_blocked: bool,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// There is, or is no such window.
    Plan(Option<Plan>),
    /// Whether it was taken; if not, the plan is not true any more.
    Taken(bool),
    /// So many were in hand.
    Settled(usize),
    /// Whether it was in hand.
    Delayed(bool),
    /// Whether it was dead.
    Buried(bool),
    /// Noted.
    Done,
}

/// News.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something may be taken from this window now.
    Ready(SharePartition),
    /// Something in this window was delivered too often: [`super::shard::InflightShard::dead`].
    Dead(SharePartition),
    /// The start has moved: commit it unless somebody else has set the position, and say which
    /// ([`Ask::Committed`], [`Ask::Overruled`]).
    Position {
        /// Of this window.
        share: SharePartition,
        /// What it may replace.
        own: OwnPositions,
        /// To be committed.
        offset: i64,
    },
    /// There are open notes for this target.
    Deliver(TopicPartition),
    /// Nothing below this offset is needed any more.
    Trim(Offset),
}
