//! Power cuts at every call to the disk: what was synced is there, what is there is a prefix of
//! what was written, and indexes, producers and epochs agree with it.

use super::super::recovery::{epochs_of, replay_batches};
use super::*;
use crate::ids::{Offset, TopicPartition};
use crate::producers::Producers;
use crate::storage::checkpoint::{self, Offsets};
use crate::testing::mem_disk::{Crash, Fault};

const DATA: &str = "/data";

/// A log with its checkpoints, driven until the machine stops.
#[derive(Default)]
struct Run {
    /// Batches in the order of appending, as values by base offset.
    appended: Vec<(i64, Vec<String>)>,
    /// Up to where a flush succeeded.
    synced: i64,
    /// What the log was told to start at.
    log_start: i64,
}

fn config() -> LogConfig {
    LogConfig { index_interval_bytes: 100, retention_ms: -1, ..small(400) }
}

fn partition() -> TopicPartition {
    TopicPartition::new("t", 0)
}

/// The first error ends the run.
fn drive(disk: &MemDisk, run: &mut Run) -> Result<(), LogError> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let config = Arc::new(config());
    let hint = OpenHint::default();
    let mut log = Log::open(Arc::clone(&shared), Path::new(DIR), identity(), config, hint, 0)?.0;
    for i in 0..30_i32 {
        let value = format!("value {i}");
        let batch = match i % 5 {
            3 => of_producer((7, 0), i / 5, BatchKind::Transactional, &[&value]),
            4 => marker((7, 0), TransactionOutcome::Abort),
            _ => sequenced((1, 0), i / 5 * 6 + i % 5 * 2, &[&value, &value]),
        };
        let is_marker = i % 5 == 4;
        let epoch = LeaderEpoch(i / 10);
        let base_offset = log.log_end_offset();
        // Remembered before the answer: it may be on disk even when the call fails.
        let values = if is_marker { vec![] } else { vec![value] };
        run.appended.push((base_offset, values));
        log.append_as_leader(vec![batch], epoch, 0).remove(0)?;
        if i % 4 == 1 {
            log.flush(0)?;
            run.synced = log.log_end_offset();
            let offsets = Offsets::from([(partition(), log.recovery_point())]);
            let file = checkpoint::RECOVERY_POINT_FILE;
            checkpoint::write_offsets(disk, Path::new(DATA), file, &offsets)?;
        }
        if i == 20 {
            log.set_log_start_offset(9)?;
            run.log_start = 9;
            log.apply_retention(log.log_end_offset(), 0)?;
        }
    }
    log.close_clean(0)?;
    run.synced = log.log_end_offset();
    Ok(())
}

/// What the producers must be for a log with these batches.
fn producers_of(log: &Log) -> Producers {
    let mut producers = Producers::starting_at(log.segments[0].base_offset);
    replay_batches(&mut producers, &log.segments, log.log_end_offset()).unwrap();
    producers
}

fn check(disk: &MemDisk, run: &Run, what: &str) {
    let offsets = checkpoint::read_offsets(disk, Path::new(DATA), checkpoint::RECOVERY_POINT_FILE);
    let recovery_point = offsets.unwrap().get(&partition()).copied();
    let hint = OpenHint { recovery_point, ..OpenHint::default() };
    let (mut log, report) = open_as(disk, uncached(config()), hint);
    let end = log.log_end_offset();
    assert!(end >= run.synced, "{what}: synced to {}, found {end}", run.synced);
    let start = log.log_start_offset();
    assert!(start <= run.log_start, "{what}: starts at {start}");
    let found = read_from(&log.reader(), start);
    let expected: Vec<(i64, String)> = run
        .appended
        .iter()
        .flat_map(|(base_offset, values)| {
            let count = if values.is_empty() { 0 } else { batch_len(*base_offset, run) };
            (0..count).map(move |i| (base_offset + i, values[0].clone()))
        })
        .filter(|(offset, _)| (start..end).contains(offset))
        .collect();
    let data: Vec<_> = found.into_iter().filter(|(_, value)| value.starts_with("value")).collect();
    assert_eq!(data, expected, "{what} {report:?}");
    for segment in &log.segments {
        let mut indexer = crate::storage::segment::LogHeads::read(
            &segment.log,
            segment.base_offset,
            segment.size(),
            config().index_interval_bytes,
        )
        .unwrap();
        if segment.growing_indexes().is_none() {
            indexer.times.extend(indexer.indexer.time_entry());
        }
        assert_eq!(
            segment.offsets().unwrap().iter().collect::<Vec<_>>(),
            indexer.offsets,
            "{what}"
        );
        assert_eq!(segment.times().unwrap().iter().collect::<Vec<_>>(), indexer.times, "{what}");
    }
    // Which markers were replicated is not known to a snapshot.
    log.high_watermark_moved(end);
    let mut expected = producers_of(&log);
    expected.high_watermark_moved(end);
    if log.segments[0].base_offset == 0 {
        assert_eq!(log.producers(), &expected, "{what}");
        let aborted = log.reader().aborted_transactions(0, i64::MAX).unwrap();
        let markers = run.appended.iter().filter(|(at, values)| values.is_empty() && *at < end);
        assert_eq!(aborted.len(), markers.count(), "{what}");
    }
    let mut epochs = epochs_of(&log.segments).unwrap();
    let mut found = LeaderEpochs::clone(&log.reader().leader_epochs());
    for epochs in [&mut epochs, &mut found] {
        epochs.truncate_from_start(Offset(start.max(run.log_start)));
    }
    assert_eq!(found, epochs, "{what}");
}

/// Records of the batch at this base offset.
fn batch_len(base_offset: i64, run: &Run) -> i64 {
    let index = run.appended.iter().position(|(at, _)| *at == base_offset).unwrap();
    if index % 5 == 3 { 1 } else { 2 }
}

/// The calls to the disk that a run makes.
fn operations() -> std::ops::Range<u64> {
    let disk = data_disk();
    let first = disk.operations();
    drive(&disk, &mut Run::default()).unwrap();
    first..disk.operations()
}

#[test]
fn a_power_cut_at_every_call_loses_nothing_that_was_synced() {
    let all = operations();
    assert!(all.end > 100);
    for halt_at in all {
        for seed in 0..4 {
            let disk = data_disk();
            disk.fail_operation(halt_at, Fault::Halt);
            let mut run = Run::default();
            _ = drive(&disk, &mut run);
            let how = if seed == 0 {
                Crash::ForgetUnsynced
            } else {
                Crash::Seeded(halt_at.wrapping_mul(31).wrapping_add(seed))
            };
            let after = disk.crash(how);
            check(&after, &run, &format!("halt at {halt_at}, {how:?}"));
            if seed == 1 {
                // Nothing more is lost when recovery itself is cut off and done again.
                check(&after.crash(Crash::Seeded(seed)), &run, &format!("{halt_at}, twice"));
            }
        }
    }
}

#[test]
fn a_kill_at_every_call_loses_no_whole_batch() {
    for halt_at in operations() {
        let disk = data_disk();
        disk.fail_operation(halt_at, Fault::Halt);
        let mut run = Run::default();
        let ended = drive(&disk, &mut run);
        // All but the append that was under way was answered, so it must be there.
        let answered = run.appended.len().saturating_sub(usize::from(ended.is_err()));
        if let Some((base_offset, _)) = run.appended.get(answered) {
            run.synced = run.synced.max(*base_offset);
        }
        check(&disk.kill(), &run, &format!("kill at {halt_at}"));
    }
}

#[test]
fn a_fault_at_every_call_leaves_a_log_that_opens_whole() {
    for fault in [Fault::Full, Fault::Io] {
        for fail_at in operations() {
            let disk = data_disk();
            disk.fail_operation(fail_at, fault);
            let mut run = Run::default();
            _ = drive(&disk, &mut run);
            check(&disk.kill(), &run, &format!("{fault:?} at {fail_at}"));
        }
    }
}
