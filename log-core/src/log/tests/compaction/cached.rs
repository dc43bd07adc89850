//! What readers are given from memory is what the compacted files hold.

use super::transactions::{end_txn, in_txn};
use super::*;

fn cached(segment_bytes: u32) -> LogConfig {
    let tail_cache_bytes = LogConfig::default().tail_cache_bytes;
    LogConfig { tail_cache_bytes, ..compacting(segment_bytes) }
}

/// The index entry goes a run after the data: with that still in memory nobody would know that it was aborted.
#[test]
fn aborted_records_are_not_read_from_memory_once_nothing_says_that_they_are_aborted() {
    let disk = data_disk();
    let mut log = open(&disk, cached(1 << 20));
    in_txn(&mut log, 0, &[("k", Some("aborted"))]);
    end_txn(&mut log, TransactionOutcome::Abort);
    in_txn(&mut log, 1, &[("c", Some("committed"))]);
    end_txn(&mut log, TransactionOutcome::Commit);
    for value in ["1", "2"] {
        append(&mut log, keyed(&[("hot", Some(value))])).unwrap();
        log.roll(NOW_MS).unwrap();
        let dirty_from = (value == "2").then_some(5);
        compact(&mut log, dirty_from, NOW_MS).unwrap();
    }
    assert!(log.reader().aborted_transactions(0, 6).unwrap().is_empty(), "both runs are over");
    assert_eq!(content(&log), [row(2, "c", "committed"), row(5, "hot", "2")]);
}

#[test]
fn superseded_records_and_old_tombstones_are_not_read_from_memory() {
    let disk = data_disk();
    let first: &[Keyed<'_>] = &[("a", Some("1")), ("gone", Some("1"))];
    let mut log = sealed(&disk, cached(1 << 20), &[first, &[("gone", None), ("a", Some("2"))]]);
    compact(&mut log, None, NOW_MS).unwrap();
    assert_eq!(content(&log), [tombstone(2, "gone"), row(3, "a", "2")]);
    append(&mut log, keyed(&[("b", Some("1"))])).unwrap();
    log.roll(NOW_MS).unwrap();
    let later = NOW_MS + HOUR_MS;
    compact(&mut log, Some(4), later).unwrap();
    assert_eq!(content(&log), [row(3, "a", "2"), row(4, "b", "1")]);
}

/// What lies behind the compacted part stays in memory, and is read on from there.
#[test]
fn the_newest_batches_stay_in_memory() {
    let disk = data_disk();
    let config = LogConfig { tail_cache_bytes: 1000, ..compacting(1 << 20) };
    let mut log = open(&disk, config);
    for value in ["1", "2", "3"] {
        append(&mut log, keyed(&[("a", Some(value)), ("b", Some(&"x".repeat(100)))])).unwrap();
    }
    log.roll(NOW_MS).unwrap();
    append(&mut log, keyed(&[("a", Some("4")), ("b", Some(&"x".repeat(100)))])).unwrap();
    compact(&mut log, None, NOW_MS).unwrap();
    append(&mut log, keyed(&[("c", Some("1"))])).unwrap();
    let offsets: Vec<_> = content(&log).into_iter().map(|row| row.0).collect();
    assert_eq!(offsets, [4, 5, 6, 7, 8]);
    disk.break_below(Path::new(DIR), "read");
    let offsets: Vec<_> = content_of(&log.reader(), 6).into_iter().map(|row| row.0).collect();
    assert_eq!(offsets, [6, 7, 8]);
}

/// A reader that began before two runs took an aborted transaction away sees its records and that they are aborted, or
/// neither.
#[test]
fn records_and_what_is_aborted_of_them_are_of_one_moment() {
    for config in [cached(1 << 20), compacting(1 << 20)] {
        let disk = data_disk();
        let mut log = open(&disk, config);
        in_txn(&mut log, 0, &[("k", Some("aborted"))]);
        end_txn(&mut log, TransactionOutcome::Abort);
        append(&mut log, keyed(&[("hot", Some("0"))])).unwrap();
        log.roll(NOW_MS).unwrap();
        let read_now = |log: &Log| {
            log.reader().read_with_aborted(0, 1 << 20, 3, ReadMinimum::OneBatch).unwrap()
        };
        let (batches, aborted) = read_now(&log);
        let earlier = log.reader().shared.load();
        for dirty_from in [None, Some(3)] {
            compact(&mut log, dirty_from, NOW_MS).unwrap();
            append(&mut log, keyed(&[("hot", Some("1"))])).unwrap();
            log.roll(NOW_MS).unwrap();
        }
        assert_eq!(aborted.len(), 1);
        let of_earlier = earlier.read(0, 1 << 20, 3, ReadMinimum::OneBatch).unwrap();
        assert_eq!(of_earlier.next_offset, batches.next_offset);
        assert_eq!(earlier.aborted_transactions(0, batches.next_offset).unwrap(), aborted);
        assert!(read_now(&log).0.size < batches.size, "the aborted record is gone now");
    }
}
