//! Transactions in compacted logs: aborted data goes, markers outlive their data.

use super::*;

const PRODUCER: (i64, i16) = (7, 0);

pub(super) fn in_txn(log: &mut Log, sequence: i32, records: &[Keyed<'_>]) {
    let producer = ProducerSequence {
        id: ProducerId(PRODUCER.0),
        epoch: ProducerEpoch(PRODUCER.1),
        base_sequence: sequence,
    };
    let params = BatchParams {
        producer: Some(producer),
        kind: BatchKind::Transactional,
        ..BatchParams::default()
    };
    append(log, keyed_with(params, records)).unwrap();
}

pub(super) fn end_txn(log: &mut Log, outcome: TransactionOutcome) {
    append(log, marker(PRODUCER, outcome)).unwrap();
    log.high_watermark_moved(log.log_end_offset());
}

/// Base offset and record count of the control batches.
fn markers(log: &Log) -> Vec<(i64, i32)> {
    let all = batches(&log.reader(), 0).into_iter().map(|(header, _)| header);
    let control = all.filter(BatchHeader::is_control);
    control.map(|header| (header.base_offset, header.record_count)).collect()
}

#[test]
fn aborted_data_goes_at_once_and_its_marker_a_horizon_later() {
    let disk = data_disk();
    let mut log = open(&disk, compacting(1 << 20));
    append(&mut log, keyed(&[("a", Some("stays"))])).unwrap();
    in_txn(&mut log, 0, &[("a", Some("aborted"))]);
    end_txn(&mut log, TransactionOutcome::Abort);
    in_txn(&mut log, 1, &[("b", Some("committed"))]);
    end_txn(&mut log, TransactionOutcome::Commit);
    append(&mut log, keyed(&[("c", Some("plain"))])).unwrap();
    log.roll(NOW_MS).unwrap();
    assert_eq!(log.reader().aborted_transactions(0, 6).unwrap().len(), 1);
    compact(&mut log, None, NOW_MS).unwrap();
    let expected = [row(0, "a", "stays"), row(3, "b", "committed"), row(5, "c", "plain")];
    assert_eq!(content(&log), expected);
    assert_eq!(markers(&log), [(2, 1), (4, 1)]);
    let aborted = log.reader().aborted_transactions(0, 6).unwrap();
    assert_eq!(aborted.len(), 1, "whoever reads on from the middle must know");
    // Second run: the marker has no data any more and gets its horizon; third: it goes.
    let next = |log: &mut Log, now_ms: i64| {
        append(log, keyed(&[("d", Some("more"))])).unwrap();
        log.roll(now_ms).unwrap();
        let end = log.log_end_offset() - 1;
        compact(log, Some(end), now_ms).unwrap();
    };
    next(&mut log, NOW_MS + 10);
    let (header, _) =
        batches(&log.reader(), 0).into_iter().find(|(header, _)| header.is_control()).unwrap();
    assert_eq!(header.delete_horizon_ms(), Some(NOW_MS + 10 + HOUR_MS));
    assert!(log.reader().aborted_transactions(0, 7).unwrap().is_empty());
    next(&mut log, NOW_MS + 9 + HOUR_MS);
    assert_eq!(markers(&log), [(2, 1), (4, 1)]);
    next(&mut log, NOW_MS + 10 + HOUR_MS);
    assert_eq!(markers(&log), [(4, 1)], "the other one's data is still there");
    assert_eq!(content(&log)[..3], expected);
}

#[test]
fn an_open_transaction_and_what_follows_it_wait() {
    let disk = data_disk();
    let mut log = open(&disk, compacting(1 << 20));
    append(&mut log, keyed(&[("a", Some("1")), ("a", Some("2"))])).unwrap();
    in_txn(&mut log, 0, &[("a", Some("3"))]);
    append(&mut log, keyed(&[("a", Some("4"))])).unwrap();
    log.roll(NOW_MS).unwrap();
    assert_eq!(compact(&mut log, None, NOW_MS), Some(2));
    assert_eq!(content(&log), [row(1, "a", "2"), row(2, "a", "3"), row(3, "a", "4")]);
    assert_eq!(compact(&mut log, Some(2), NOW_MS), None);
    end_txn(&mut log, TransactionOutcome::Abort);
    log.roll(NOW_MS).unwrap();
    assert_eq!(compact(&mut log, Some(2), NOW_MS), Some(5));
    assert_eq!(content(&log), [row(3, "a", "4")]);
    assert_eq!(markers(&log), [(4, 1)]);
}

/// A transaction over several segments, of which the marker lies in the last.
#[test]
fn a_transaction_is_known_for_aborted_before_its_marker_is_met() {
    let disk = data_disk();
    let mut log = open(&disk, compacting(150));
    append(&mut log, keyed(&[("a", Some("stays"))])).unwrap();
    for sequence in 0..6 {
        in_txn(&mut log, sequence, &[("a", Some("aborted")), ("b", Some("aborted"))][..1]);
    }
    end_txn(&mut log, TransactionOutcome::Abort);
    log.roll(NOW_MS).unwrap();
    assert!(log.segments.len() > 3);
    compact(&mut log, None, NOW_MS).unwrap();
    assert_eq!(content(&log), [row(0, "a", "stays")]);
    // The last data batch of the producer stays empty, for its sequence.
    let left: Vec<_> = batches(&log.reader(), 0)
        .into_iter()
        .map(|(header, _)| (header.base_offset, header.record_count))
        .collect();
    assert_eq!(left, [(0, 1), (6, 0), (7, 1)]);
    log.close();
    let mut log = open(&disk, compacting(150));
    let producer = log.producers().producer(PRODUCER.0).unwrap();
    assert_eq!(producer.last_batch().map(|batch| batch.last_sequence), Some(5));
    assert_eq!(log.first_unstable_offset(), Some(6), "until the high watermark passes the marker");
    log.high_watermark_moved(8);
    assert_eq!(log.first_unstable_offset(), None);
}
