use super::*;
use crate::ids::Offset;
use crate::replication::epochs::EpochEntry;
use crate::testing::mem_disk::{Crash, Fault};

fn filled(disk: &MemDisk, config: LogConfig) -> Log {
    let mut log = open(disk, config);
    for i in 0..10 {
        append(&mut log, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
    }
    log
}

#[test]
fn the_end_is_cut_between_batches_in_any_segment() {
    for offset in 0..=21 {
        for config in [small(300), uncached(small(300)), small(1 << 20)] {
            let disk = data_disk();
            let mut log = filled(&disk, config.clone());
            let whole = read_from(&log.reader(), 0);
            let end = log.truncate_to(offset, 0).unwrap();
            assert_eq!(end, (offset / 2 * 2).min(20), "{offset}");
            assert_eq!(log.reader().log_end_offset(), end);
            let kept = &whole[..usize::try_from(end).unwrap()];
            assert_eq!(read_from(&log.reader(), 0), kept);
            let sequence = i32::try_from(end).unwrap();
            let next = append(&mut log, sequenced((1, 0), sequence, &["new"])).unwrap();
            assert_eq!((next.base_offset, next.novelty), (end, Novelty::New));
            log.roll(0).unwrap();
            put(&mut log, &["newer"]);
            let expected = read_from(&log.reader(), 0);
            assert_eq!(expected.len() as i64, end + 2);
            log.remove_deleted(i64::MAX);
            for hint in [OpenHint::default(), OpenHint { recovery_point: Some(0), ..clean() }] {
                let log = open_as(&disk.kill(), config.clone(), hint).0;
                assert_eq!(read_from(&log.reader(), 0), expected, "{offset}");
            }
        }
    }
}

#[test]
fn epochs_and_producers_follow_the_cut() {
    let mut log = filled(&data_disk(), small(300));
    log.append_as_leader(vec![sequenced((1, 0), 20, &["x"])], LeaderEpoch(9), 0).remove(0).unwrap();
    log.append_as_leader(vec![sequenced((2, 0), 0, &["x"])], LeaderEpoch(9), 0).remove(0).unwrap();
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(9)));
    log.truncate_to(20, 0).unwrap();
    assert_eq!(log.latest_epoch(), Some(EPOCH));
    let current = EpochEntry { epoch: EPOCH, start_offset: Offset(0) };
    let end = log.reader().end_offset_for_epoch(EPOCH, current).unwrap();
    assert_eq!((end.epoch, end.end_offset), (EPOCH, Offset(20)));
    assert_eq!(log.producers().producer(2), None);
    assert_eq!(log.producers().producer(1).unwrap().last_batch().unwrap().last_sequence, 19);
}

#[test]
fn an_aborted_transaction_beyond_the_cut_is_open_again() {
    let mut log = open(&data_disk(), small(1 << 20));
    let txn = |id| of_producer((id, 0), 0, BatchKind::Transactional, &["x"]);
    for id in [1, 2] {
        append(&mut log, txn(id)).unwrap();
        append(&mut log, marker((id, 0), TransactionOutcome::Abort)).unwrap();
    }
    log.high_watermark_moved(4);
    assert_eq!(log.reader().aborted_transactions(0, 9).unwrap().len(), 2);
    log.truncate_to(3, 0).unwrap();
    assert_eq!(log.reader().aborted_transactions(0, 9).unwrap().len(), 1);
    log.high_watermark_moved(3);
    assert_eq!(log.first_unstable_offset(), Some(2));
}

/// DeleteRecords, and a crash before its checkpoint: else an older epoch would seem to end where the file begins.
#[test]
fn records_that_are_back_after_a_crash_have_their_epochs() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    for epoch in [1, 1, 2, 2, 3, 3] {
        log.append_as_leader(vec![plain(&["x"])], LeaderEpoch(epoch), 0).pop().unwrap().unwrap();
    }
    let all = log.reader().leader_epochs().entries().to_vec();
    log.set_log_start_offset(3).unwrap();
    log.flush(0).unwrap();
    let first = log.reader().leader_epochs().entries()[0];
    assert_eq!((first.epoch, first.start_offset), (LeaderEpoch(2), Offset(3)));
    let log = open(&disk.kill(), small(1 << 20));
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 6));
    assert_eq!(log.reader().leader_epochs().entries(), all);
    let hint = OpenHint { log_start_offset: Some(3), ..OpenHint::default() };
    let log = open_as(&disk.kill(), small(1 << 20), hint).0;
    assert_eq!(log.reader().leader_epochs().entries()[0], first);
}

/// A clean stop writes the producers as they are at the end; that a marker is not replicated is not in there.
#[test]
fn a_transaction_stays_unstable_until_its_marker_is_replicated_whatever_happens_to_the_log() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    let txn = |id| of_producer((id, 0), 0, BatchKind::Transactional, &["x"]);
    for id in [1, 2, 3] {
        append(&mut log, txn(id)).unwrap();
        append(&mut log, marker((id, 0), TransactionOutcome::Commit)).unwrap();
    }
    log.high_watermark_moved(2);
    assert_eq!(log.first_unstable_offset(), Some(2));
    log.close_clean(0).unwrap();
    let mut log = open_as(&disk, small(1 << 20), clean()).0;
    log.opened_at_high_watermark(2, 0).unwrap();
    assert_eq!(log.first_unstable_offset(), Some(2), "the second one's marker is at 3");
    log.truncate_to(4, 0).unwrap();
    assert_eq!(log.first_unstable_offset(), Some(2));
    log.high_watermark_moved(4);
    assert_eq!(log.first_unstable_offset(), None);
}

#[test]
fn everything_goes_and_the_log_starts_elsewhere() {
    for to in [0, 5, 1000] {
        let disk = data_disk();
        let mut log = filled(&disk, small(300));
        let reader = log.reader();
        log.truncate_fully_and_start_at(to, 0).unwrap();
        assert_eq!((reader.log_start_offset(), reader.log_end_offset()), (to, to));
        assert_eq!(reader.leader_epochs().entries(), []);
        assert_eq!(put(&mut log, &["first"]), to);
        log.remove_deleted(i64::MAX);
        let hint = OpenHint { log_start_offset: Some(to), ..OpenHint::default() };
        let log = open_as(&disk.kill(), small(300), hint).0;
        assert_eq!(read_from(&log.reader(), to), [(to, "first".to_owned())]);
    }
}

#[test]
fn a_start_inside_a_batch_keeps_the_batch_readable() {
    // Case B28.
    let mut log = open(&data_disk(), small(1 << 20));
    put(&mut log, &["0"; 10]);
    put(&mut log, &["1"; 10]);
    assert!(log.set_log_start_offset(4).unwrap());
    assert!(!log.set_log_start_offset(2).unwrap(), "never back");
    let reader = log.reader();
    let read = |offset| reader.read(offset, 999, 99, ReadMinimum::OneBatch);
    assert_eq!(records_of(&read(4).unwrap().pieces)[0].0, 0);
    assert!(matches!(
        read(3),
        Err(LogError::OffsetOutOfRange { log_start_offset: 4, log_end_offset: 20, .. })
    ));
    assert!(log.set_log_start_offset(21).is_err());
    assert!(log.set_log_start_offset(20).unwrap());
    assert_eq!(read(20).unwrap().pieces.len(), 0);
    assert_eq!(log.checkpointed_log_start(), Some(20));
}

#[test]
fn a_flush_from_before_a_cut_vouches_for_nothing_after_it() {
    let mut log = filled(&data_disk(), small(300));
    let point = log.flush_point().unwrap().unwrap();
    point.sync().unwrap();
    log.truncate_to(4, 0).unwrap();
    for _ in 0..20 {
        put(&mut log, &["other"]);
    }
    log.mark_synced(&point, 0);
    assert_eq!(log.recovery_point(), 0);
    log.flush(0).unwrap();
    assert_eq!(log.recovery_point(), 24);
    log.truncate_to(10, 0).unwrap();
    assert_eq!(log.recovery_point(), 10);
}

#[test]
fn a_cut_that_fails_half_way_closes_the_log_for_writes_and_reopens_whole() {
    // The checkpoint of the recovery point may be older than the cut: then a gap is below it.
    let flushed = OpenHint { recovery_point: Some(20), ..OpenHint::default() };
    for (hint, step) in
        [OpenHint::default(), flushed].into_iter().flat_map(|h| (0..40).map(move |s| (h, s)))
    {
        let disk = data_disk();
        let mut log = filled(&disk, small(300));
        log.flush(0).unwrap();
        let before = read_from(&log.reader(), 0);
        disk.fail_operation(disk.operations() + step, Fault::Halt);
        _ = log.truncate_to(6, 0);
        let log = open_as(&disk.kill(), small(300), hint).0;
        let after = read_from(&log.reader(), 0);
        assert!(after.len() >= 6 && before.starts_with(&after), "{step}: {after:?}");
        assert_eq!(log.log_end_offset(), after.len() as i64);
    }
}

/// Also with a recovery point that vouches for all that was cut.
#[test]
fn a_power_cut_during_a_cut_leaves_no_gap() {
    for (step, seed) in (0..40).flat_map(|step| (0..8).map(move |seed| (step, seed))) {
        let disk = data_disk();
        let mut log = filled(&disk, small(300));
        log.flush(0).unwrap();
        let before = read_from(&log.reader(), 0);
        disk.fail_operation(disk.operations() + step, Fault::Halt);
        _ = log.truncate_to(6, 0);
        let hint = OpenHint { recovery_point: Some(20), ..OpenHint::default() };
        let (log, report) = open_as(&disk.crash(Crash::Seeded(seed)), small(300), hint);
        let after = read_from(&log.reader(), 0);
        assert!(after.len() >= 6 && before.starts_with(&after), "{step} {seed}: {after:?}");
        assert_eq!(log.log_end_offset(), after.len() as i64, "{step} {seed}");
        assert_eq!(report.damage, [], "{step} {seed}");
    }
}

/// Each batch of such a mixture would be whole, and its epochs those of no leader's log.
#[test]
fn a_power_cut_never_leaves_old_batches_behind_new_ones() {
    for seed in 0..64 {
        let disk = data_disk();
        let mut log = filled(&disk, small(1 << 20));
        log.flush(0).unwrap();
        let before = read_from(&log.reader(), 0);
        log.truncate_to(6, 0).unwrap();
        for i in 3..6 {
            let batch = sequenced((1, 0), 2 * i, &["new", "newer"]);
            log.append_as_leader(vec![batch], LeaderEpoch(9), 0).remove(0).unwrap();
        }
        let written = read_from(&log.reader(), 0);
        let hint = OpenHint { recovery_point: Some(log.recovery_point()), ..OpenHint::default() };
        let log = open_as(&disk.crash(Crash::Seeded(seed)), small(1 << 20), hint).0;
        let found = read_from(&log.reader(), 0);
        assert_eq!(found[..6], before[..6], "{seed}");
        assert!(written.starts_with(&found), "{seed}: {found:?}");
    }
}

#[test]
fn a_cut_that_fails_at_any_call_leaves_a_log_that_is_right_or_takes_no_writes() {
    for (cut_to, spoilt) in [(6, false), (6, true), (0, false)] {
        for step in 0.. {
            let disk = data_disk();
            let mut log = filled(&disk, small(300));
            let snapshots = names(&disk).into_iter().filter(|name| name.ends_with(".snapshot"));
            for name in snapshots.filter(|_| spoilt) {
                disk.overwrite(&Path::new(DIR).join(name), b"spoilt");
            }
            let calls = disk.operations();
            disk.fail_operation(calls + step, Fault::Io);
            let cut = log.truncate_to(cut_to, 0);
            let met = disk.operations() > calls + step;
            disk.clear_faults();
            let next = sequenced((1, 0), i32::try_from(cut_to).unwrap(), &["new"]);
            if cut.is_ok() {
                let appended = append(&mut log, next).unwrap();
                assert_eq!((appended.base_offset, appended.novelty), (cut_to, Novelty::New));
            } else {
                assert!(matches!(append(&mut log, next), Err(LogError::Storage(_))), "{step}");
            }
            let expected = cut.is_ok().then(|| read_from(&log.reader(), 0));
            let log = open(&disk.kill(), small(300));
            let found = read_from(&log.reader(), 0);
            assert_eq!(log.log_end_offset(), found.len() as i64, "{step}: without a gap");
            assert!(expected.is_none_or(|expected| expected == found), "{step}");
            let last = log.producers().producer(1).and_then(|p| p.last_batch());
            let last = last.map_or(-1, |batch| batch.last_sequence);
            assert_eq!(i64::from(last) + 1, log.log_end_offset(), "{step}");
            if !met {
                break;
            }
        }
    }
}
