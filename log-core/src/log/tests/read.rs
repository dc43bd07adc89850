use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::testing::mem_disk::Crash;

/// The same log with its newest batches in memory and without.
fn both(fill: impl Fn(&mut Log)) -> [LogReader; 2] {
    [small(400), uncached(small(400))].map(|config| {
        let mut log = open(&data_disk(), config);
        fill(&mut log);
        log.reader()
    })
}

#[test]
fn a_read_begins_with_the_batch_that_holds_the_offset() {
    let readers = both(|log| {
        for _ in 0..30 {
            put(log, &["aaa", "bbb", "ccc"]);
        }
    });
    for reader in readers {
        assert!(reader.segment_count() > 3);
        for offset in 0..90 {
            let records = read_from(&reader, offset);
            assert_eq!(records[0].0, offset / 3 * 3, "{offset}");
            assert_eq!(records.len() as i64, 90 - offset / 3 * 3);
        }
        assert_eq!(read_from(&reader, 90), []);
    }
}

#[test]
fn limits_cut_between_batches_and_one_batch_may_be_asked_for() {
    // Case B09.
    let large = "L".repeat(200);
    let readers = both(|log| {
        put(log, &[&large]);
        put(log, &["s"]);
        put(log, &["s"]);
    });
    for reader in readers {
        let read = |offset, max_bytes, end_offset, minimum| {
            let read = reader.read(offset, max_bytes, end_offset, minimum).unwrap();
            let size: usize = read.pieces.iter().map(Bytes::len).sum();
            assert_eq!(size, read.size);
            (records_of(&read.pieces).len(), read.next_offset)
        };
        use ReadMinimum::{Nothing, OneBatch};
        assert_eq!(read(0, 1, 9, OneBatch), (1, 1));
        assert_eq!(read(0, 0, 9, OneBatch), (1, 1));
        assert_eq!(read(0, 1, 9, Nothing), (0, 0));
        assert_eq!(read(1, 100, 9, Nothing), (1, 2));
        assert_eq!(read(0, 9999, 9, Nothing), (3, 3));
        assert_eq!(read(0, usize::MAX, i64::MAX, Nothing), (3, 3));
        assert_eq!(read(0, 9999, 2, OneBatch), (2, 2), "below the end offset only");
        assert_eq!(read(1, 9999, 1, OneBatch), (0, 1));
        assert_eq!(read(2, 9999, 1, OneBatch), (0, 2));
        assert_eq!(read(3, 9999, 9, OneBatch), (0, 3));
        for outside in [-1, 4, i64::MIN, i64::MAX] {
            assert!(matches!(
                reader.read(outside, 1, 9, OneBatch),
                Err(LogError::OffsetOutOfRange { log_start_offset: 0, log_end_offset: 3, .. })
            ));
        }
    }
}

#[test]
fn a_batch_larger_than_a_read_block_comes_whole() {
    let huge = "H".repeat(3 << 20);
    let mut log = open(&data_disk(), uncached(small(16 << 20)));
    put(&mut log, &["a"]);
    put(&mut log, &[&huge]);
    put(&mut log, &["b"]);
    let reader = log.reader();
    for offset in 0..2 {
        let read = reader.read(offset, 100, 9, ReadMinimum::OneBatch).unwrap();
        assert_eq!(records_of(&read.pieces)[0].0, offset);
    }
    let read = reader.read(1, 100, 9, ReadMinimum::Nothing).unwrap();
    assert_eq!((read.size, read.next_offset), (0, 1));
}

#[test]
fn the_newest_batches_are_shared_not_copied() {
    let mut log = open(&data_disk(), small(1 << 20));
    put(&mut log, &["a", "b"]);
    let read = || log.reader().read(0, 999, 9, ReadMinimum::OneBatch).unwrap().pieces.remove(0);
    assert_eq!(read().as_ptr(), read().as_ptr());
}

#[test]
fn the_tail_stays_within_its_own_and_the_nodes_bound() {
    let budget = Arc::new(TailBudget::new(3000));
    let config =
        LogConfig { tail_cache_bytes: 2000, tail_budget: Arc::clone(&budget), ..small(1 << 20) };
    let disks = [data_disk(), data_disk(), data_disk()];
    let mut logs: Vec<Log> = disks.iter().map(|disk| open(disk, config.clone())).collect();
    for round in 0..50_usize {
        for log in &mut logs {
            put(log, &["some value"]);
            assert!(budget.used_bytes() <= 3000);
        }
        if round == 20 {
            assert!(budget.used_bytes() > 2000, "more than one log keeps its tail");
        }
        assert_eq!(read_from(&logs[round % 3].reader(), 0).len(), round + 1);
    }
    logs[0].shrink_tail(0);
    logs[1].shrink_tail(0);
    assert_eq!(read_from(&logs[0].reader(), 0).len(), 50);
    drop(logs);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn many_small_batches_fill_several_chunks_and_segments() {
    let mut log = open(&data_disk(), small(2000));
    for i in 0..500 {
        put(&mut log, &[&i.to_string()]);
        assert_eq!(values_from(&log.reader(), i), [i.to_string()]);
    }
    for from in [0, 1, 63, 64, 65, 250, 499] {
        let expected: Vec<_> = (from..500).map(|i| i.to_string()).collect();
        assert_eq!(values_from(&log.reader(), from), expected);
    }
}

#[test]
fn readers_follow_a_writer_without_gap_or_repeat() {
    // Case B82: readers at different speeds while segments roll and old ones go.
    let disk = data_disk();
    let mut log = open(&disk, LogConfig { tail_cache_bytes: 700, ..small(900) });
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for pause in [0, 3, 30] {
            let (reader, done) = (log.reader(), &done);
            scope.spawn(move || {
                let mut next = 0;
                while !done.load(Ordering::Acquire) || next < reader.log_end_offset() {
                    next = next.max(reader.log_start_offset());
                    let read = match reader.read(next, 400, i64::MAX, ReadMinimum::OneBatch) {
                        Ok(read) => read,
                        Err(LogError::OffsetOutOfRange { .. }) => continue,
                        Err(error) => panic!("{error}"),
                    };
                    for (offset, value) in records_of(&read.pieces) {
                        assert_eq!(offset, next);
                        assert_eq!(value, next.to_string());
                        next += 1;
                    }
                    for _ in 0..=pause {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for i in 0..2000_i64 {
            put(&mut log, &[&i.to_string()]);
            if i % 500 == 499 {
                log.set_log_start_offset(i - 300).unwrap();
                log.apply_retention(i + 1, i).unwrap();
                log.remove_deleted(i);
            }
        }
        done.store(true, Ordering::Release);
    });
}

#[test]
fn a_closed_log_says_so() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["a"]);
    let reader = log.reader();
    log.close_clean(0).unwrap();
    assert_eq!(reader.read(0, 9, 9, ReadMinimum::OneBatch), Err(LogError::Closed));
    assert_eq!(append(&mut log, plain(&["b"])), Err(LogError::Closed));
    assert!(matches!(log.roll(0), Err(LogError::Closed)));
    let disk = disk.crash(Crash::ForgetUnsynced);
    assert_eq!(values_from(&open_as(&disk, small(1 << 20), clean()).0.reader(), 0), ["a"]);
}

#[test]
fn a_deleted_log_leaves_its_folder_to_be_removed() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["a"]);
    let reader = log.reader();
    let renamed = Path::new("/data/t-0.abc-delete");
    log.delete(renamed).unwrap();
    assert_eq!(reader.read(0, 9, 9, ReadMinimum::OneBatch), Err(LogError::Closed));
    assert!(disk.list(Path::new(DIR)).is_err());
    disk.remove_dir_all(renamed).unwrap();
    assert_eq!(open(&disk, small(1 << 20)).log_end_offset(), 0);
}
