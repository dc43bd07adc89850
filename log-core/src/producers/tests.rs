use proptest::prelude::*;

use super::*;
use crate::ids::{LeaderEpoch, ProducerEpoch, ProducerId};
use crate::record::batch::Attributes;

fn header(producer: (i64, i16), base_sequence: i32, records: i32, base_offset: i64) -> BatchHeader {
    BatchHeader {
        base_offset,
        batch_length: 100,
        partition_leader_epoch: LeaderEpoch(0),
        crc: 0,
        attributes: Attributes::default(),
        last_offset_delta: records - 1,
        base_timestamp: 1000 + base_offset,
        max_timestamp: 1000 + base_offset,
        producer_id: ProducerId(producer.0),
        producer_epoch: ProducerEpoch(producer.1),
        base_sequence,
        record_count: records,
    }
}

fn transactional(producer: (i64, i16), base_sequence: i32, base_offset: i64) -> BatchHeader {
    let header = header(producer, base_sequence, 1, base_offset);
    BatchHeader { attributes: header.attributes.transactional(), ..header }
}

fn marker(producer: (i64, i16), base_offset: i64) -> BatchHeader {
    let header = header(producer, NO_SEQUENCE, 1, base_offset);
    BatchHeader { attributes: header.attributes.transactional().control(), ..header }
}

const ABORT: EndTransactionMarker =
    EndTransactionMarker { outcome: TransactionOutcome::Abort, coordinator_epoch: 3 };

/// Sends a batch as a client would; where it is, or the error's name.
fn send(
    producers: &mut Producers,
    producer: (i64, i16),
    base_sequence: i32,
    records: i32,
) -> Result<i64, &'static str> {
    let end_offset = producers.end_offset();
    let batch = header(producer, base_sequence, records, end_offset);
    if let Some(batch) = producers.duplicate(&batch) {
        assert_eq!(batch.timestamp, 1000 + batch.first_offset());
        return Ok(batch.first_offset());
    }
    match producers.admit(&batch, end_offset) {
        Ok(()) => {
            producers.append(&batch);
            Ok(end_offset)
        }
        Err(LogError::OutOfOrderSequence { .. }) => Err("order"),
        Err(LogError::InvalidProducerEpoch { .. }) => Err("epoch"),
        Err(LogError::InvalidTxnState { .. }) => Err("txn"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn sequences_continue_and_the_last_five_batches_may_be_sent_again() {
    let mut producers = Producers::starting_at(100);
    for i in 0..7 {
        assert_eq!(send(&mut producers, (1, 0), i * 10, 10), Ok(100 + i64::from(i) * 10));
    }
    for i in 2..7 {
        assert_eq!(send(&mut producers, (1, 0), i * 10, 10), Ok(100 + i64::from(i) * 10));
    }
    assert_eq!(send(&mut producers, (1, 0), 10, 10), Err("order"), "too old to be known");
    assert_eq!(send(&mut producers, (1, 0), 60, 9), Err("order"), "another range");
    assert_eq!(send(&mut producers, (1, 0), 71, 1), Err("order"), "a gap");
    assert_eq!(producers.end_offset(), 170);
    assert_eq!(send(&mut producers, (1, 0), 70, 1), Ok(170));
}

#[test]
fn an_unknown_producer_may_start_anywhere() {
    // Case B47: what came before may have been deleted.
    let mut producers = Producers::default();
    assert_eq!(send(&mut producers, (1, 4), 5, 2), Ok(0));
    assert_eq!(send(&mut producers, (1, 4), 7, 1), Ok(2));
}

#[test]
fn a_producer_known_by_a_marker_alone_goes_on_where_it_was() {
    // Case B47: records deleted, the commit marker left, the state rebuilt from the log.
    let mut producers = Producers::starting_at(5);
    producers.append_marker(&marker((1, 4), 5), &ABORT, 0);
    assert_eq!(send(&mut producers, (1, 4), 5, 2), Ok(6));
    assert_eq!(send(&mut producers, (1, 4), 8, 1), Err("order"));
    assert_eq!(send(&mut producers, (1, 4), 7, 1), Ok(8));
}

#[test]
fn epochs_fence_older_ones_and_start_at_zero() {
    let mut producers = Producers::default();
    assert_eq!(send(&mut producers, (1, 1), 0, 1), Ok(0));
    assert_eq!(send(&mut producers, (1, 0), 1, 1), Err("epoch"));
    assert_eq!(send(&mut producers, (1, 2), 1, 1), Err("order"));
    assert_eq!(send(&mut producers, (1, 2), 0, 1), Ok(1));
    assert_eq!(send(&mut producers, (1, 1), 1, 1), Err("epoch"));
    assert_eq!(send(&mut producers, (1, 2), 0, 1), Ok(1), "its own first batch, again");
    assert_eq!(producers.end_offset(), 2);
}

#[test]
fn sequences_wrap_to_zero_after_the_largest() {
    // Case B49.
    let mut producers = Producers::default();
    let p = (1, 0);
    assert_eq!(send(&mut producers, p, 2_147_483_645, 2), Ok(0));
    assert_eq!(send(&mut producers, p, 0, 1), Err("order"), "skips 2147483647");
    assert_eq!(send(&mut producers, p, 2_147_483_647, 3), Ok(2));
    assert_eq!(send(&mut producers, p, 2_147_483_647, 3), Ok(2), "the wrapping batch, again");
    assert_eq!(send(&mut producers, p, 2, 1), Ok(5));
    assert_eq!(producers.producer(1).unwrap().last_batch().unwrap().last_sequence, 2);

    let mut producers = Producers::default();
    assert_eq!(send(&mut producers, p, i32::MAX, 1), Ok(0));
    assert_eq!(send(&mut producers, p, 0, 1), Ok(1));
}

#[test]
fn an_open_transaction_bounds_the_stable_offset_until_its_marker_is_replicated() {
    let mut producers = Producers::default();
    producers.append(&transactional((1, 0), 0, 0));
    producers.append(&transactional((2, 0), 0, 1));
    producers.append(&transactional((1, 0), 1, 2));
    assert_eq!(producers.first_unstable_offset(), Some(0));
    let plain = header((1, 0), 2, 1, 3);
    assert!(matches!(producers.admit(&plain, 3), Err(LogError::InvalidTxnState { .. })));

    let completed = producers.append_marker(&marker((1, 0), 3), &ABORT, 77).unwrap();
    assert_eq!((completed.first_offset, completed.last_offset), (0, 3));
    assert_eq!(completed.last_stable_offset, 1, "producer 2 is still open");
    assert_eq!(producers.first_unstable_offset(), Some(0), "not yet replicated");
    producers.high_watermark_moved(3);
    assert_eq!(producers.first_unstable_offset(), Some(0));
    producers.high_watermark_moved(4);
    assert_eq!(producers.first_unstable_offset(), Some(1));
    let completed = producers.append_marker(&marker((2, 0), 4), &ABORT, 78).unwrap();
    assert_eq!(completed.last_stable_offset, 5);
    producers.high_watermark_moved(5);
    assert_eq!(producers.first_unstable_offset(), None);
    assert_eq!(producers.append_marker(&marker((2, 0), 5), &ABORT, 79), None, "nothing was open");
    let next = transactional((1, 0), 2, 6);
    assert_eq!(producers.admit(&next, 6), Ok(()), "sequences go on in the epoch");
}

#[test]
fn markers_are_fenced_by_producer_and_coordinator_epoch() {
    let mut producers = Producers::default();
    producers.append(&transactional((1, 5), 0, 0));
    let older = EndTransactionMarker { coordinator_epoch: 2, ..ABORT };
    assert!(matches!(
        producers.admit_marker(&marker((1, 4), 1), &ABORT, TxnEpochs::Stay),
        Err(LogError::InvalidProducerEpoch { incoming: 4, current: 5, .. })
    ));
    assert_eq!(producers.admit_marker(&marker((1, 6), 1), &ABORT, TxnEpochs::Stay), Ok(()));
    producers.append_marker(&marker((1, 6), 1), &ABORT, 0);
    assert!(matches!(
        producers.admit_marker(&marker((1, 6), 2), &older, TxnEpochs::Stay),
        Err(LogError::CoordinatorFenced { incoming: 2, current: 3, .. })
    ));
    assert_eq!(send(&mut producers, (1, 6), 1, 1), Err("order"), "the bumped epoch starts at 0");
    assert_eq!(send(&mut producers, (1, 5), 1, 1), Err("epoch"));
    assert_eq!(send(&mut producers, (1, 6), 0, 1), Ok(2));
}

#[test]
fn producers_expire_by_their_last_timestamp_but_not_inside_a_transaction() {
    let mut producers = Producers::default();
    producers.append(&header((1, 0), 0, 1, 0));
    producers.append(&transactional((2, 0), 0, 1));
    producers.append(&header((3, 0), 0, 1, 100));
    assert_eq!(producers.expire(1500, 501), 0);
    assert_eq!(producers.expire(1500, 500), 1);
    assert_eq!(producers.expire(i64::MAX, 1), 1);
    assert_eq!(producers.iter().map(|(id, _)| id).collect::<Vec<_>>(), [2]);
    assert_eq!(producers.first_unstable_offset(), Some(1));
}

#[test]
fn a_failed_write_is_taken_back_whole() {
    let mut producers = Producers::default();
    producers.append(&transactional((1, 0), 0, 0));
    let before = producers.clone();
    let saved = vec![producers.save(1), producers.save(2), producers.save(1), producers.save(3)];
    producers.append_marker(&marker((1, 0), 1), &ABORT, 5);
    producers.append(&transactional((2, 0), 0, 2));
    producers.append(&transactional((1, 0), 1, 3));
    producers.append(&header((3, 0), 0, 4, 4));
    assert_ne!(producers, before);
    producers.take_back(saved, 1);
    assert_eq!(producers, before);
}

proptest! {
    /// Whatever a client sends again or out of order, each accepted sequence is in the log once and
    /// in order.
    #[test]
    fn accepted_sequences_are_contiguous(sends in prop::collection::vec((0_i32..40, 1_i32..4), 1..80)) {
        let mut producers = Producers::default();
        let mut log = Vec::new();
        for (sequence, records) in sends {
            let end_offset = producers.end_offset();
            if let Ok(offset) = send(&mut producers, (9, 0), sequence, records) {
                if offset == end_offset {
                    log.extend(sequence..sequence + records);
                } else {
                    let at = usize::try_from(offset).unwrap();
                    let was: Vec<i32> = (sequence..sequence + records).collect();
                    prop_assert_eq!(&log[at..at + was.len()], &was[..]);
                }
            }
        }
        prop_assert!(log.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
}

#[test]
fn a_marker_of_transactions_v2_is_above_its_data_or_repeated() {
    let mut producers = Producers::default();
    producers.append(&transactional((1, 4), 0, 0));
    let admit = |producers: &Producers, epoch| {
        producers.admit_marker(&marker((1, epoch), 1), &ABORT, TxnEpochs::Rise).is_ok()
    };
    // What came late of the transaction before, and what fences.
    assert_eq!([3, 4, 5, 6].map(|epoch| admit(&producers, epoch)), [false, false, true, true]);
    producers.append_marker(&marker((1, 5), 1), &ABORT, 1000);
    assert_eq!([4, 5, 6].map(|epoch| admit(&producers, epoch)), [false, true, true]);
    let next = transactional((1, 5), 0, 2);
    assert_eq!(producers.admit(&next, 2), Ok(()), "sequences start over");
    producers.append(&next);
    assert_eq!([5, 6].map(|epoch| admit(&producers, epoch)), [false, true]);
    assert_eq!(producers.in_transaction().collect::<Vec<_>>(), [(1, 5)]);
}

#[test]
fn a_coordinators_batch_is_checked_by_epoch_alone() {
    let mut producers = Producers::default();
    producers.append(&transactional((1, 4), NO_SEQUENCE, 0));
    let admitted =
        |epoch| producers.admit_epoch(&transactional((1, epoch), NO_SEQUENCE, 1)).is_ok();
    assert_eq!([3, 4, 5].map(admitted), [false, true, true]);
    assert_eq!(producers.admit_epoch(&transactional((2, 0), NO_SEQUENCE, 1)), Ok(()));
}
