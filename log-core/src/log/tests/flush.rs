use super::*;
use crate::storage::disk::DiskErrorKind;
use crate::testing::mem_disk::{Crash, Fault};

#[test]
fn what_is_flushed_survives_a_power_cut_with_its_segments_and_epochs() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    for i in 0..10 {
        append(&mut log, sequenced((1, 0), i, &["synced"])).unwrap();
    }
    assert_eq!(log.unflushed_messages(), 10);
    log.flush(77).unwrap();
    assert_eq!((log.unflushed_messages(), log.last_flush_ms()), (0, 77));
    assert_eq!(log.recovery_point(), 10);
    assert!(log.flush_point().unwrap().is_none(), "nothing is left to do");
    append(&mut log, plain(&["lost"])).unwrap();
    let hint = OpenHint { recovery_point: Some(10), ..OpenHint::default() };
    let (log, report) = open_as(&disk.crash(Crash::ForgetUnsynced), small(300), hint);
    assert_eq!(values_from(&log.reader(), 0), ["synced"; 10]);
    assert_eq!(report.segments_scanned, 1);
    assert_eq!(log.latest_epoch(), Some(EPOCH));
    assert_eq!(log.recovery_point(), 10);
}

#[test]
fn appends_go_on_while_a_flush_is_under_way() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    put(&mut log, &["a"]);
    let point = log.flush_point().unwrap().unwrap();
    for _ in 0..9 {
        put(&mut log, &["later"]);
    }
    point.sync().unwrap();
    log.mark_synced(&point, 5);
    assert_eq!((log.recovery_point(), log.unflushed_messages()), (1, 9));
    assert_eq!(log.first_unflushed_ms(), Some(5));
    log.flush(9).unwrap();
    let hint = OpenHint { recovery_point: Some(10), ..OpenHint::default() };
    let log = open_as(&disk.crash(Crash::ForgetUnsynced), small(300), hint).0;
    assert_eq!(log.log_end_offset(), 10);
}

#[test]
fn a_flush_after_retention_skips_what_is_gone() {
    let disk = data_disk();
    let mut log = open(&disk, small(200));
    for _ in 0..6 {
        put(&mut log, &["some value"]);
    }
    let point = log.flush_point().unwrap().unwrap();
    log.set_log_start_offset(4).unwrap();
    log.apply_retention(6, 0).unwrap();
    log.remove_deleted(i64::MAX);
    point.sync().unwrap();
    log.mark_synced(&point, 0);
    assert_eq!(log.recovery_point(), 6);
}

#[test]
fn a_failed_sync_closes_the_log_for_writes() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    put(&mut log, &["a"]);
    let point = log.flush_point().unwrap().unwrap();
    disk.fail_operation(disk.operations(), Fault::Io);
    let error = point.sync().unwrap_err();
    log.sync_failed(&error);
    assert!(matches!(append(&mut log, plain(&["b"])), Err(LogError::Storage(_))));
    assert_eq!(values_from(&log.reader(), 0), ["a"]);
    assert_eq!(log.recovery_point(), 0);
}

#[test]
fn index_entries_are_on_disk_after_a_flush() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    for time in 0..5 {
        append(&mut log, timed(&[(time, "x")])).unwrap();
    }
    let len = |name: &str| disk.content(&Path::new(DIR).join(name)).unwrap().len();
    assert_eq!(len("00000000000000000000.index"), 0);
    log.flush(0).unwrap();
    assert_eq!(len("00000000000000000000.index"), 4 * 8);
    assert_eq!(len("00000000000000000000.timeindex"), 4 * 12);
    append(&mut log, timed(&[(9, "x")])).unwrap();
    log.close_clean(0).unwrap();
    assert_eq!(len("00000000000000000000.index"), 5 * 8);
    assert_eq!(len("00000000000000000000.timeindex"), 5 * 12);
    assert_eq!(len("00000000000000000006.snapshot"), 10);
}

#[test]
fn a_flush_needs_no_room_for_its_indexes() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["a"]);
    put(&mut log, &["a"]);
    disk.fail_operation(disk.operations(), Fault::Full);
    log.flush(0).unwrap();
    assert_eq!(log.recovery_point(), 2);
    let hint = OpenHint { recovery_point: Some(2), ..OpenHint::default() };
    let (mut log, report) = open_as(&disk.crash(Crash::ForgetUnsynced), small(1 << 20), hint);
    assert_eq!(values_from(&log.reader(), 0), ["a", "a"]);
    assert!(report.indexes_rebuilt > 0);
    assert_eq!(put(&mut log, &["b"]), 2);
}

#[test]
fn a_flush_without_room_for_the_epochs_loses_nothing_and_is_made_again() {
    for fault in [Fault::Full, Fault::OutOfFiles] {
        let mut retriable = 0;
        for at in 0.. {
            let disk = data_disk();
            let mut log = open(&disk, small(1 << 20));
            append(&mut log, sequenced((1, 0), 0, &["kept"])).unwrap();
            let point = log.flush_point().unwrap().unwrap();
            let failing = disk.operations() + at;
            disk.fail_operation(failing, fault);
            match point.sync() {
                _ if disk.operations() <= failing => break,
                Ok(()) => {}
                Err(error) if error.is_retriable() => {
                    retriable += 1;
                    log.flush(0).unwrap();
                    assert_eq!(log.recovery_point(), 1);
                    assert_eq!(append(&mut log, plain(&["more"])).unwrap().base_offset, 1);
                }
                Err(error) => assert_eq!(error.kind, DiskErrorKind::SyncFailed),
            }
        }
        assert!(retriable > 0);
    }
}

#[test]
fn a_roll_leaves_a_flush_of_what_is_sealed_to_be_made() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    assert!(!log.has_unsynced_segments() && log.sealed_flush_point().unwrap().is_none());
    while log.reader().segment_count() < 4 {
        let sequence = log.log_end_offset() as i32;
        append(&mut log, sequenced((1, 0), sequence, &["sealed"])).unwrap();
    }
    let sealed_to = log.active.base_offset();
    let sealed = read_from(&log.reader(), 0).into_iter().filter(|(at, _)| *at < sealed_to);
    let sealed: Vec<_> = sealed.collect();
    let point = log.sealed_flush_point().unwrap().unwrap();
    assert_eq!(point.offset(), sealed_to);
    // What is sealed later waits for the next one.
    let before = log.reader().segment_count();
    while log.reader().segment_count() == before {
        let sequence = log.log_end_offset() as i32;
        append(&mut log, sequenced((1, 0), sequence, &["later"])).unwrap();
    }
    point.sync().unwrap();
    log.mark_synced(&point, 5);
    assert_eq!(log.recovery_point(), sealed_to);
    assert!(log.has_unsynced_segments());
    // A power cut loses the active segment, and a start scans no more than that.
    let hint = OpenHint { recovery_point: Some(sealed_to), ..OpenHint::default() };
    let (log, report) = open_as(&disk.crash(Crash::ForgetUnsynced), small(300), hint);
    assert_eq!(read_from(&log.reader(), 0), sealed);
    assert_eq!(report.segments_scanned, 1);
}

#[test]
fn a_flush_that_retention_overtakes_forgets_no_segment_sealed_since() {
    let disk = data_disk();
    let mut log = open(&disk, small(200));
    for _ in 0..6 {
        put(&mut log, &["some value"]);
    }
    let point = log.sealed_flush_point().unwrap().unwrap();
    log.set_log_start_offset(4).unwrap();
    log.apply_retention(6, 0).unwrap();
    for _ in 0..6 {
        put(&mut log, &["some value"]);
    }
    let later = log.unsynced.iter().filter(|s| s.base_offset >= point.offset()).count();
    assert!(later > 0);
    point.sync().unwrap();
    log.mark_synced(&point, 0);
    assert_eq!(log.unsynced.len(), later);
}

#[test]
fn the_folder_of_a_new_log_is_there_after_a_power_cut_once_it_was_flushed() {
    for killed in [false, true] {
        let mut disk = data_disk();
        let mut log = open(&disk, small(300));
        put(&mut log, &["a"]);
        if killed {
            // The next process finds the folder, but does not know whether it is on disk.
            disk = disk.kill();
            log = open(&disk, small(300));
        }
        log.flush(0).unwrap();
        let log = open(&disk.crash(Crash::ForgetUnsynced), small(300));
        assert_eq!(values_from(&log.reader(), 0), ["a"]);
    }
}

fn epochs_on_disk(disk: &MemDisk) -> Option<Vec<u8>> {
    disk.content(&Path::new(DIR).join("leader-epoch-checkpoint"))
}

#[test]
fn the_newest_epochs_stay_in_the_file_in_whatever_order_flushes_end() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["a"]);
    let older = log.flush_point().unwrap().unwrap();
    assert_eq!(epochs_on_disk(&disk), None, "flushes write the file and nobody else");
    log.append_as_leader(vec![plain(&["b"])], LeaderEpoch(9), 0).remove(0).unwrap();
    assert_eq!(epochs_on_disk(&disk), None);
    log.close_clean(0).unwrap();
    let newest = epochs_on_disk(&disk).unwrap();
    assert_eq!(newest, b"0\n2\n3 0\n9 1\n");
    older.sync().unwrap();
    assert_eq!(epochs_on_disk(&disk), Some(newest));
}

#[test]
fn a_flush_that_outlives_its_log_writes_nothing_into_the_folder_of_its_successor() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["a"]);
    let point = log.flush_point().unwrap().unwrap();
    log.close();
    disk.rename(Path::new(DIR), Path::new("/data/t-0.x-delete")).unwrap();
    let successor = open(&disk, small(1 << 20));
    let before = names(&disk);
    point.sync().unwrap();
    assert_eq!(names(&disk), before);
    assert_eq!(epochs_on_disk(&disk), None);
    assert_eq!(successor.log_end_offset(), 0);
}

#[test]
fn a_flush_of_an_earlier_opening_vouches_for_nothing() {
    let disk = data_disk();
    let mut log = open(&disk, small(200));
    for _ in 0..6 {
        put(&mut log, &["before"]);
    }
    let point = log.flush_point().unwrap().unwrap();
    point.sync().unwrap();
    log.close();
    let mut log = open(&disk, small(200));
    for _ in 0..6 {
        put(&mut log, &["after"]);
    }
    assert!(!log.has_issued(&point));
    log.mark_synced(&point, 77);
    assert_eq!((log.recovery_point(), log.last_flush_ms()), (0, 0));
    log.flush(0).unwrap();
    let hint = OpenHint { recovery_point: Some(log.recovery_point()), ..OpenHint::default() };
    let log = open_as(&disk.crash(Crash::ForgetUnsynced), small(200), hint).0;
    assert_eq!(log.log_end_offset(), 12);
}
