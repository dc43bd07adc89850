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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// golden-0/00000000000000015193.snapshot of Kafka 4.3.1 after a controlled shutdown: an
    /// idempotent producer and a transactional one whose last transaction was committed.
    const GOLDEN: &str = "0001d0e53f45000000020000000000000000000000003ac30000000000003ac300000044\
        000001a228399db0ffffffffffffffffffffffff00000000000000010004ffffffffffffffffffffffff\
        00000000000001a22839b1c000000000ffffffffffffffff";

    fn golden() -> Vec<u8> {
        let digits: Vec<u8> = GOLDEN.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn a_snapshot_of_kafkas_is_read_and_written_alike() {
        let producers = decode(&golden(), 15_193, 0, i64::MAX).unwrap();
        let first = producers.producer(0).unwrap().last_batch().unwrap();
        assert_eq!((first.last_sequence, first.first_offset()), (15_043, 14_975));
        let second = producers.producer(1).unwrap();
        assert_eq!((second.epoch, second.coordinator_epoch), (4, 0));
        assert_eq!((second.last_batch(), second.txn_first_offset), (None, None));
        assert_eq!(producers.end_offset(), 15_193);
        assert_eq!(encode(&producers), golden());
    }

    #[test]
    fn expired_producers_stay_out() {
        let last = 1_795_971_199_424; // of producer 1
        let producers = decode(&golden(), 15_193, last + 1000, 1001).unwrap();
        assert_eq!(producers.iter().map(|(id, _)| id).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_flipped_bit_or_a_cut_is_noticed() {
        let golden = golden();
        for at in 0..golden.len() {
            assert_eq!(decode(&golden[..at], 0, 0, 1), None);
            let mut spoilt = golden.clone();
            spoilt[at] ^= 1;
            assert_eq!(decode(&spoilt, 0, 0, 1), None, "{at}");
        }
        assert_eq!(decode(&[golden.as_slice(), &[0]].concat(), 0, 0, 1), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let body = bytes.get(4..).unwrap_or_default();
            let crc = crc32c::crc32c(body);
            let with_crc = [&VERSION.to_be_bytes()[..], &crc.to_be_bytes(), body].concat();
            _ = decode(&with_crc, 0, 0, i64::MAX);
            _ = decode(&bytes, 0, 0, 1);
        }
    }
}
