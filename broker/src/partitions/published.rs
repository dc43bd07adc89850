//! A partition's offsets as everybody but its owner sees them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering};

use duolog_log_core::ids::{LeaderEpoch, Offset};
use duolog_log_core::log::LogError;
use duolog_log_core::replication::epochs::EpochEntry;
use duolog_log_core::replication::partition::Partition as Replica;

use super::append::AppendError;

/// Offsets at one moment: `log_start <= last_stable <= high_watermark <= log_end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// Earliest readable offset: inclusive.
    pub log_start: i64,
    /// LSO: exclusive end for `read_committed` and RocketMQ readers.
    pub last_stable: i64,
    /// HW: exclusive end for other readers.
    pub high_watermark: i64,
    /// LEO: the next offset to write.
    pub log_end: i64,
    /// The epoch in which this node leads.
    pub leader_epoch: i32,
}

/// Written by the owner, read by anyone at any time.
#[derive(Debug, Default)]
pub struct Published {
    log_start: AtomicI64,
    last_stable: AtomicI64,
    high_watermark: AtomicI64,
    log_end: AtomicI64,
    leader_epoch: AtomicI32,
    /// The log end when that epoch began here.
    epoch_start: AtomicI64,
    synced: AtomicI64,
    bytes: AtomicU64,
    /// -1 when the first segment's name says it.
    checkpointed_log_start: AtomicI64,
    failed: OnceLock<String>,
}

impl Published {
    /// Of a log that is led in `leader_epoch` and holds nothing yet.
    pub(super) fn new(leader_epoch: LeaderEpoch) -> Self {
        Self {
            leader_epoch: AtomicI32::new(leader_epoch.0),
            checkpointed_log_start: AtomicI64::new(-1),
            ..Self::default()
        }
    }

    /// The offsets now.
    pub fn offsets(&self) -> Offsets {
        // Every offset only rises, and the writer raises the larger before the smaller: reading in
        // the opposite order can never see a smaller one beyond a larger one.
        let log_start = self.log_start.load(Ordering::Acquire);
        let last_stable = self.last_stable.load(Ordering::Acquire);
        let high_watermark = self.high_watermark.load(Ordering::Acquire);
        let log_end = self.log_end.load(Ordering::Acquire);
        let leader_epoch = self.leader_epoch.load(Ordering::Acquire);
        Offsets { log_start, last_stable, high_watermark, log_end, leader_epoch }
    }

    /// The epoch in which this node leads, whether or not it has written since.
    pub(super) fn epoch(&self) -> EpochEntry {
        let epoch = LeaderEpoch(self.leader_epoch.load(Ordering::Acquire));
        let start_offset = Offset(self.epoch_start.load(Ordering::Acquire));
        EpochEntry { epoch, start_offset }
    }

    /// The end of what is known to be on disk: exclusive.
    pub fn synced(&self) -> i64 {
        self.synced.load(Ordering::Acquire)
    }

    /// The log start, unless the first segment's name says it.
    pub fn checkpointed_log_start(&self) -> Option<i64> {
        let held = self.checkpointed_log_start.load(Ordering::Acquire);
        Some(held).filter(|offset| *offset >= 0)
    }

    pub(super) fn set_checkpointed_log_start(&self, offset: Option<i64>) {
        self.checkpointed_log_start.store(offset.unwrap_or(-1), Ordering::Release);
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes over what the owner's machine says, HW and LSO up to `limit`; returns whether anything
    /// that readers wait for has changed.
    pub(super) fn publish(&self, replica: &Replica, limit: Offset) -> bool {
        if let Some(start_offset) = replica.epoch_start_offset() {
            self.epoch_start.store(start_offset.0, Ordering::Release);
        }
        self.leader_epoch.store(replica.leader_epoch().0, Ordering::Release);
        let pairs = [
            (&self.log_end, replica.log_end_offset()),
            (&self.high_watermark, replica.high_watermark().min(limit)),
            (&self.last_stable, replica.last_stable_offset().min(limit)),
            (&self.log_start, replica.log_start_offset()),
        ];
        pairs
            .map(|(held, offset)| held.swap(offset.0, Ordering::AcqRel) != offset.0)
            .contains(&true)
    }

    pub(super) fn set_synced(&self, offset: i64) {
        self.synced.fetch_max(offset, Ordering::AcqRel);
    }

    /// The disk failed.
    pub(super) fn set_failed(&self, text: &str) {
        self.failed.get_or_init(|| text.to_owned());
    }

    /// Why nothing more is written, if the disk failed.
    pub(super) fn failure(&self) -> Option<AppendError> {
        self.failed.get().map(|text| LogError::Storage(text.clone()).into())
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}
