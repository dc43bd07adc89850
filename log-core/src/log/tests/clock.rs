//! A wall clock that is set forward and back: what goes by it, and that nothing else does.

use super::*;
use crate::log::verification::{TxnEpochs, Verification};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const NOW_MS: i64 = 1_700_000_000_000;

/// One sealed segment for each time, and an empty active one.
fn segments(disk: &MemDisk, config: LogConfig, times: &[i64]) -> Log {
    let mut log = open(disk, config);
    for time in times {
        append(&mut log, timed(&[(*time, "x")])).unwrap();
        log.roll(NOW_MS).unwrap();
    }
    log
}

fn deleted(disk: &MemDisk) -> usize {
    names(disk).iter().filter(|name| name.ends_with(".deleted")).count()
}

/// As in Kafka: a record's age is the clock's word. A clock that is set back makes no record older.
#[test]
fn retention_takes_the_clocks_word_and_one_set_back_deletes_nothing() {
    let disk = data_disk();
    let config = LogConfig { retention_ms: DAY_MS, ..small(1 << 20) };
    let mut log = segments(&disk, config, &[NOW_MS - HOUR_MS, NOW_MS]);
    for now_ms in [NOW_MS - 30 * DAY_MS, 0, -1, i64::MIN, NOW_MS] {
        assert_eq!(log.apply_retention(2, now_ms).unwrap().segments_deleted, 0, "{now_ms}");
        assert!(!log.roll_if_due(now_ms).unwrap(), "{now_ms}");
    }
    // A day ahead one is a day old, the other not.
    let retained = log.apply_retention(2, NOW_MS + DAY_MS).unwrap();
    assert_eq!((retained.segments_deleted, log.log_start_offset()), (1, 1));
    // What was written while the clock was ahead stays when it is right again, for longer than it should.
    append(&mut log, timed(&[(NOW_MS + 30 * DAY_MS, "ahead")])).unwrap();
    log.roll(NOW_MS).unwrap();
    assert_eq!(log.apply_retention(3, NOW_MS + 2 * DAY_MS).unwrap().segments_deleted, 1);
    assert_eq!(log.apply_retention(3, NOW_MS + 20 * DAY_MS).unwrap().segments_deleted, 0);
    assert_eq!(log.apply_retention(3, NOW_MS + 32 * DAY_MS).unwrap().segments_deleted, 1);
}

#[test]
fn dropped_files_wait_no_longer_than_their_delay_though_the_clock_is_set_back() {
    let disk = data_disk();
    let config = LogConfig { file_delete_delay_ms: 1000, retention_ms: -1, ..small(1 << 20) };
    let mut log = segments(&disk, config, &[1, 2, 3]);
    log.set_log_start_offset(2).unwrap();
    log.apply_retention(3, NOW_MS + DAY_MS).unwrap();
    let waiting = deleted(&disk);
    assert!(waiting > 0);
    assert_eq!(log.remove_deleted(NOW_MS), 0, "the delay begins again");
    assert_eq!(log.remove_deleted(NOW_MS + 999), 0);
    assert_eq!(log.remove_deleted(NOW_MS + 1000), waiting);
    assert_eq!(deleted(&disk), 0);
}

#[test]
fn segments_of_records_without_a_time_roll_by_a_clock_that_went_on() {
    let disk = data_disk();
    let config = LogConfig { segment_ms: HOUR_MS, retention_ms: -1, ..small(1 << 20) };
    let mut log = open(&disk, config);
    log.append_as_leader(vec![timed(&[(-1, "x")])], EPOCH, NOW_MS).pop().unwrap().unwrap();
    log.roll(NOW_MS).unwrap();
    log.append_as_leader(vec![timed(&[(-1, "y")])], EPOCH, NOW_MS).pop().unwrap().unwrap();
    assert!(!log.roll_if_due(NOW_MS - DAY_MS).unwrap());
    assert!(!log.roll_if_due(NOW_MS + HOUR_MS).unwrap());
    assert!(log.roll_if_due(NOW_MS + HOUR_MS + 1).unwrap());
}

#[test]
fn producers_expire_by_the_clock_and_come_back_with_their_next_batch() {
    let disk = data_disk();
    let config = LogConfig { producer_id_expiration_ms: DAY_MS, ..small(1 << 20) };
    let mut log = open(&disk, config);
    // Their records are of the second 1.
    append(&mut log, sequenced((7, 0), 0, &["a"])).unwrap();
    assert_eq!(log.expire_producers(1000 - DAY_MS), 0);
    assert_eq!(log.expire_producers(i64::MIN), 0);
    assert_eq!(log.expire_producers(1000 + DAY_MS), 1, "as in Kafka");
    append(&mut log, sequenced((7, 0), 1, &["b"])).unwrap();
    let again = append(&mut log, sequenced((7, 0), 1, &["b"])).unwrap();
    assert_eq!((again.base_offset, again.novelty), (1, Novelty::Duplicate));
}

#[test]
fn no_clock_whatever_panics_or_loses_what_is_not_to_go() {
    let disk = data_disk();
    let config = LogConfig {
        retention_ms: -1,
        cleanup_policy: CleanupPolicy::CompactAndDelete,
        flush_ms: 1000,
        ..small(400)
    };
    let mut log = open(&disk, config.clone());
    let clocks = [NOW_MS, i64::MAX, 0, NOW_MS + DAY_MS, i64::MIN, NOW_MS - DAY_MS, -1];
    for (sequence, now_ms) in (0..).zip(clocks.into_iter().cycle().take(28)) {
        let batch = sequenced((7, 0), sequence, &["x"]);
        log.append_as_leader(vec![batch], EPOCH, now_ms).pop().unwrap().unwrap();
        let end = log.log_end_offset();
        let asked = Verification {
            producer_id: 7,
            producer_epoch: 0,
            base_sequence: sequence + 1,
            epochs: TxnEpochs::Stay,
        };
        _ = log.begin_verification(&asked, now_ms);
        log.roll_if_due(now_ms).unwrap();
        log.apply_retention(end, now_ms).unwrap();
        log.remove_deleted(now_ms);
        log.plan_compaction(None, end, now_ms).unwrap();
        if let Some(point) = log.flush_point().unwrap() {
            point.sync().unwrap();
            log.mark_synced(&point, now_ms);
        }
        assert_eq!(log.log_end_offset(), i64::from(sequence) + 1);
    }
    assert_eq!(read_from(&log.reader(), 0).len(), 28);
    let found = log.reader().search_append_time(NOW_MS, TimeBoundary::Lower, 28).unwrap();
    assert_eq!(found, Some(0));
    log.close_clean(i64::MIN).unwrap();
    let log = open_as(&disk.kill(), config, clean()).0;
    assert_eq!(read_from(&log.reader(), 0).len(), 28);
}
