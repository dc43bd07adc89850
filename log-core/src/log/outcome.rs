//! What goes into a log and what comes out, as plain values.

use std::path::PathBuf;

use bytes::{Bytes, BytesMut};

use super::verification::Verified;

/// One whole, validated record batch that waits to be appended.
///
/// The leader's append writes base offset and leader epoch into `bytes`; nothing else changes.
#[derive(Debug)]
pub struct AppendBatch {
    /// Exactly one batch of format 2.
    pub bytes: BytesMut,
    /// Who sent it.
    pub origin: AppendOrigin,
}

/// Who sent a batch: decides which of the producer's rules are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOrigin {
    /// A client: sequences and epochs are checked in full.
    Client,
    /// As [`Self::Client`], of a transactional batch: it begins no transaction unasked.
    ClientInTransaction(Verified),
    /// A coordinator of this cluster: its own records, and markers of transactions v1, whose epoch
    /// may be the one of the data.
    Coordinator,
    /// A coordinator that delivers messages of its own log, each at a position of its own
    /// ([`crate::producers::DeliveryPosition`]): what the log has already is not written again,
    /// however long ago that was, and positions may be left out.
    Delivery,
    /// A group coordinator, for a producer: the epoch is checked, there is no sequence, and it
    /// begins no transaction unasked.
    CoordinatorInTransaction(Verified),
    /// A transaction coordinator, of transactions v2: the marker's epoch is above the one of the
    /// data (KIP-890, KIP-1228).
    CoordinatorRaisingEpoch,
}

/// A batch that is in the log (not yet synced, see `Log::flush_point`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record: inclusive.
    pub last_offset: i64,
    /// The log's own time under `message.timestamp.type=LogAppendTime`, else -1.
    pub append_time_ms: i64,
    /// The log's start at that moment.
    pub log_start_offset: i64,
    /// Whether it was there before: a repeated send is answered with its first offset.
    pub novelty: Novelty,
}

/// See [`Appended::novelty`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// Written now.
    New,
    /// Already in the log; nothing was written.
    Duplicate,
}

/// How much a read may return; see `LogReader::read`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMinimum {
    /// The first batch even when it alone is larger than the limit (KIP-74).
    OneBatch,
    /// Nothing rather than more than the limit.
    Nothing,
}

/// Whole batches from the one that holds the asked offset on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadBatches {
    /// The bytes in order; each piece holds one or more whole batches and is shared, not copied.
    pub pieces: Vec<Bytes>,
    /// Their total length.
    pub size: usize,
    /// The offset after the last of them; the asked offset when there are none.
    pub next_offset: i64,
}

/// A record found by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampOffset {
    /// The record's own timestamp in milliseconds.
    pub timestamp: i64,
    /// Its offset.
    pub offset: i64,
    /// The leader epoch that wrote it; -1 when unknown.
    pub leader_epoch: i32,
}

/// An aborted transaction, as Fetch tells it to `read_committed` clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTxn {
    /// The producer that began it.
    pub producer_id: i64,
    /// Of its first record: inclusive.
    pub first_offset: i64,
    /// Offset of the abort marker: inclusive.
    pub last_offset: i64,
    /// The last stable offset once the marker was written.
    pub last_stable_offset: i64,
}

/// What opening a log found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Segments found.
    pub segments: usize,
    /// Of these, read through from end to end.
    pub segments_scanned: usize,
    /// Bytes read for that.
    pub bytes_scanned: u64,
    /// Bytes cut off behind the last whole batch.
    pub bytes_truncated: u64,
    /// Segments dropped because one before them was corrupt or ended early, or because they hold
    /// nothing and others follow: what a roll that failed left behind.
    pub segments_dropped: usize,
    /// Segments that compaction had written and that took their place only now.
    pub segments_swapped: usize,
    /// Index files (offset, time, transaction, append time, tags, keys) made anew.
    pub indexes_rebuilt: usize,
    /// Where replaying producer state began, when the newest snapshot did not reach the log end.
    pub producers_replayed_from: Option<i64>,
    /// Files of an interrupted deletion or write that were removed.
    pub stray_files_removed: usize,
    /// The log end that resulted: exclusive.
    pub log_end_offset: i64,
    /// What is missing or spoilt of what was on disk, by offset.
    pub damage: Vec<Damage>,
    /// Files that hold what was dropped though it was committed.
    pub set_aside: Vec<PathBuf>,
    /// A log start that lies beyond all that is known of the log's end, and is not believed.
    pub log_start_refused: Option<i64>,
}

/// Records that were on disk and cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first offset: inclusive.
    pub from: i64,
    /// The offset after the last: exclusive.
    pub to: i64,
    /// Base offset of the segment; where it was, when it is gone.
    pub segment: i64,
    /// Where the spoilt bytes begin in its file.
    pub position: u64,
    /// How many there are; 0 when they are missing.
    pub bytes: u64,
    /// The file that they were moved to; otherwise they stay where they are.
    pub set_aside: Option<PathBuf>,
}
