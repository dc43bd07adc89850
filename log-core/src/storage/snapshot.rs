//! `.snapshot`: the producers of a log up to the offset in the file's name.
//!
//! Big endian: version i16 (1), CRC-32C u32 of all that follows, count i32, then for each producer
//! its id i64, epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64,
//! coordinator epoch i32, first offset of its open transaction i64; -1 where there is none. Source:
//! ProducerStateManager, `ProducerSnapshot.json`.

use crate::producers::{Producer, Producers, SentBatch};

const VERSION: i16 = 1;
const HEADER_BYTES: usize = 6;
const ENTRY_BYTES: usize = 46;

/// The file's content.
pub(crate) fn encode(producers: &Producers) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut count = 0_i32;
    for (producer_id, producer) in producers.iter() {
        encode_producer(&mut entries, producer_id, producer);
        count += 1;
    }
    let body = [&count.to_be_bytes()[..], &entries].concat();
    let crc = crc32c::crc32c(&body);
    [&VERSION.to_be_bytes()[..], &crc.to_be_bytes(), &body].concat()
}

/// The producers in a file for `end_offset`; those that are expired at `now_ms` stay out, as Kafka
/// does when it loads. `None` for a file of another form or with a wrong CRC.
pub(crate) fn decode(
    bytes: &[u8],
    end_offset: i64,
    now_ms: i64,
    expiration_ms: i64,
) -> Option<Producers> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
    let (version, crc) = header.split_first_chunk()?;
    let crc = u32::from_be_bytes(crc.try_into().ok()?);
    if i16::from_be_bytes(*version) != VERSION || crc32c::crc32c(body) != crc {
        return None;
    }
    let (count, entries) = body.split_first_chunk()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    if entries.len() != count.checked_mul(ENTRY_BYTES)? {
        return None;
    }
    let mut producers = Producers::starting_at(end_offset);
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let (producer_id, producer) = decode_producer(entry)?;
        if !producer.is_expired(producer_id, now_ms, expiration_ms) {
            producers.restore(producer_id, producer);
        }
    }
    Some(producers)
}

fn encode_producer(out: &mut Vec<u8>, producer_id: i64, producer: &Producer) {
    let none = SentBatch { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };
    let last = producer.last_batch().unwrap_or(none);
    out.extend_from_slice(&producer_id.to_be_bytes());
    out.extend_from_slice(&producer.epoch.to_be_bytes());
    out.extend_from_slice(&last.last_sequence.to_be_bytes());
    out.extend_from_slice(&last.last_offset.to_be_bytes());
    out.extend_from_slice(&last.offset_delta.to_be_bytes());
    out.extend_from_slice(&producer.last_timestamp.to_be_bytes());
    out.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&producer.txn_first_offset.unwrap_or(-1).to_be_bytes());
}

fn decode_producer(entry: &[u8]) -> Option<(i64, Producer)> {
    let (producer_id, rest) = entry.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (last_sequence, rest) = rest.split_first_chunk()?;
    let (last_offset, rest) = rest.split_first_chunk()?;
    let (offset_delta, rest) = rest.split_first_chunk()?;
    let (timestamp, rest) = rest.split_first_chunk()?;
    let (coordinator_epoch, rest) = rest.split_first_chunk()?;
    let txn_first_offset = i64::from_be_bytes(rest.try_into().ok()?);
    let timestamp = i64::from_be_bytes(*timestamp);
    let last_batch = SentBatch {
        last_sequence: i32::from_be_bytes(*last_sequence),
        last_offset: i64::from_be_bytes(*last_offset),
        offset_delta: i32::from_be_bytes(*offset_delta),
        timestamp,
    };
    let mut producer =
        Producer::from_last_batch(Some(last_batch).filter(|batch| batch.last_offset >= 0));
    producer.epoch = i16::from_be_bytes(*epoch);
    producer.coordinator_epoch = i32::from_be_bytes(*coordinator_epoch);
    producer.last_timestamp = timestamp;
    producer.txn_first_offset = Some(txn_first_offset).filter(|offset| *offset >= 0);
    Some((i64::from_be_bytes(*producer_id), producer))
}

#[cfg(test)]
mod tests;
