//! Half messages: prepared, and not seen before their producer says so.

use std::sync::Arc;

use super::NewRecord;

/// A half message to store.
#[derive(Clone, Debug)]
pub struct NewHalf {
    /// Stored name of the topic that it goes to when it is committed.
    pub topic: Arc<str>,
    /// The queue there.
    pub queue_id: i32,
    /// The producer group, whose members may be asked how it ended.
    pub group: Arc<str>,
    /// Client id of the sender, who is asked first; empty where it is not known.
    pub client_id: Arc<str>,
    /// When it was born, milliseconds since 1970, as the producer says.
    pub born_ms: i64,
    /// The property `CHECK_IMMUNITY_TIME_IN_SECONDS`.
    pub immunity: Option<String>,
    /// What it becomes when it is committed.
    pub record: NewRecord,
}

/// A half message that was stored, whether it is still open or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfView {
    /// The cluster-wide number of the partition that it lies in.
    pub partition_number: u32,
    /// Its offset there.
    pub offset: i64,
    /// Stored name of the topic that it goes to.
    pub topic: Arc<str>,
    /// The queue there.
    pub queue_id: i32,
    /// The producer group.
    pub group: Arc<str>,
    /// When it was born, milliseconds since 1970.
    pub born_ms: i64,
    /// How long its producer may end it unasked, milliseconds after that; `None`: for ever.
    pub unasked_ms: Option<i64>,
}

/// How a half message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfEnding {
    /// It goes to its queue.
    Commit,
    /// It goes nowhere.
    Rollback,
}
