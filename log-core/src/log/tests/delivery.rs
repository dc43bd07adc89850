//! Deliveries in a real log: what a restart, a clock and a power cut leave of their state.

use super::*;
use crate::ids::Offset;
use crate::producers::DeliveryPosition;
use crate::testing::mem_disk::Crash;

/// Messages of the note at `note`, delivered in one batch.
fn delivery(note: i64, values: &[&str]) -> AppendBatch {
    let last = DeliveryPosition::new(Offset(note), values.len() - 1).unwrap();
    let id = ProducerId::of_delivery(TopicId([1; 16]), 0);
    let base = last.sequence() - (values.len() as i32 - 1);
    let batch = of_producer((id.0, last.epoch().0), base, BatchKind::Plain, values);
    AppendBatch { origin: AppendOrigin::Delivery, ..batch }
}

#[test]
fn a_repeated_delivery_is_found_after_restarts_and_expiry() {
    let disk = data_disk();
    let config = LogConfig { producer_id_expiration_ms: 1, ..small(4096) };
    let mut log = open(&disk, config.clone());
    append(&mut log, delivery(4, &["a", "b"])).unwrap();
    append(&mut log, delivery(9, &["c"])).unwrap();
    assert_eq!(log.expire_producers(i64::MAX), 0);
    let again = append(&mut log, delivery(4, &["a", "b"])).unwrap();
    assert_eq!(again.novelty, Novelty::Duplicate);
    log.close_clean(9000).unwrap();
    drop(log);
    let mut log = open_as(&disk, config, clean()).0;
    for (note, sent) in [(4, &["a", "b"][..]), (9, &["c"][..])] {
        assert_eq!(append(&mut log, delivery(note, sent)).unwrap().novelty, Novelty::Duplicate);
    }
    append(&mut log, delivery(10, &["d"])).unwrap();
    assert_eq!(values_from(&log.reader(), 0), ["a", "b", "c", "d"]);
}

#[test]
fn a_delivery_that_a_power_cut_took_is_new_again() {
    let disk = data_disk();
    let mut log = open(&disk, small(4096));
    append(&mut log, delivery(1, &["a"])).unwrap();
    log.flush(1).unwrap();
    append(&mut log, delivery(2, &["b"])).unwrap();
    let disk = disk.crash(Crash::ForgetUnsynced);
    let mut log = open(&disk, small(4096));
    let redone = [append(&mut log, delivery(1, &["a"])), append(&mut log, delivery(2, &["b"]))];
    assert_eq!(redone.map(|answer| answer.unwrap().novelty), [Novelty::Duplicate, Novelty::New]);
    assert_eq!(values_from(&log.reader(), 0), ["a", "b"]);
}

#[test]
fn a_client_cannot_pass_for_a_coordinator_that_delivers() {
    let mut log = open(&data_disk(), small(4096));
    let batch = AppendBatch { origin: AppendOrigin::Client, ..delivery(1, &["a"]) };
    assert!(matches!(append(&mut log, batch), Err(LogError::InvalidBatch(_))));
    assert_eq!(log.log_end_offset(), 0);
}

#[test]
fn only_coordinators_end_transactions() {
    let mut log = open(&data_disk(), small(4096));
    let marker = marker((1, 0), TransactionOutcome::Commit);
    let marker = AppendBatch { origin: AppendOrigin::Delivery, ..marker };
    assert!(matches!(append(&mut log, marker), Err(LogError::InvalidBatch(_))));
}
