//! Batches of our own: of RocketMQ messages, of coordinators, and in tests.

use bytes::{Bytes, BytesMut};

use super::batch::{
    ATTRIBUTES_AT, Attributes, BatchHeader, HEADER_BYTES, LOG_OVERHEAD_BYTES, NO_SEQUENCE,
    NO_TIMESTAMP, TimestampType,
};
use super::compression::{Compression, Compressor};
use super::error::{InvalidBatch, RecordError};
use super::record::Header;
use super::varint::{put_varint, put_varlong, varint_bytes, varlong_bytes};
use crate::ids::{LeaderEpoch, ProducerEpoch, ProducerId};

/// What the records of a batch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchParams {
    /// 0 unless the log's place for it is known: the leader's append gives the real one.
    pub base_offset: i64,
    pub leader_epoch: LeaderEpoch,
    pub compression: Compression,
    pub producer: Option<ProducerSequence>,
    pub kind: BatchKind,
    /// Under `LogAppendTime`, the time of every record in ms.
    pub append_time: Option<i64>,
    /// Of a compacted batch: when its tombstones may go, ms (KIP-534).
    pub delete_horizon_ms: Option<i64>,
}

impl Default for BatchParams {
    /// An uncompressed batch of plain records with their own times, without idempotence.
    fn default() -> Self {
        Self {
            base_offset: 0,
            leader_epoch: LeaderEpoch::UNKNOWN,
            compression: Compression::None,
            producer: None,
            kind: BatchKind::Plain,
            append_time: None,
            delete_horizon_ms: None,
        }
    }
}

/// The identity of an idempotent producer's batch (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerSequence {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    /// Of the first record; [`NO_SEQUENCE`] for control batches.
    pub base_sequence: i32,
}

/// Whether the records belong to a transaction, or end one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchKind {
    #[default]
    Plain,
    Transactional,
    /// A transaction's end marker.
    TransactionalControl,
    /// Any other control batch.
    Control,
}

/// A record to be written. Offsets follow from the order of appending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// ms, or [`NO_TIMESTAMP`]; kept but without meaning under `LogAppendTime`.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [Header<'a>],
}

impl NewRecord<'_> {
    /// Bytes of what [`Self::encode_payload`] writes.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|header| {
            nullable_bytes_len(Some(header.key)).saturating_add(nullable_bytes_len(header.value))
        });
        [
            nullable_bytes_len(self.key),
            nullable_bytes_len(self.value),
            varint_bytes(i32::try_from(self.headers.len()).unwrap_or(i32::MAX)),
        ]
        .into_iter()
        .chain(headers)
        .fold(0, usize::saturating_add)
    }

    /// Writes the part of a record that does not depend on its place: from the key's length to the
    /// last header. Key, value and headers are each shorter than 2 GiB.
    pub fn encode_payload(&self, out: &mut Vec<u8>) {
        put_nullable_bytes(out, self.key);
        put_nullable_bytes(out, self.value);
        put_varint(out, self.headers.len() as i32);
        for header in self.headers {
            put_nullable_bytes(out, Some(header.key));
            put_nullable_bytes(out, header.value);
        }
    }
}

/// The end of the largest batch that the length field can describe, with room for its own fields.
const REGION_BYTES_MAX: usize = i32::MAX as usize - HEADER_BYTES;

/// Gathers records, from one sender or from many, into one batch.
///
/// Uncompressed, [`Self::size_in_bytes`] is the final size at any time and [`Self::size_with`]
/// says what one more record makes of it, so that a batch can be cut before it grows too large.
/// Compressed, both are sizes before compression.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    params: BatchParams,
    /// Room for the header, then the records.
    bytes: Vec<u8>,
    /// The first record's, or the delete horizon.
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    max_timestamp_offset_delta: i32,
    record_count: i32,
    next_offset_delta: i32,
}

impl BatchBuilder {
    #[must_use]
    pub fn new(params: BatchParams) -> Self {
        Self::with_capacity(params, 0)
    }

    /// As [`Self::new`], with room for `records_bytes` of records.
    #[must_use]
    pub fn with_capacity(params: BatchParams, records_bytes: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + records_bytes);
        bytes.resize(HEADER_BYTES, 0);
        Self {
            params,
            bytes,
            base_timestamp: params.delete_horizon_ms,
            max_timestamp: params.append_time.unwrap_or(NO_TIMESTAMP),
            max_timestamp_offset_delta: 0,
            record_count: 0,
            next_offset_delta: 0,
        }
    }

    #[must_use]
    pub const fn record_count(&self) -> i32 {
        self.record_count
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// Header and records so far, before compression.
    #[must_use]
    pub const fn size_in_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What [`Self::size_in_bytes`] would be after [`Self::append`] of `record`.
    #[must_use]
    pub fn size_with(&self, record: &NewRecord<'_>) -> usize {
        self.size_with_encoded(record.timestamp, record.payload_bytes())
    }

    /// What [`Self::size_in_bytes`] would be after [`Self::append_encoded`].
    #[must_use]
    pub fn size_with_encoded(&self, timestamp: i64, payload_bytes: usize) -> usize {
        self.size_after(self.body_bytes(self.next_offset_delta, timestamp, payload_bytes))
    }

    fn size_after(&self, body: usize) -> usize {
        let prefix = varint_bytes(i32::try_from(body).unwrap_or(i32::MAX));
        self.bytes.len().saturating_add(prefix).saturating_add(body)
    }

    /// The greatest timestamp so far, and the offset delta of the first record that has it.
    #[must_use]
    pub const fn max_timestamp(&self) -> (i64, i32) {
        (self.max_timestamp, self.max_timestamp_offset_delta)
    }

    /// Adds `record` behind the others and returns its offset delta.
    /// Errors: `BatchTooLarge` when the batch would pass what its fields can describe; nothing is
    /// added then.
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<i32, RecordError> {
        let offset_delta = self.next_offset_delta;
        self.append_at(offset_delta, record)?;
        Ok(offset_delta)
    }

    /// As [`Self::append`], at an offset that may leave a gap, as compaction does.
    /// Errors: also `InvalidBatch` when the offset does not rise.
    pub fn append_at(
        &mut self,
        offset_delta: i32,
        record: &NewRecord<'_>,
    ) -> Result<(), RecordError> {
        let payload_bytes = record.payload_bytes();
        self.begin_record(offset_delta, record.timestamp, payload_bytes)?;
        let start = self.bytes.len();
        record.encode_payload(&mut self.bytes);
        debug_assert_eq!(self.bytes.len() - start, payload_bytes, "the size was known before");
        Ok(())
    }

    /// As [`Self::append`], for a record whose payload [`NewRecord::encode_payload`] (or code that
    /// does the same) has written already; it is copied as it is.
    /// Errors: `BatchTooLarge`.
    pub fn append_encoded(&mut self, timestamp: i64, payload: &[u8]) -> Result<i32, RecordError> {
        let offset_delta = self.next_offset_delta;
        self.begin_record(offset_delta, timestamp, payload.len())?;
        self.bytes.extend_from_slice(payload);
        Ok(offset_delta)
    }

    /// As [`Self::append_encoded`], at an offset that may leave a gap, as compaction does.
    /// Errors: also `InvalidBatch` when the offset does not rise.
    pub fn append_encoded_at(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        payload: &[u8],
    ) -> Result<(), RecordError> {
        self.begin_record(offset_delta, timestamp, payload.len())?;
        self.bytes.extend_from_slice(payload);
        Ok(())
    }

    /// Writes what stands before a record's payload, and counts the record.
    fn begin_record(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        payload_bytes: usize,
    ) -> Result<(), RecordError> {
        let index = self.record_count;
        if offset_delta < self.next_offset_delta || offset_delta == i32::MAX {
            return Err(InvalidBatch::OffsetDelta { index, offset_delta }.into());
        }
        let body = self.body_bytes(offset_delta, timestamp, payload_bytes);
        let size = self.size_after(body);
        if size > REGION_BYTES_MAX {
            return Err(RecordError::BatchTooLarge { size, maximum: REGION_BYTES_MAX });
        }
        let timestamp_delta = self.timestamp_delta(timestamp);
        self.base_timestamp.get_or_insert(timestamp);
        if self.params.append_time.is_none() && timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
            self.max_timestamp_offset_delta = offset_delta;
        }
        let out = &mut self.bytes;
        out.reserve(size - out.len());
        put_varint(out, body as i32);
        out.push(0);
        put_varlong(out, timestamp_delta);
        put_varint(out, offset_delta);
        self.record_count += 1;
        self.next_offset_delta = offset_delta + 1;
        Ok(())
    }

    /// Lets the batch cover offsets up to `offset_delta`, inclusive, although its last records are
    /// gone. Errors: `InvalidBatch` below the last record.
    pub fn extend_to(&mut self, offset_delta: i32) -> Result<(), RecordError> {
        if offset_delta < self.next_offset_delta.saturating_sub(1) || offset_delta == i32::MAX {
            let record_count = self.record_count;
            let last_offset_delta = offset_delta;
            return Err(InvalidBatch::OffsetRange { last_offset_delta, record_count }.into());
        }
        self.next_offset_delta = offset_delta + 1;
        Ok(())
    }

    fn timestamp_delta(&self, timestamp: i64) -> i64 {
        timestamp.wrapping_sub(self.base_timestamp.unwrap_or(timestamp))
    }

    /// The record without the varint of its size.
    fn body_bytes(&self, offset_delta: i32, timestamp: i64, payload_bytes: usize) -> usize {
        let before = varlong_bytes(self.timestamp_delta(timestamp)) + varint_bytes(offset_delta);
        payload_bytes.saturating_add(1 + before)
    }

    /// The whole batch, its CRC included. The compressor is used only if the batch is compressed.
    /// Errors: `InvalidBatch` without records; those of [`Compressor::compress`].
    pub fn finish(self, compressor: &mut Compressor) -> Result<BytesMut, RecordError> {
        if self.params.compression == Compression::None {
            return self.finish_uncompressed();
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.bytes.len() / 2);
        bytes.resize(HEADER_BYTES, 0);
        let region = self.bytes.get(HEADER_BYTES..).unwrap_or_default();
        compressor.compress(self.params.compression, region, &mut bytes)?;
        self.seal(bytes)
    }

    /// As [`Self::finish`], without compression whatever the parameters say.
    /// Errors: `InvalidBatch` without records.
    pub fn finish_uncompressed(mut self) -> Result<BytesMut, RecordError> {
        self.params.compression = Compression::None;
        let bytes = std::mem::take(&mut self.bytes);
        self.seal(bytes)
    }

    fn seal(&self, mut bytes: Vec<u8>) -> Result<BytesMut, RecordError> {
        if self.record_count == 0 {
            return Err(InvalidBatch::RecordCount(0).into());
        }
        let size = bytes.len();
        let batch_length = i32::try_from(size - LOG_OVERHEAD_BYTES)
            .map_err(|_| RecordError::BatchTooLarge { size, maximum: REGION_BYTES_MAX })?;
        let mut header = self.header(batch_length);
        put_header(&mut bytes, &header);
        header.crc = crc32c::crc32c(bytes.get(ATTRIBUTES_AT..).unwrap_or_default());
        put_header(&mut bytes, &header);
        Ok(BytesMut::from(Bytes::from(bytes)))
    }

    fn header(&self, batch_length: i32) -> BatchHeader {
        let producer = self.params.producer.unwrap_or(ProducerSequence {
            id: ProducerId::NONE,
            epoch: ProducerEpoch::NONE,
            base_sequence: NO_SEQUENCE,
        });
        BatchHeader {
            base_offset: self.params.base_offset,
            batch_length,
            partition_leader_epoch: self.params.leader_epoch,
            crc: 0,
            attributes: self.attributes(),
            last_offset_delta: self.next_offset_delta - 1,
            base_timestamp: self.base_timestamp.unwrap_or(NO_TIMESTAMP),
            max_timestamp: self.max_timestamp,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: producer.base_sequence,
            record_count: self.record_count,
        }
    }

    fn attributes(&self) -> Attributes {
        let timestamp_type = match self.params.append_time {
            None => TimestampType::CreateTime,
            Some(_) => TimestampType::LogAppendTime,
        };
        let attributes = Attributes::default()
            .with_compression(self.params.compression)
            .with_timestamp_type(timestamp_type);
        let attributes = match self.params.delete_horizon_ms {
            Some(_) => attributes.delete_horizon(),
            None => attributes,
        };
        match self.params.kind {
            BatchKind::Plain => attributes,
            BatchKind::Transactional => attributes.transactional(),
            BatchKind::TransactionalControl => attributes.transactional().control(),
            BatchKind::Control => attributes.control(),
        }
    }
}

fn put_header(bytes: &mut [u8], header: &BatchHeader) {
    if let Some(place) = bytes.get_mut(..HEADER_BYTES) {
        place.copy_from_slice(&header.encode());
    }
}

fn put_nullable_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            // Below i32::MAX, as whoever calls sees to.
            put_varint(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
        None => put_varint(out, -1),
    }
}

fn nullable_bytes_len(bytes: Option<&[u8]>) -> usize {
    let Some(bytes) = bytes else { return varint_bytes(-1) };
    varint_bytes(i32::try_from(bytes.len()).unwrap_or(i32::MAX)).saturating_add(bytes.len())
}

#[cfg(test)]
mod tests;
