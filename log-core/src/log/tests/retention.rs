use super::*;
use crate::testing::mem_disk::{Crash, Fault};

const HOUR_MS: i64 = 3_600_000;
const NOW_MS: i64 = 1_700_000_000_000;

/// One segment for each batch of records.
fn segments(disk: &MemDisk, config: LogConfig, times: &[i64]) -> Log {
    let mut log = open(disk, config);
    for time in times {
        append(&mut log, timed(&[(*time, "x")])).unwrap();
        log.roll(NOW_MS).unwrap();
    }
    log
}

/// Nothing goes by time.
fn keeping(config: LogConfig) -> LogConfig {
    LogConfig { retention_ms: -1, ..config }
}

#[test]
fn old_segments_go_by_their_greatest_record_time() {
    // Case B79: seconds look old and go, microseconds look young and stay.
    let config = LogConfig { retention_ms: HOUR_MS, ..small(1 << 20) };
    let rows: [(&[i64], i64); 8] = [
        (&[NOW_MS - HOUR_MS - 1, NOW_MS - HOUR_MS, NOW_MS], 1),
        (&[NOW_MS / 1000, NOW_MS], 1),
        (&[NOW_MS * 1000, NOW_MS - 2 * HOUR_MS], 0),
        (&[0, NOW_MS], 1),
        (&[i64::MAX, 0], 0),
        (&[0, i64::MAX, 0], 1),
        (&[NOW_MS - 2 * HOUR_MS, NOW_MS, 0], 1),
        (&[0, 0, 0], 3),
    ];
    for (times, start) in rows {
        let disk = data_disk();
        let mut log = segments(&disk, config.clone(), times);
        let end = log.log_end_offset();
        let retained = log.apply_retention(end, NOW_MS).unwrap();
        assert_eq!(retained.segments_deleted as i64, start, "{times:?}");
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (start, end), "{times:?}");
        assert_eq!(read_from(&log.reader(), start).len() as i64, end - start);
        assert_eq!(put(&mut log, &["next"]), end);
    }
}

#[test]
fn records_without_a_time_count_from_the_files_last_write() {
    let disk = data_disk();
    let config = LogConfig { retention_ms: HOUR_MS, ..small(1 << 20) };
    disk.set_now_ms(NOW_MS - HOUR_MS);
    let mut log = segments(&disk, config, &[-1, -1]);
    assert_eq!(log.apply_retention(2, NOW_MS).unwrap().segments_deleted, 0);
    assert_eq!(log.apply_retention(2, NOW_MS + 1).unwrap().segments_deleted, 2);
}

#[test]
fn an_expired_active_segment_is_rolled_and_goes() {
    let disk = data_disk();
    let mut log = open(&disk, LogConfig { retention_ms: HOUR_MS, ..small(1 << 20) });
    append(&mut log, timed(&[(NOW_MS, "x"), (NOW_MS, "y")])).unwrap();
    assert_eq!(log.apply_retention(2, NOW_MS + HOUR_MS + 1).unwrap().segments_deleted, 1);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (2, 2));
    assert_eq!(log.apply_retention(2, NOW_MS + 9 * HOUR_MS).unwrap(), Retained::default());
    assert_eq!(logs(&disk), ["00000000000000000002.log"]);
}

#[test]
fn size_keeps_at_least_the_bound() {
    let disk = data_disk();
    let mut log = segments(&disk, small(1 << 20), &[1, 1, 1, 1]);
    let one = log.reader().size_in_bytes() as i64 / 4;
    let mut keep = |retention_bytes| {
        log.set_config(Arc::new(LogConfig { retention_bytes, retention_ms: -1, ..small(1 << 20) }));
        log.apply_retention(4, NOW_MS).unwrap().segments_deleted
    };
    assert_eq!(keep(-1), 0);
    assert_eq!(keep(4 * one), 0);
    assert_eq!(keep(3 * one + 1), 0);
    assert_eq!(keep(3 * one), 1);
    assert_eq!(keep(one + 1), 1);
    assert_eq!(keep(0), 2);
    assert_eq!(keep(0), 0);
}

#[test]
fn nothing_above_the_high_watermark_goes() {
    let config = LogConfig { retention_ms: 1, ..small(1 << 20) };
    let mut log = segments(&data_disk(), config, &[1, 1, 1]);
    assert_eq!(log.apply_retention(0, NOW_MS).unwrap().segments_deleted, 0);
    assert_eq!(log.apply_retention(2, NOW_MS).unwrap().segments_deleted, 2);
    assert_eq!(log.log_start_offset(), 2);
}

#[test]
fn compaction_alone_deletes_only_below_the_log_start() {
    for (policy, expected) in [
        (CleanupPolicy::Compact, 1),
        (CleanupPolicy::Unlimited, 1),
        (CleanupPolicy::CompactAndDelete, 3),
        (CleanupPolicy::Delete, 3),
    ] {
        let config = LogConfig { retention_ms: 1, cleanup_policy: policy, ..small(1 << 20) };
        let mut log = segments(&data_disk(), config, &[1, 1, 1]);
        log.set_log_start_offset(1).unwrap();
        assert_eq!(log.apply_retention(3, NOW_MS).unwrap().segments_deleted, expected);
    }
}

#[test]
fn latest_and_earliest_stay_right_after_a_segment_went() {
    // Case B82: 25 messages in segments of about 7, the first one dropped.
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    for i in 0..25 {
        put(&mut log, &["message"]);
        if i % 7 == 6 {
            log.roll(0).unwrap();
        }
    }
    log.set_log_start_offset(7).unwrap();
    log.apply_retention(25, 0).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (7, 25));
    let log = open(&disk.kill(), small(1 << 20));
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (7, 25));
    assert_eq!(read_from(&log.reader(), 7).len(), 18);
}

#[test]
fn dropped_files_are_renamed_then_removed_and_reads_under_way_go_on() {
    let disk = data_disk();
    let config = LogConfig { file_delete_delay_ms: 1000, ..keeping(uncached(small(1 << 20))) };
    let mut log = segments(&disk, config.clone(), &[1, 2, 3]);
    let old_view = log.shared.load();
    log.set_log_start_offset(2).unwrap();
    log.apply_retention(3, NOW_MS).unwrap();
    let renamed = names(&disk).iter().filter(|name| name.ends_with(".deleted")).count();
    assert_eq!(renamed, 2 * 4 + 1, "log, two indexes, append times each; one snapshot");
    let bounds = crate::storage::segment::ReadBounds {
        max_bytes: 999,
        end_offset: 99,
        log_end: 99,
        minimum: ReadMinimum::OneBatch,
    };
    assert_eq!(old_view.segments[0].read(0, bounds).unwrap().next_offset, 1);
    assert_eq!(log.remove_deleted(NOW_MS + 999), 0);
    assert_eq!(log.remove_deleted(NOW_MS + 1000), 9);
    assert!(!names(&disk).iter().any(|name| name.ends_with(".deleted")));
    assert!(matches!(
        log.reader().read(0, 9, 9, ReadMinimum::OneBatch),
        Err(LogError::OffsetOutOfRange { log_start_offset: 2, .. })
    ));
}

#[test]
fn leftovers_of_a_deletion_go_at_the_next_start() {
    let disk = data_disk();
    let mut log = segments(&disk, keeping(small(1 << 20)), &[1, 2, 3]);
    log.set_log_start_offset(2).unwrap();
    log.apply_retention(3, NOW_MS).unwrap();
    let disk = disk.kill();
    let (log, report) = open_as(&disk, small(1 << 20), OpenHint::default());
    assert_eq!(report.stray_files_removed, 9);
    assert_eq!(log.log_start_offset(), 2);
    assert!(!names(&disk).iter().any(|name| name.ends_with(".deleted")));
}

#[test]
fn a_segment_that_cannot_be_renamed_leaves_no_gap_behind_it() {
    for at in 0..8 {
        let disk = data_disk();
        let mut log = open(&disk, small(200));
        for _ in 0..8 {
            put(&mut log, &["some value"]);
        }
        log.set_log_start_offset(6).unwrap();
        disk.fail_operation(disk.operations() + at, Fault::Io);
        log.apply_retention(8, 0).unwrap();
        // Nothing was flushed, so all is scanned.
        let log = open(&disk.kill(), small(200));
        assert_eq!(log.log_end_offset(), 8, "{at}");
        let found: Vec<i64> = read_from(&log.reader(), 6).iter().map(|(at, _)| *at).collect();
        assert_eq!(found, [6, 7]);
    }
}

/// Else the second run's gap makes the next start take all that follows for the rest of a truncation.
#[test]
fn what_could_not_be_renamed_goes_first_the_next_time() {
    for at in 0..8 {
        let disk = data_disk();
        let mut log = open(&disk, small(200));
        for _ in 0..8 {
            put(&mut log, &["some value"]);
        }
        log.set_log_start_offset(3).unwrap();
        disk.fail_operation(disk.operations() + at, Fault::Io);
        log.apply_retention(8, 0).unwrap();
        disk.clear_faults();
        log.set_log_start_offset(6).unwrap();
        log.apply_retention(8, 0).unwrap();
        let log = open(&disk.kill(), small(200));
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (6, 8), "{at}");
    }
}

#[test]
fn what_could_not_be_renamed_is_gone_when_the_log_starts_elsewhere() {
    for at in 0..8 {
        let disk = data_disk();
        let mut log = open(&disk, small(200));
        for _ in 0..8 {
            put(&mut log, &["some value"]);
        }
        log.set_log_start_offset(3).unwrap();
        disk.fail_operation(disk.operations() + at, Fault::Io);
        log.apply_retention(8, 0).unwrap();
        disk.clear_faults();
        log.truncate_fully_and_start_at(20, 0).unwrap();
        put(&mut log, &["after it"]);
        let log = open(&disk.kill(), small(200));
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (20, 21), "{at}");
    }
}

/// Else a power cut leaves it empty below the recovery point: in front of a gap, where the log then seems to begin.
#[test]
fn what_could_not_be_renamed_is_flushed_as_long_as_it_is_there() {
    for at in 0..8 {
        let disk = data_disk();
        let mut log = open(&disk, small(200));
        for _ in 0..8 {
            put(&mut log, &["some value"]);
        }
        log.set_log_start_offset(6).unwrap();
        disk.fail_operation(disk.operations() + at, Fault::Io);
        log.apply_retention(8, 0).unwrap();
        disk.clear_faults();
        log.flush(0).unwrap();
        let (recovery_point, log_start_offset) =
            (Some(log.recovery_point()), log.checkpointed_log_start());
        for known_start in [None, log_start_offset] {
            let disk = disk.crash(Crash::ForgetUnsynced);
            let hint =
                OpenHint { recovery_point, log_start_offset: known_start, ..OpenHint::default() };
            let (log, report) = open_as(&disk, small(200), hint);
            assert_eq!((report.damage, log.log_end_offset()), (vec![], 8), "{at}");
            let start = log.log_start_offset();
            let found: Vec<i64> =
                read_from(&log.reader(), start).iter().map(|(at, _)| *at).collect();
            assert_eq!(found, (start..8).collect::<Vec<_>>(), "{at}: no gap");
            assert!(known_start.is_none() || start == 6, "{at}: the start is {start}");
        }
    }
}

#[test]
fn the_log_start_is_checkpointed_while_files_say_an_earlier_one() {
    let disk = data_disk();
    let mut log = segments(&disk, keeping(small(1 << 20)), &[1, 2, 3]);
    log.set_log_start_offset(2).unwrap();
    assert_eq!(log.checkpointed_log_start(), Some(2));
    disk.fail_operation(disk.operations(), Fault::Io);
    log.apply_retention(3, NOW_MS).unwrap();
    assert_eq!(log.checkpointed_log_start(), Some(2), "the first segment's files are still there");
    log.set_log_start_offset(3).unwrap();
    log.apply_retention(3, NOW_MS).unwrap();
    assert_eq!(log.checkpointed_log_start(), None);
}

#[test]
fn what_retention_drops_is_held_open_by_nobody_even_if_it_was_never_flushed() {
    let disk = data_disk();
    let mut log = segments(&disk, keeping(small(1 << 20)), &[1, 2, 3]);
    let dropped: Vec<_> = log.segments.iter().take(2).map(Arc::downgrade).collect();
    log.set_log_start_offset(2).unwrap();
    log.apply_retention(3, NOW_MS).unwrap();
    log.remove_deleted(i64::MAX);
    assert!(dropped.iter().all(|segment| segment.strong_count() == 0));
    assert!(log.has_unsynced_segments(), "the third is still to be flushed");
}

#[test]
fn on_a_full_disk_sealed_segments_go_though_the_active_one_cannot_be_rolled() {
    let disk = data_disk();
    let config = LogConfig { retention_ms: HOUR_MS, ..small(1 << 20) };
    let mut log = segments(&disk, config, &[0, 0]);
    append(&mut log, timed(&[(0, "x")])).unwrap();
    disk.set_capacity(Some(0));
    let retained = log.apply_retention(3, NOW_MS).unwrap();
    assert_eq!((retained.segments_deleted, log.log_start_offset()), (2, 2));
    assert!(log.apply_retention(3, NOW_MS).is_err(), "there is only the active one");
    assert_eq!(read_from(&log.reader(), 2).len(), 1);
    assert!(log.remove_deleted(i64::MAX) > 0);
    disk.set_capacity(None);
    assert_eq!(log.apply_retention(3, NOW_MS).unwrap().segments_deleted, 1);
    assert_eq!(put(&mut log, &["next"]), 3);
}
