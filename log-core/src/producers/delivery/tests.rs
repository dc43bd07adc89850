use proptest::prelude::*;

use super::*;
use crate::ids::{LeaderEpoch, ProducerId, TopicId};
use crate::record::batch::Attributes;

const PRODUCER: ProducerId = ProducerId::of_delivery(TopicId([9; 16]), 3);

fn at(note: i64, place: usize) -> DeliveryPosition {
    DeliveryPosition::new(Offset(note), place).expect("within the bounds")
}

/// A batch of `count` messages whose last one stands at `last`.
fn batch(last: DeliveryPosition, count: i32, base_offset: i64) -> BatchHeader {
    BatchHeader {
        base_offset,
        batch_length: 100,
        partition_leader_epoch: LeaderEpoch(0),
        crc: 0,
        attributes: Attributes::default(),
        last_offset_delta: count - 1,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: PRODUCER,
        producer_epoch: last.epoch(),
        base_sequence: last.sequence() - count + 1,
        record_count: count,
    }
}

#[derive(Debug, PartialEq)]
enum Said {
    Written,
    Duplicate,
    BeginAt(i32),
}

fn deliver(producers: &mut Producers, last: DeliveryPosition, count: i32) -> Said {
    let end_offset = producers.end_offset();
    let batch = batch(last, count, end_offset);
    match producers.admit_delivery(&batch, end_offset) {
        Ok(None) => {
            producers.append(&batch);
            Said::Written
        }
        Ok(Some(_)) => Said::Duplicate,
        Err(LogError::OutOfOrderSequence { expected, .. }) => Said::BeginAt(expected),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_was_delivered_is_a_duplicate_however_old_and_gaps_are_no_error() {
    let mut producers = Producers::default();
    assert_eq!(deliver(&mut producers, at(7, 3), 4), Said::Written);
    for note in 8..20 {
        assert_eq!(deliver(&mut producers, at(note, 0), 1), Said::Written, "{note}");
    }
    assert_eq!(deliver(&mut producers, at(7, 3), 4), Said::Duplicate, "not among the last five");
    assert_eq!(deliver(&mut producers, at(7, 0), 1), Said::Duplicate, "in other pieces");
    assert_eq!(deliver(&mut producers, at(40, 9), 5), Said::Written, "notes were left out");
}

#[test]
fn a_batch_of_which_a_part_was_delivered_is_told_where_to_begin() {
    let mut producers = Producers::default();
    assert_eq!(deliver(&mut producers, at(5, 4), 5), Said::Written);
    assert_eq!(deliver(&mut producers, at(5, 7), 8), Said::BeginAt(at(5, 5).sequence()));
    assert_eq!(deliver(&mut producers, at(5, 7), 3), Said::Written);
    assert_eq!(deliver(&mut producers, at(5, 7), 8), Said::Duplicate);
}

#[test]
fn positions_go_on_in_the_next_epoch_and_end_with_the_last() {
    let last_of_epoch = (1 << 21) - 1;
    assert_eq!(at(last_of_epoch, 1023).epoch(), ProducerEpoch(0));
    assert_eq!(at(last_of_epoch, 1023).sequence(), i32::MAX);
    assert_eq!(at(last_of_epoch + 1, 0).epoch(), ProducerEpoch(1));
    assert_eq!(at(last_of_epoch + 1, 0).sequence(), 0);
    assert_eq!(at(DeliveryPosition::NOTES_END - 1, 1023).epoch(), ProducerEpoch(i16::MAX));
    for (note, place) in [(-1, 0), (DeliveryPosition::NOTES_END, 0), (0, 1024)] {
        assert_eq!(DeliveryPosition::new(Offset(note), place), None);
    }
    let mut producers = Producers::default();
    assert_eq!(deliver(&mut producers, at(last_of_epoch, 1023), 10), Said::Written);
    assert_eq!(deliver(&mut producers, at(last_of_epoch + 1, 0), 1), Said::Written);
    assert_eq!(deliver(&mut producers, at(last_of_epoch, 1023), 10), Said::Duplicate);
}

#[test]
fn producers_of_deliveries_are_nobody_elses_and_are_never_forgotten() {
    assert!(PRODUCER.is_of_delivery() && !ProducerId(i64::from(i32::MAX)).is_of_delivery());
    assert_ne!(PRODUCER, ProducerId::of_delivery(TopicId([9; 16]), 4));
    assert_ne!(PRODUCER, ProducerId::of_delivery(TopicId([8; 16]), 3));
    assert!(ProducerId::of_delivery(TopicId([0xFF; 16]), i32::MAX).0 > 0);
    let mut producers = Producers::default();
    assert_eq!(deliver(&mut producers, at(1, 0), 1), Said::Written);
    assert_eq!(producers.expire(i64::MAX, 1), 0);
    assert_eq!(deliver(&mut producers, at(1, 0), 1), Said::Duplicate);
}

proptest! {
    /// Deliveries that are begun again anywhere, in pieces of any size, above what is there leave each
    /// message once and in order.
    #[test]
    fn each_message_is_there_once(
        sizes in prop::collection::vec(1_usize..5, 1..12),
        attempts in prop::collection::vec((0_usize..12, 1_usize..9), 1..60),
    ) {
        let notes = sizes.iter().zip((3..).step_by(2));
        let all: Vec<_> =
            notes.flat_map(|(size, note)| (0..*size).map(move |place| at(note, place))).collect();
        let mut producers = Producers::default();
        let mut log = Vec::new();
        for (back, piece) in attempts.into_iter().chain([(0, 100)]) {
            let from = log.len().saturating_sub(back);
            let rest = &all[from..(from + piece).min(all.len())];
            let known = producers.delivered(PRODUCER);
            let rest = &rest[rest.partition_point(|position| Some(*position) <= known)..];
            if let Some(last) = rest.last() {
                prop_assert_eq!(deliver(&mut producers, *last, rest.len() as i32), Said::Written);
                log.extend_from_slice(rest);
            }
            if let Some(last) = log.last() {
                prop_assert_eq!(deliver(&mut producers, *last, 1), Said::Duplicate);
            }
        }
        prop_assert_eq!(log, all);
    }
}
