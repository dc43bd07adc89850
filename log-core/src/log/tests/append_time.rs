use super::*;
use crate::testing::mem_disk::Crash;

fn put_at(log: &mut Log, now_ms: i64) {
    // The record's own time says something else.
    let batch = timed(&[(7, "x"), (3, "y")]);
    log.append_as_leader(vec![batch], EPOCH, now_ms).remove(0).unwrap();
}

fn lower(log: &Log, time_ms: i64) -> Option<i64> {
    log.reader().search_append_time(time_ms, TimeBoundary::Lower, i64::MAX).unwrap()
}

fn upper(log: &Log, time_ms: i64) -> Option<i64> {
    log.reader().search_append_time(time_ms, TimeBoundary::Upper, i64::MAX).unwrap()
}

/// Appends of two records each at 100, 150, 150, 200, 250 … over several segments.
fn filled(disk: &MemDisk, config: LogConfig) -> Log {
    let mut log = open(disk, config);
    for now_ms in [100, 150, 150, 200, 250, 300, 350, 400] {
        put_at(&mut log, now_ms);
    }
    log
}

fn check(log: &Log) {
    for (time_ms, first, last) in [
        (99, Some(0), None),
        (100, Some(0), Some(1)),
        (101, Some(2), Some(1)),
        (150, Some(2), Some(5)),
        (151, Some(6), Some(5)),
        (399, Some(14), Some(13)),
        (400, Some(14), Some(15)),
        (401, None, Some(15)),
    ] {
        assert_eq!((lower(log, time_ms), upper(log, time_ms)), (first, last), "{time_ms}");
    }
    let reader = log.reader();
    for (offset, time_ms) in [(0, 100), (1, 100), (2, 150), (5, 150), (6, 200), (15, 400)] {
        assert_eq!(reader.append_time_at(offset).unwrap(), Some(time_ms), "{offset}");
    }
    assert_eq!(reader.first_append_time().unwrap(), Some(100));
    assert_eq!(reader.last_append_time().unwrap(), Some(400));
}

#[test]
fn b115_both_boundaries_are_exact_in_memory_and_after_a_clean_stop() {
    for config in [small(250), small(1 << 20)] {
        let disk = data_disk();
        let mut log = filled(&disk, config.clone());
        check(&log);
        log.close_clean(0).unwrap();
        let mut log = open_as(&disk.crash(Crash::ForgetUnsynced), config.clone(), clean()).0;
        check(&log);
        put_at(&mut log, 500);
        assert_eq!((lower(&log, 401), upper(&log, 500)), (Some(16), Some(17)));
    }
}

#[test]
fn an_empty_log_has_no_times_and_bounds_are_kept() {
    let mut log = open(&data_disk(), small(250));
    assert_eq!((lower(&log, 0), upper(&log, i64::MAX)), (None, None));
    assert_eq!(log.reader().first_append_time().unwrap(), None);
    assert_eq!(log.reader().last_append_time().unwrap(), None);
    for now_ms in [100, 200, 300] {
        put_at(&mut log, now_ms);
    }
    log.set_log_start_offset(3).unwrap();
    assert_eq!((lower(&log, 0), upper(&log, 199)), (Some(3), None));
    assert_eq!(upper(&log, 200), Some(3));
    let reader = log.reader();
    let within = |time_ms, boundary| reader.search_append_time(time_ms, boundary, 4).unwrap();
    assert_eq!(within(201, TimeBoundary::Lower), None);
    assert_eq!(within(999, TimeBoundary::Upper), Some(3));
    assert_eq!((lower(&log, i64::MIN), upper(&log, i64::MAX)), (Some(3), Some(5)));
}

#[test]
fn a_clock_that_goes_back_does_not_take_times_back() {
    let mut log = open(&data_disk(), small(250));
    for now_ms in [100, 300, 200, 250, 301] {
        put_at(&mut log, now_ms);
    }
    assert_eq!(log.reader().append_time_at(6).unwrap(), Some(300));
    assert_eq!((lower(&log, 250), lower(&log, 301)), (Some(2), Some(8)));
}

#[test]
fn what_was_not_recorded_counts_by_its_own_time_but_not_after_the_files_last_write() {
    let disk = data_disk();
    disk.set_now_ms(1000);
    let mut log = open(&disk, small(1 << 20));
    let far = i64::MAX / 2;
    for time in [-1, 100, 50, 300, -1, far, 400] {
        append(&mut log, timed(&[(time, "x")])).unwrap();
    }
    log.close_clean(0).unwrap();
    for name in names(&disk).iter().filter(|name| name.ends_with(".appendtime")) {
        disk.remove(&Path::new(DIR).join(name)).unwrap();
    }
    let log = open_as(&disk.kill(), small(1 << 20), clean()).0;
    let times: Vec<_> = (0..7).map(|offset| log.reader().append_time_at(offset).unwrap()).collect();
    let expected = [None, Some(100), Some(100), Some(300), Some(300), Some(1000), Some(1000)];
    assert_eq!(times, expected);
    assert_eq!((lower(&log, 101), lower(&log, 1000), lower(&log, 1001)), (Some(3), Some(5), None));
}

#[test]
fn what_a_crash_took_is_made_up_behind_what_was_written() {
    let disk = data_disk();
    disk.set_now_ms(10_000);
    let mut log = open(&disk, small(1 << 20));
    let mut now_ms = 1000;
    let mut put = |log: &mut Log, time| {
        now_ms += 10;
        let batch = timed(&[(time, "x")]);
        log.append_as_leader(vec![batch], EPOCH, now_ms).remove(0).unwrap();
    };
    for _ in 0..100 {
        put(&mut log, 1);
    }
    log.flush(0).unwrap();
    put(&mut log, 5000);
    put(&mut log, 1);
    let log = open(&disk.kill(), small(1 << 20));
    let reader = log.reader();
    assert_eq!(reader.append_time_at(50).unwrap(), Some(1510), "recorded");
    assert_eq!(reader.append_time_at(99).unwrap(), Some(2000));
    assert_eq!(reader.append_time_at(100).unwrap(), Some(5000), "by the record");
    assert_eq!(reader.append_time_at(101).unwrap(), Some(5000));
    assert_eq!(lower(&log, 2001), Some(100));
}

#[test]
fn times_follow_a_truncation() {
    let disk = data_disk();
    let mut log = filled(&disk, small(1 << 20));
    log.truncate_to(6, 0).unwrap();
    assert_eq!((lower(&log, 151), upper(&log, 999)), (None, Some(5)));
    put_at(&mut log, 1000);
    assert_eq!((lower(&log, 151), upper(&log, 1000)), (Some(6), Some(7)));
    log.close_clean(0).unwrap();
    let log = open_as(&disk.kill(), small(1 << 20), clean()).0;
    assert_eq!((lower(&log, 151), upper(&log, 999)), (Some(6), Some(5)));
    assert_eq!(log.reader().append_time_at(3).unwrap(), Some(150));
}

#[test]
fn spoilt_times_are_made_up_and_written_anew() {
    let disk = data_disk();
    disk.set_now_ms(1000);
    let mut log = filled(&disk, small(250));
    log.close_clean(0).unwrap();
    let path = Path::new(DIR).join("00000000000000000000.appendtime");
    let mut content = disk.content(&path).unwrap();
    content[40] ^= 1;
    disk.overwrite(&path, &content);
    let log = open_as(&disk, small(250), clean()).0;
    assert_eq!(log.reader().append_time_at(0).unwrap(), Some(7), "the batch's own");
    assert_ne!(disk.content(&path).unwrap(), content);
    assert_eq!(log.reader().append_time_at(15).unwrap(), Some(400), "another segment");
}

#[test]
fn times_need_no_disk_to_be_searched() {
    let disk = data_disk();
    let mut log = filled(&disk, small(250));
    log.close_clean(0).unwrap();
    for name in names(&disk).iter().filter(|name| name.ends_with(".appendtime")) {
        disk.remove(&Path::new(DIR).join(name)).unwrap();
    }
    let disk = disk.kill();
    let log = open_as(&disk, small(250), clean()).0;
    disk.set_capacity(Some(0));
    assert_eq!(lower(&log, 0), Some(0));
    assert!(!names(&disk).iter().any(|name| name.ends_with(".appendtime")));
}
