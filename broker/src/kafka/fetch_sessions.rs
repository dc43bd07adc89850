//! Fetch sessions: the node remembers what a client fetches and tells it only what has changed
//! (KIP-227, KIP-516).
//!
//! ```text
//! (any id, epoch 0)   ends that session; the answer is full and may begin another, epoch 1
//! (any id, epoch -1)  ends that session; the answer is full, session id 0
//! (id, its epoch)     changes what the session asks for; the answer leaves out what is unchanged
//! (id, another epoch) InvalidEpoch        (unknown id, epoch) UnknownId
//! ```
//!
//! A session belongs to no connection: it lives until its client ends it, or another one needs its
//! place. Nothing here reads a clock or decodes a frame. Source: FetchManager, FetchSession,
//! FetchSessionCacheShard, FetchContext.

mod cache;
mod session;

use duolog_log_core::ids::TopicId;

pub use self::cache::{Begun, FetchSessions};
use super::codec::Str;

/// The epoch of a full fetch that asks for a session.
const INITIAL_EPOCH: i32 = 0;

/// The epoch of a full fetch that wants none.
const FINAL_EPOCH: i32 = -1;

/// No session.
const NO_SESSION: i32 = 0;

/// A topic as a client names it. One session knows all its topics in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicKey {
    /// Before version 13.
    Name(Str),
    /// Since.
    Id(TopicId),
}

/// A partition as a client names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// By name or by id.
    pub topic: TopicKey,
    /// 0-based.
    pub partition: i32,
}

/// What a client asks of one partition, until it asks something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The partition.
    pub key: PartitionKey,
    /// The name that its topic's id had when it was first known.
    pub name: Option<Str>,
    /// The first offset wanted: inclusive.
    pub fetch_offset: i64,
    /// The bound of its part of an answer.
    pub max_bytes: i32,
    /// The leader epoch that the client knows, or -1.
    pub leader_epoch: i32,
    /// The epoch of the last record that the client has, or -1.
    pub last_fetched_epoch: i32,
}

/// What a client was told last of a partition's offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its HW.
    pub high_watermark: i64,
    /// Its log start.
    pub log_start: i64,
}

impl Told {
    const NOTHING: Self = Self { high_watermark: -1, log_start: -1 };
}

/// What is about to be answered for a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The offsets in it.
    pub told: Told,
    /// What else is in it.
    pub content: Content,
}

/// See [`Answered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing but the offsets.
    Nothing,
    /// Records.
    Records,
    /// Where the client's log parts from this one.
    Divergence,
    /// An error.
    Error,
}

impl Answered {
    /// Whether a client that was told `before` has to hear of it.
    pub fn is_news(self, before: Told) -> bool {
        self.content != Content::Nothing || self.told != before
    }
}

/// Why a fetch cannot use the session that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is none of this id, or it had to give way.
    #[error("there is no such fetch session")]
    UnknownId,
    /// Not the next one of this session.
    #[error("the fetch session expects another epoch")]
    InvalidEpoch,
    /// A session of topic names is asked by ids, or the other way round.
    #[error("the fetch session names its topics otherwise")]
    TopicIds,
}

/// How a fetch speaks of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// Its id, 0 for none.
    pub id: i32,
    /// Its epoch, or one of the two that stand for a full fetch.
    pub epoch: i32,
    /// Whether the request's version names topics by id.
    pub naming: Naming,
}

/// How topics are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By name.
    Names,
    /// By id.
    Ids,
}

/// The epoch after `epoch`; a session's epochs go round from the last one to 1.
const fn next_epoch(epoch: i32) -> i32 {
    match epoch {
        i32::MIN..=FINAL_EPOCH => FINAL_EPOCH,
        i32::MAX => INITIAL_EPOCH + 1,
        epoch => epoch + 1,
    }
}

#[cfg(test)]
mod tests;
