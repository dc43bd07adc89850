//! What is left of one batch.
//!
//! A batch of which all records stay is stored as it is. Of another a new one is made, with the same
//! offsets, producer, sequence, leader epoch and codec; so too of one that gets a delete horizon,
//! which takes the place of its base timestamp (KIP-534). A batch without records stays when its
//! header is needed: as the last of a producer that is alive, or as the last of the run, so that the
//! end of the log is known. Source: Cleaner.cleanInto, MemoryRecords.filterTo.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::offset_map::{OffsetMap, Put};
use super::transactions::{Fate, MarkerFate, Transactions};
use crate::limits::DECOMPRESSED_BATCH_BYTES_MAX;
use crate::log::{AbortedTxn, LogError};
use crate::record::error::{InvalidBatch, RecordError};
use crate::record::varint::Cursor;
use crate::record::{
    Batch, BatchBuilder, BatchHeader, BatchKind, BatchParams, Compressor, Decompressor,
    ProducerSequence, TimestampType,
};

/// What of a producer must not be lost (LastRecord).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastRecord {
    /// Of its last data batch; `None` when only a marker tells of it.
    pub(super) data_offset: Option<i64>,
    pub(super) epoch: i16,
}

/// What a run goes by.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) map: OffsetMap,
    pub(super) last_records: BTreeMap<i64, LastRecord>,
    /// The offset after the last that this run could clean.
    pub(super) end_offset: i64,
    pub(super) now_ms: i64,
    pub(super) delete_retention_ms: i64,
}

/// A batch after compaction.
#[derive(Debug)]
pub(super) enum Kept {
    /// Byte for byte.
    Whole,
    /// With fewer records, none, or a delete horizon.
    Changed(Bytes),
    Nothing,
}

/// One batch's outcome.
#[derive(Debug)]
pub(super) struct Filtered {
    pub(super) kept: Kept,
    /// The entry of the transaction index that its marker stands for.
    pub(super) aborted: Option<AbortedTxn>,
    pub(super) records_kept: u64,
}

/// When a batch stays although no record of it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    Stays,
    Goes,
}

/// What is decided of a batch before its records are looked at.
struct Judged {
    empty: Empty,
    /// No record of it stays.
    discarded: bool,
    /// It waits for its horizon only.
    marker_without_data: bool,
    aborted: Option<AbortedTxn>,
}

/// What filtering keeps between batches.
#[derive(Debug, Default)]
pub(super) struct Filter {
    decompressor: Decompressor,
    compressor: Compressor,
    /// Of the batch at hand, in order: whether each record stays.
    stays: Vec<bool>,
}

impl Filter {
    /// What is left of `bytes`, one whole batch.
    pub(super) fn apply(
        &mut self,
        bytes: &Bytes,
        rules: &Rules,
        txns: &mut Transactions,
    ) -> Result<Filtered, LogError> {
        let batch = Batch::parse(bytes)?;
        batch.verify_crc()?;
        let header = *batch.header();
        let judged = rules.judge(&batch, txns)?;
        let nothing = |aborted| Filtered { kept: Kept::Nothing, aborted, records_kept: 0 };
        if judged.discarded {
            return Ok(judged.without_records(&header, nothing(None)));
        }
        let compression = header.compression()?;
        let limit = DECOMPRESSED_BATCH_BYTES_MAX;
        let region = self.decompressor.decompress(compression, batch.records_region(), limit)?;
        self.stays.clear();
        let (mut tombstones, mut kept) = (0_u64, 0_u64);
        for record in RawRecords::new(&header, region) {
            let record = record?;
            let stays = header.is_control() || rules.keeps(&header, &record);
            if stays {
                kept += 1;
                tombstones += u64::from(record.is_tombstone);
            }
            self.stays.push(stays);
        }
        if kept == 0 {
            return Ok(judged.without_records(&header, nothing(None)));
        }
        let is_due = tombstones > 0 || judged.marker_without_data;
        let gets_horizon = is_due && header.delete_horizon_ms().is_none();
        let is_whole = kept == self.stays.len() as u64 && !gets_horizon;
        let kept_batch = if is_whole {
            Kept::Whole
        } else {
            let horizon = match gets_horizon {
                true => Some(rules.now_ms.saturating_add(rules.delete_retention_ms)),
                false => header.delete_horizon_ms(),
            };
            let rebuilt = rebuild(&header, region, &self.stays, horizon, &mut self.compressor)?;
            Kept::Changed(rebuilt.freeze())
        };
        let aborted = judged.aborted;
        Ok(Filtered { kept: kept_batch, aborted, records_kept: kept })
    }
}

impl Judged {
    fn without_records(self, header: &BatchHeader, nothing: Filtered) -> Filtered {
        let kept = match self.empty {
            Empty::Stays if header.record_count == 0 => Kept::Whole,
            Empty::Stays => Kept::Changed(Bytes::copy_from_slice(&header.emptied())),
            Empty::Goes => Kept::Nothing,
        };
        Filtered { kept, aborted: self.aborted, ..nothing }
    }
}

impl Rules {
    fn judge(&self, batch: &Batch<'_>, txns: &mut Transactions) -> Result<Judged, LogError> {
        let header = batch.header();
        let empty = if self.is_last_of_producer(header) || header.next_offset() == self.end_offset {
            Empty::Stays
        } else {
            Empty::Goes
        };
        if !header.is_control() {
            let discarded = txns.data(header) == Fate::Aborted;
            return Ok(Judged { empty, discarded, marker_without_data: false, aborted: None });
        }
        Ok(match txns.control(batch)? {
            MarkerFate::Needed(aborted) => {
                Judged { empty, discarded: false, marker_without_data: false, aborted }
            }
            MarkerFate::MayGo => {
                let is_over = |horizon| horizon <= self.now_ms;
                let discarded = header.delete_horizon_ms().is_some_and(is_over);
                Judged { empty, discarded, marker_without_data: true, aborted: None }
            }
        })
    }

    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        if !header.has_producer_id() {
            return false;
        }
        self.last_records.get(&header.producer_id.0).is_some_and(|last| match last.data_offset {
            Some(offset) => header.last_offset() == offset,
            None => header.is_control() && header.producer_epoch.0 == last.epoch,
        })
    }

    fn keeps(&self, header: &BatchHeader, record: &RawRecord<'_>) -> bool {
        let offset = header.base_offset.saturating_add(i64::from(record.offset_delta));
        if offset > self.map.latest() {
            return true;
        }
        // Compaction knows a record by its key: one without is nobody's newest.
        let Some(key) = record.key else { return false };
        let is_newest = self.map.newest(key).is_none_or(|newest| offset >= newest);
        let is_waiting = || header.delete_horizon_ms().is_none_or(|horizon| self.now_ms < horizon);
        is_newest && (!record.is_tombstone || is_waiting())
    }
}

/// A batch of the records that stay, with all that the header says of the whole.
fn rebuild(
    header: &BatchHeader,
    region: &[u8],
    stays: &[bool],
    delete_horizon_ms: Option<i64>,
    compressor: &mut Compressor,
) -> Result<BytesMut, LogError> {
    let append_time = match header.timestamp_type() {
        TimestampType::CreateTime => None,
        TimestampType::LogAppendTime => Some(header.max_timestamp),
    };
    let params = BatchParams {
        base_offset: header.base_offset,
        leader_epoch: header.partition_leader_epoch,
        compression: header.compression()?,
        producer: header.has_producer_id().then_some(ProducerSequence {
            id: header.producer_id,
            epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
        }),
        kind: match (header.is_transactional(), header.is_control()) {
            (false, false) => BatchKind::Plain,
            (true, false) => BatchKind::Transactional,
            (true, true) => BatchKind::TransactionalControl,
            (false, true) => BatchKind::Control,
        },
        append_time,
        delete_horizon_ms,
    };
    let mut builder = BatchBuilder::with_capacity(params, region.len());
    for (record, stays) in RawRecords::new(header, region).zip(stays) {
        let record = record?;
        if *stays {
            let own = header.base_timestamp.wrapping_add(record.timestamp_delta);
            let timestamp = append_time.unwrap_or(own);
            builder.append_encoded_at(record.offset_delta, timestamp, record.payload)?;
        }
    }
    builder.extend_to(header.last_offset_delta)?;
    Ok(builder.finish(compressor)?)
}

/// The parts of a record that compaction looks at; what follows them is copied as it is.
struct RawRecord<'a> {
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&'a [u8]>,
    is_tombstone: bool,
    /// From the key's length to the last header.
    payload: &'a [u8],
}

struct RawRecords<'a> {
    cursor: Cursor<'a>,
    left: i32,
    index: i32,
}

impl<'a> RawRecords<'a> {
    const fn new(header: &BatchHeader, region: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(region), left: header.record_count, index: 0 }
    }

    fn read(&mut self) -> Option<RawRecord<'a>> {
        let size = usize::try_from(self.cursor.varint()?).ok()?;
        let mut body = Cursor::new(self.cursor.take(size)?);
        body.byte()?;
        let timestamp_delta = body.varlong()?;
        let offset_delta = body.varint()?;
        let payload = body.rest();
        let key = body.nullable_bytes()?;
        let is_tombstone = body.nullable_bytes()?.is_none();
        Some(RawRecord { timestamp_delta, offset_delta, key, is_tombstone, payload })
    }
}

impl<'a> Iterator for RawRecords<'a> {
    type Item = Result<RawRecord<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            let remaining = self.cursor.remaining();
            self.cursor = Cursor::new(&[]);
            return (remaining > 0).then(|| Err(InvalidBatch::TrailingBytes(remaining).into()));
        }
        self.left -= 1;
        let record = self.read();
        let index = self.index;
        self.index += 1;
        if record.is_none() {
            (self.left, self.cursor) = (0, Cursor::new(&[]));
        }
        Some(record.ok_or(RecordError::InvalidRecord { index, reason: "cut off" }))
    }
}

/// Takes the keys of `bytes`, one whole batch, into the map: those of valid records at `start` and
/// above. `Put::Full` when the map took no more; then its latest offset says how far it came.
pub(super) fn take_keys(
    bytes: &Bytes,
    start: i64,
    map: &mut OffsetMap,
    decompressor: &mut Decompressor,
) -> Result<Put, LogError> {
    let batch = Batch::parse(bytes)?;
    batch.verify_crc()?;
    let header = batch.header();
    let limit = DECOMPRESSED_BATCH_BYTES_MAX;
    let region = decompressor.decompress(header.compression()?, batch.records_region(), limit)?;
    for record in RawRecords::new(header, region) {
        let record = record?;
        let offset = header.base_offset.saturating_add(i64::from(record.offset_delta));
        if let Some(key) = record.key.filter(|_| offset >= start)
            && map.put(key, offset) == Put::Full
        {
            return Ok(Put::Full);
        }
    }
    Ok(Put::Kept)
}
