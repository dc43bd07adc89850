//! Pop: a group takes messages of a queue without the queue being anybody's.

use std::future::Future;
use std::sync::Arc;

use duolog_log_core::offset_set::OffsetSet;

use super::{Result, Topic};

/// A group's share of a queue.
#[derive(Clone, Copy, Debug)]
pub struct PopQueue<'a> {
    /// The group.
    pub group: &'a str,
    /// The topic.
    pub topic: &'a Topic,
    /// The queue.
    pub partition: i32,
}

/// In order: nothing is given out while something is in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PopOrder {
    /// The client's name for this attempt: when it asks again, it gets the same messages again.
    pub attempt: Option<Arc<str>>,
}

/// What may be taken of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PopPlan {
    /// Messages that come again, rising, and how often each was delivered before.
    pub again: Vec<(i64, i32)>,
    /// From here on nothing was given out yet.
    pub next: i64,
    /// So many of these may be taken.
    pub room: usize,
    /// Nothing may be taken before what is in hand is settled or its time is up.
    pub is_blocked: bool,
}

/// What is taken of a queue.
#[derive(Clone, Debug, Default)]
pub struct PopTake {
    /// Messages that come again.
    pub again: Vec<i64>,
    /// Messages that were to come again, and are not there any more.
    pub gone: Vec<i64>,
    /// Messages that were not given out yet.
    pub fresh: Option<PopFresh>,
    /// Names the delivery, milliseconds since 1970.
    pub popped_ms: i64,
    /// When they come again, unless they are settled before.
    pub until_ms: i64,
    /// How often they may come again.
    pub retries_max: i32,
    /// In order.
    pub order: Option<PopOrder>,
}

/// Messages from [`PopPlan::next`] on.
#[derive(Clone, Debug, Default)]
pub struct PopFresh {
    /// [`PopPlan::next`].
    pub from: i64,
    /// What lies before it and is not named is passed over for good.
    pub next: i64,
    /// Which are taken, rising.
    pub offsets: Vec<i64>,
}

/// Offsets of a queue, as clients acknowledge them.
pub type PopOffsets = OffsetSet;

/// What pop needs of a node. Errors in all: `CoordinatorNotReady`, `LimitReached`.
pub trait PopBackend: Send + Sync + 'static {
    /// What may be taken, so many at most of what comes again; `None` if the group has no position
    /// there yet.
    fn pop_plan(
        &self,
        queue: PopQueue<'_>,
        count: usize,
        order: Option<PopOrder>,
    ) -> impl Future<Output = Result<Option<PopPlan>>> + Send;

    /// Has the group begin at `offset`, if it has no position yet.
    fn pop_begin(
        &self,
        queue: PopQueue<'_>,
        offset: i64,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Has the group go on at `offset`: that is its position, and nothing is in hand any more.
    fn pop_reset(
        &self,
        queue: PopQueue<'_>,
        offset: i64,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Takes all of this or nothing; `false` if the plan is not true any more. Once it resolves, the
    /// node remembers that they are in hand.
    fn pop_take(
        &self,
        queue: PopQueue<'_>,
        take: PopTake,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// These are done with; returns how many were in hand by the delivery named. Costs no more than
    /// what the group has in hand of the queue, however many they are.
    fn pop_settle(
        &self,
        queue: PopQueue<'_>,
        offsets: PopOffsets,
        popped_ms: i64,
    ) -> impl Future<Output = Result<usize>> + Send;

    /// Has a message come again at another time; returns whether it was in hand by the delivery named,
    /// which is called `renamed_ms` from then on.
    fn pop_delay(
        &self,
        queue: PopQueue<'_>,
        offset: i64,
        popped_ms: i64,
        again: PopAgain,
    ) -> impl Future<Output = Result<bool>> + Send;
}

/// When a message comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopAgain {
    /// Milliseconds since 1970.
    pub until_ms: i64,
    /// The delivery's name from now on.
    pub renamed_ms: i64,
}
