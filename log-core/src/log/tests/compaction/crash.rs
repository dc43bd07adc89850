//! Stops and power cuts at every call to the disk while a log is compacted.

use super::*;
use crate::testing::mem_disk::{Crash, Fault};

/// Appends, compacts and appends again until the first error.
fn drive(disk: &MemDisk, synced: &mut i64) -> Result<(), CompactionError> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let config = Arc::new(config());
    let hint = OpenHint::default();
    let opened = Log::open(shared, Path::new(DIR), identity(), config, hint, 0);
    let mut log = opened?.0;
    let mut checkpoint = None;
    for i in 0..36 {
        let (key, value) = (format!("{}", i % 4), format!("value {i}"));
        let batch = match i % 9 {
            7 => of_producer((7, 0), i / 9, BatchKind::Transactional, &["aborted"]),
            8 => marker((7, 0), TransactionOutcome::Abort),
            _ => keyed(&[(&key, Some(&value))]),
        };
        log.append_as_leader(vec![batch], EPOCH, 0).remove(0)?;
        log.high_watermark_moved(log.log_end_offset());
        if i % 12 == 11 {
            log.roll(0)?;
            log.flush(0)?;
            *synced = log.log_end_offset();
            let done = compact_with(&mut log, checkpoint, i64::from(i) * HOUR_MS, MEMORY)?;
            checkpoint = done.map(|(end, _)| end).or(checkpoint);
            log.remove_deleted(i64::MAX);
        }
    }
    log.close_clean(0)?;
    *synced = log.log_end_offset();
    Ok(())
}

fn config() -> LogConfig {
    compacting(300)
}

/// Where the newest record of each key up to `end` is.
fn expected(end: i64) -> BTreeMap<String, i64> {
    (0..end).filter(|i| i % 9 < 7).map(|i| (format!("{}", i % 4), i)).collect()
}

/// What a stop may have taken.
#[derive(Clone, Copy)]
enum Loss {
    Nothing,
    /// What was not synced. Where logs are compacted nothing tells that it is missing between two
    /// segments.
    Unsynced,
}

fn check(disk: &MemDisk, synced: i64, loss: Loss, what: &str) {
    for round in 0..2 {
        let hint =
            OpenHint { recovery_point: Some(synced), proven_end: synced, ..OpenHint::default() };
        let (log, report) = open_as(disk, config(), hint);
        let end = log.log_end_offset();
        assert!(end >= synced, "{what}: synced to {synced}, found {end}");
        assert!(report.damage.is_empty(), "{what}: {report:?}");
        let rows = content(&log).into_iter().filter(|(_, key, _)| !key.is_empty());
        let found: BTreeMap<String, i64> = rows
            .inspect(|(at, _, value)| assert_eq!(value, &Some(format!("value {at}")), "{what}"))
            .map(|(at, key, _)| (key, at))
            .collect();
        match loss {
            Loss::Nothing => assert_eq!(found, expected(end), "{what}, {round}: {report:?}"),
            Loss::Unsynced => {
                for (key, at) in expected(synced) {
                    assert!(found.get(&key) >= Some(&at), "{what}, {round}, {key}: {report:?}");
                }
            }
        }
        let strays = names(disk).into_iter().filter(|name| {
            [".cleaned", ".swap", ".tmp", ".deleted"].iter().any(|end| name.ends_with(end))
        });
        assert_eq!(strays.count(), 0, "{what}: {:?}", names(disk));
        for segment in &log.segments {
            let entries = segment.offsets().unwrap().iter().count();
            let heads = crate::storage::segment::LogHeads::read(
                &segment.log,
                segment.base_offset,
                segment.size(),
                0,
            );
            assert_eq!(entries, heads.unwrap().offsets.len(), "{what}");
        }
        let aborted = log.reader().aborted_transactions(0, i64::MAX).unwrap();
        for (header, _) in batches(&log.reader(), 0) {
            if header.is_transactional() && !header.is_control() && header.record_count > 0 {
                let covers = aborted
                    .iter()
                    .any(|txn| (txn.first_offset..=txn.last_offset).contains(&header.base_offset));
                let is_sure = match loss {
                    Loss::Nothing => header.next_offset() < end,
                    Loss::Unsynced => header.next_offset() < synced,
                };
                assert!(covers || !is_sure, "{what}: aborted data is shown");
            }
        }
    }
}

fn operations() -> std::ops::Range<u64> {
    let disk = data_disk();
    let first = disk.operations();
    drive(&disk, &mut 0).unwrap();
    first..disk.operations()
}

#[test]
fn a_power_cut_at_every_call_leaves_the_old_segments_or_the_new() {
    let all = operations();
    assert!(all.end > 150);
    for halt_at in all {
        for seed in 0..4 {
            let disk = data_disk();
            disk.fail_operation(halt_at, Fault::Halt);
            let mut synced = 0;
            _ = drive(&disk, &mut synced);
            let how = if seed == 0 {
                Crash::ForgetUnsynced
            } else {
                Crash::Seeded(halt_at.wrapping_mul(31).wrapping_add(seed))
            };
            let after = disk.crash(how);
            check(&after, synced, Loss::Unsynced, &format!("halt at {halt_at}, {how:?}"));
        }
    }
}

#[test]
fn a_kill_at_every_call_leaves_the_old_segments_or_the_new() {
    for halt_at in operations() {
        let disk = data_disk();
        disk.fail_operation(halt_at, Fault::Halt);
        let mut synced = 0;
        _ = drive(&disk, &mut synced);
        let after = disk.kill();
        // The start that finishes the swap may be stopped too.
        let started = after.operations();
        for again in [0, 1, 4, 9] {
            let next = after.kill();
            let next = if again == 0 {
                next
            } else {
                next.fail_operation(started + again, Fault::Halt);
                let shared: Arc<dyn Disk> = Arc::new(next.clone());
                let hint = OpenHint { recovery_point: Some(synced), ..OpenHint::default() };
                _ = Log::open(shared, Path::new(DIR), identity(), Arc::new(config()), hint, 0);
                next.kill()
            };
            check(&next, synced, Loss::Nothing, &format!("kill at {halt_at}, again at {again}"));
        }
    }
}

#[test]
fn a_fault_at_every_call_leaves_a_log_that_opens_whole() {
    for fault in [Fault::Full, Fault::Io] {
        for fail_at in operations() {
            let disk = data_disk();
            disk.fail_operation(fail_at, fault);
            let mut synced = 0;
            _ = drive(&disk, &mut synced);
            check(&disk.kill(), synced, Loss::Nothing, &format!("{fault:?} at {fail_at}"));
        }
    }
}
