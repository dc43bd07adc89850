//! What compaction keeps and drops, when it is due, and that readers and crashes do not matter.

use std::collections::BTreeMap;

use super::*;
use crate::log::compaction::{
    Compaction, CompactionError, CompactionPlan, CompactionStats, Installed, MapMemory, Pace,
    Stopped,
};
use crate::record::{BatchHeader, Compression};
use crate::storage::names::FileKind;

mod cached;
mod crash;
mod emptied;
mod model;
mod transactions;

const HOUR_MS: i64 = 3_600_000;
const NOW_MS: i64 = 1_700_000_000_000;
const MEMORY: MapMemory = MapMemory { bytes: 1 << 20, load_factor: 0.9, seed: 42 };

/// Goes on without a pause.
struct Unpaced;

impl Pace for Unpaced {
    fn passed(&mut self, _bytes: u64) -> Result<(), Stopped> {
        Ok(())
    }
}

/// Compacts whatever is dirty, and nothing goes by time.
fn compacting(segment_bytes: u32) -> LogConfig {
    LogConfig {
        cleanup_policy: CleanupPolicy::Compact,
        min_cleanable_dirty_ratio: 0.0,
        delete_retention_ms: HOUR_MS,
        ..uncached(small(segment_bytes))
    }
}

/// A key with a value, or a tombstone.
type Keyed<'a> = (&'a str, Option<&'a str>);

fn keyed_with(params: BatchParams, records: &[Keyed<'_>]) -> AppendBatch {
    let mut builder = BatchBuilder::new(params);
    for (key, value) in records {
        let (key, value) = (Some(key.as_bytes()), value.map(str::as_bytes));
        let record = NewRecord { timestamp: 1000, key, value, headers: &[] };
        builder.append(&record).unwrap();
    }
    let bytes = builder.finish(&mut Compressor::new()).unwrap();
    AppendBatch { bytes, origin: AppendOrigin::Client }
}

fn keyed(records: &[Keyed<'_>]) -> AppendBatch {
    keyed_with(BatchParams::default(), records)
}

/// What a reader from the start sees: offset, key, value.
fn content(log: &Log) -> Vec<(i64, String, Option<String>)> {
    content_of(&log.reader(), log.log_start_offset())
}

fn content_of(reader: &LogReader, start: i64) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut found = Vec::new();
    for (header, bytes) in batches(reader, start) {
        if header.is_control() {
            continue;
        }
        for record in &decode(&bytes).unwrap() {
            let key = text(record.key.unwrap_or_default());
            found.push((record.offset, key, record.value.map(text)));
        }
    }
    found
}

fn batches(reader: &LogReader, start: i64) -> Vec<(BatchHeader, Bytes)> {
    let (mut found, mut next) = (Vec::new(), start);
    loop {
        let read = reader.read(next, 500, i64::MAX, ReadMinimum::OneBatch).unwrap();
        if read.pieces.is_empty() {
            return found;
        }
        assert!(read.next_offset > next);
        next = read.next_offset;
        found.extend(read.pieces.into_iter().flat_map(SharedBatches::new).map(Result::unwrap));
    }
}

fn plan(log: &Log, checkpoint: Option<i64>, now_ms: i64) -> Option<CompactionPlan> {
    let stable = log.first_unstable_offset().unwrap_or(log.log_end_offset());
    log.plan_compaction(checkpoint, stable, now_ms).unwrap()
}

/// Compacts once, if it is due; the next checkpoint and what was done.
fn compact_with(
    log: &mut Log,
    checkpoint: Option<i64>,
    now_ms: i64,
    memory: MapMemory,
) -> Result<Option<(i64, CompactionStats)>, CompactionError> {
    let Some(plan) = plan(log, checkpoint, now_ms) else { return Ok(None) };
    let mut run = Compaction::start(plan, memory, &mut Unpaced)?;
    while let Some(group) = run.next_group(&mut Unpaced)? {
        log.install(group, now_ms)?;
    }
    Ok(Some((run.end_offset(), run.stats())))
}

fn compact(log: &mut Log, checkpoint: Option<i64>, now_ms: i64) -> Option<i64> {
    compact_with(log, checkpoint, now_ms, MEMORY).unwrap().map(|(end, _)| end)
}

/// Appends each batch and rolls.
fn sealed(disk: &MemDisk, config: LogConfig, batches: &[&[Keyed<'_>]]) -> Log {
    let mut log = open(disk, config);
    for records in batches {
        append(&mut log, keyed(records)).unwrap();
    }
    log.roll(NOW_MS).unwrap();
    log
}

fn row(offset: i64, key: &str, value: &str) -> (i64, String, Option<String>) {
    (offset, key.to_owned(), Some(value.to_owned()))
}

fn tombstone(offset: i64, key: &str) -> (i64, String, Option<String>) {
    (offset, key.to_owned(), None)
}

#[test]
fn the_newest_record_of_each_key_stays_at_its_offset() {
    let disk = data_disk();
    let batches: [&[Keyed<'_>]; 4] = [
        &[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))],
        &[("a", Some("2"))],
        &[("d", Some("1")), ("b", Some("2"))],
        &[("a", Some("3"))],
    ];
    let mut log = open(&disk, compacting(1 << 20));
    for records in batches {
        append(&mut log, keyed(records)).unwrap();
        log.roll(NOW_MS).unwrap();
    }
    append(&mut log, keyed(&[("c", Some("not looked at: in the active segment"))])).unwrap();
    let before = logs(&disk).len();
    assert!(before > 2);
    assert_eq!(compact(&mut log, None, NOW_MS), Some(7));
    let expected = [row(2, "c", "1"), row(4, "d", "1"), row(5, "b", "2"), row(6, "a", "3")];
    assert_eq!(content(&log)[..4], expected);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 8));
    assert!(logs(&disk).len() < before, "segments are merged: {:?}", names(&disk));
    // Every offset leads to the first record that is left from there on.
    for offset in 0..7 {
        let found = content_of(&log.reader(), offset).into_iter().map(|row| row.0);
        let first = expected.iter().map(|row| row.0).find(|at| *at >= offset);
        assert_eq!(found.into_iter().find(|at| *at >= offset), first);
    }
    assert_eq!(compact(&mut log, Some(7), NOW_MS), None, "nothing is dirty any more");
    let seen = content(&log);
    log.close_clean(NOW_MS).unwrap();
    drop(log);
    for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
        let hint =
            OpenHint { shutdown, recovery_point: Some(8), proven_end: 8, ..OpenHint::default() };
        let (log, report) = open_as(&disk, compacting(1 << 20), hint);
        assert_eq!(content(&log), seen);
        assert_eq!((log.log_end_offset(), report.damage.len()), (8, 0));
    }
}

#[test]
fn a_batch_keeps_its_header_and_its_codec() {
    for compression in Compression::ALL {
        let disk = data_disk();
        let producer =
            Some(ProducerSequence { id: ProducerId(9), epoch: ProducerEpoch(1), base_sequence: 0 });
        let params = BatchParams { compression, producer, ..BatchParams::default() };
        let mut log = open(&disk, compacting(1 << 20));
        append(&mut log, keyed_with(params, &[("a", Some("1")), ("b", Some("1"))])).unwrap();
        append(&mut log, keyed(&[("b", Some("2"))])).unwrap();
        log.roll(NOW_MS).unwrap();
        let before = batches(&log.reader(), 0)[0].0;
        compact(&mut log, None, NOW_MS).unwrap();
        let (after, bytes) = batches(&log.reader(), 0).remove(0);
        let same = BatchHeader {
            batch_length: after.batch_length,
            crc: after.crc,
            record_count: 1,
            ..before
        };
        assert_eq!(after, same);
        crate::record::Batch::parse(&bytes).unwrap().verify_crc().unwrap();
        assert_eq!(content(&log), [row(0, "a", "1"), row(2, "b", "2")], "{compression}");
    }
}

/// Case B31: a tombstone's age counts from its first compaction, whatever its own time.
#[test]
fn tombstones_wait_for_their_horizon() {
    let disk = data_disk();
    let mut log = sealed(&disk, compacting(1 << 20), &[&[("a", Some("1")), ("a", None)]]);
    let end = compact(&mut log, None, NOW_MS).unwrap();
    assert_eq!(content(&log), [tombstone(1, "a")]);
    let header = batches(&log.reader(), 0)[0].0;
    assert_eq!(header.delete_horizon_ms(), Some(NOW_MS + HOUR_MS));
    assert_eq!(header.max_timestamp, 1000);
    for (round, (later, left)) in [(HOUR_MS - 1, 1), (HOUR_MS, 0)].into_iter().enumerate() {
        append(&mut log, keyed(&[("b", Some("other"))])).unwrap();
        log.roll(NOW_MS).unwrap();
        compact(&mut log, Some(end + round as i64), NOW_MS + later).unwrap();
        let tombstones = content(&log).into_iter().filter(|(_, key, _)| key == "a").count();
        assert_eq!(tombstones, left, "{later}");
    }
    assert_eq!(log.log_end_offset(), 4);
    assert_eq!(log.log_start_offset(), 0);
}

#[test]
fn the_last_batch_of_a_producer_stays_for_its_sequence() {
    let disk = data_disk();
    let params = |base_sequence| BatchParams {
        producer: Some(ProducerSequence {
            id: ProducerId(9),
            epoch: ProducerEpoch(0),
            base_sequence,
        }),
        ..BatchParams::default()
    };
    let mut log = open(&disk, compacting(1 << 20));
    for sequence in 0..3 {
        append(&mut log, keyed_with(params(sequence), &[("a", Some("x"))])).unwrap();
    }
    append(&mut log, keyed(&[("a", Some("newest"))])).unwrap();
    log.roll(NOW_MS).unwrap();
    compact(&mut log, None, NOW_MS).unwrap();
    let left: Vec<_> = batches(&log.reader(), 0)
        .into_iter()
        .map(|(header, _)| (header.base_offset, header.record_count, header.base_sequence))
        .collect();
    assert_eq!(left, [(2, 0, 2), (3, 1, -1)]);
    // Also known from the batches alone.
    for name in names(&disk).into_iter().filter(|name| name.ends_with(".snapshot")) {
        disk.remove(&Path::new(DIR).join(name)).unwrap();
    }
    log.close();
    let mut log = open(&disk, compacting(1 << 20));
    let repeated = append(&mut log, keyed_with(params(2), &[("a", Some("x"))])).unwrap();
    assert_eq!((repeated.base_offset, repeated.novelty), (2, Novelty::Duplicate));
    assert!(matches!(
        append(&mut log, keyed_with(params(7), &[("a", Some("x"))])),
        Err(LogError::OutOfOrderSequence { expected: 3, .. })
    ));
}

#[test]
fn a_log_of_tombstones_keeps_its_offsets() {
    let disk = data_disk();
    let mut log = sealed(&disk, compacting(1 << 20), &[&[("a", None)]]);
    let end = compact(&mut log, None, NOW_MS).unwrap();
    append(&mut log, keyed(&[("b", None)])).unwrap();
    log.roll(NOW_MS).unwrap();
    compact(&mut log, Some(end), NOW_MS + HOUR_MS).unwrap();
    append(&mut log, keyed(&[("c", None)])).unwrap();
    log.roll(NOW_MS).unwrap();
    compact(&mut log, Some(2), NOW_MS + 3 * HOUR_MS).unwrap();
    assert_eq!(content(&log), [tombstone(2, "c")]);
    log.close();
    let log = open(&disk, compacting(1 << 20));
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 3));
}

#[test]
fn what_does_not_fit_the_map_waits_for_the_next_run() {
    let disk = data_disk();
    let mut log = open(&disk, compacting(2000));
    for i in 0..200 {
        let (key, value) = (format!("key {}", i % 50), format!("value {i}"));
        append(&mut log, keyed(&[(&key, Some(&value)), (&key, Some(&value))])).unwrap();
    }
    log.roll(NOW_MS).unwrap();
    let memory = MapMemory { bytes: 20 * 24, ..MEMORY };
    let (mut checkpoint, mut runs) = (None, 0);
    while let Some((end, _)) = compact_with(&mut log, checkpoint, NOW_MS, memory).unwrap() {
        assert!(checkpoint.is_none_or(|before| end > before));
        checkpoint = Some(end);
        runs += 1;
    }
    assert!(runs > 10, "{runs} runs");
    assert_eq!(checkpoint, Some(400));
    let left: Vec<i64> = content(&log).into_iter().map(|(offset, ..)| offset).collect();
    // Of each key the newest; a part of those of older runs, whose keys came again later.
    assert_eq!(left, (150..200).map(|i| 2 * i + 1).collect::<Vec<_>>());
}

#[test]
fn it_is_due_by_ratio_lag_and_policy() {
    let disk = data_disk();
    let config = LogConfig { min_cleanable_dirty_ratio: 0.5, ..compacting(1 << 20) };
    let mut log = sealed(&disk, config.clone(), &[&[("a", Some("1")), ("b", Some("1"))]]);
    assert!(plan(&log, None, NOW_MS).is_some_and(|plan| plan.dirty_ratio() > 0.99));
    let end = compact(&mut log, None, NOW_MS);
    append(&mut log, keyed(&[("c", Some("1"))])).unwrap();
    assert!(plan(&log, end, NOW_MS).is_none(), "the active segment does not count");
    log.roll(NOW_MS).unwrap();
    assert!(plan(&log, end, NOW_MS).is_none(), "less than half is dirty");
    let due = |log: &mut Log, config: LogConfig, now_ms| {
        log.set_config(Arc::new(config));
        plan(log, end, now_ms).map(|plan| plan.dirty_range())
    };
    let eager = LogConfig { min_cleanable_dirty_ratio: 0.1, ..config.clone() };
    assert_eq!(due(&mut log, eager.clone(), NOW_MS), Some((2, 3)));
    let impatient = LogConfig { max_compaction_lag_ms: 5000, ..config.clone() };
    assert_eq!(due(&mut log, impatient.clone(), 6000), None);
    assert_eq!(due(&mut log, impatient, 6001), Some((2, 3)));
    let slow = LogConfig { min_compaction_lag_ms: 5000, ..eager.clone() };
    assert_eq!(due(&mut log, slow.clone(), 5999), None, "younger than the lag");
    assert_eq!(due(&mut log, slow, 6000), Some((2, 3)));
    for policy in [CleanupPolicy::Delete, CleanupPolicy::Unlimited] {
        let config = LogConfig { cleanup_policy: policy, ..eager.clone() };
        assert_eq!(due(&mut log, config, NOW_MS), None);
    }
    assert_eq!(due(&mut log, eager, NOW_MS), Some((2, 3)));
    // A checkpoint that does not fit counts as none.
    assert_eq!(plan(&log, Some(77), NOW_MS).map(|plan| plan.dirty_range()), Some((0, 3)));
    // Not above the last stable offset.
    let found = log.plan_compaction(None, 2, NOW_MS).unwrap();
    assert_eq!(found.map(|plan| plan.dirty_range()), Some((0, 2)));
}

#[test]
fn a_log_rolls_before_its_records_wait_longer_than_they_may() {
    let disk = data_disk();
    let config = LogConfig { max_compaction_lag_ms: 5000, ..compacting(1 << 20) };
    let mut log = open(&disk, config);
    append(&mut log, keyed(&[("a", Some("1"))])).unwrap();
    assert!(!log.roll_if_due(6000).unwrap());
    assert!(log.roll_if_due(6001).unwrap());
}

/// Readers of an older view keep what they read: the old segment with its own indexes.
#[test]
fn whoever_reads_an_old_segment_goes_on() {
    let disk = data_disk();
    let mut log = open(&disk, compacting(400));
    for i in 0..40 {
        append(&mut log, keyed(&[(&format!("{}", i % 3), Some("some value"))])).unwrap();
    }
    log.roll(NOW_MS).unwrap();
    let old: Vec<_> = log.segments.iter().map(Arc::clone).collect();
    let (mapped, unmapped) = (&old[0], &old[1]);
    let entries = mapped.offsets().unwrap().iter().collect::<Vec<_>>();
    compact(&mut log, None, NOW_MS).unwrap();
    assert_eq!(mapped.offsets().unwrap().iter().collect::<Vec<_>>(), entries);
    assert!(unmapped.offsets().unwrap().iter().count() > 1);
    for segment in [mapped, unmapped] {
        let bounds = crate::storage::segment::ReadBounds {
            max_bytes: 1 << 20,
            end_offset: i64::MAX,
            log_end: i64::MAX,
            minimum: ReadMinimum::OneBatch,
        };
        let read = segment.read(segment.base_offset + 2, bounds).unwrap();
        let first = BatchHeader::parse(&read.bytes).unwrap();
        assert_eq!(first.base_offset, segment.base_offset + 2);
        segment.append_times().unwrap();
    }
    // Nothing of it is taken for the new segment's.
    let left: Vec<i64> = content(&log).into_iter().map(|(offset, ..)| offset).collect();
    assert_eq!(left, [37, 38, 39]);
    assert!(names(&disk).iter().any(|name| name.ends_with(".deleted")));
    log.remove_deleted(NOW_MS + 60_000);
    assert!(!names(&disk).iter().any(|name| name.ends_with(".deleted")), "{:?}", names(&disk));
}

#[test]
fn readers_meet_neither_gap_nor_error_while_segments_are_swapped() {
    let disk = data_disk();
    let mut log = open(&disk, compacting(600));
    let reader = log.reader();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(std::sync::atomic::Ordering::Acquire) || rounds == 0 {
                let end = reader.log_end_offset();
                let seen = content_of(&reader, 0);
                let newest: BTreeMap<_, _> =
                    seen.iter().map(|(offset, key, _)| (key.clone(), *offset)).collect();
                assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
                // All keys that were written in turn are there, none older than one turn.
                let turn = end.min(10);
                let recent = newest.values().filter(|at| **at >= end - 10).count();
                assert!(recent as i64 >= turn);
                rounds += 1;
            }
        });
        let mut checkpoint = None;
        for i in 0..400 {
            let key = format!("{}", i % 10);
            append(&mut log, keyed(&[(&key, Some(&format!("value {i}")))])).unwrap();
            if i % 23 == 22 {
                log.roll(NOW_MS).unwrap();
                checkpoint = compact(&mut log, checkpoint, NOW_MS).or(checkpoint);
                log.remove_deleted(NOW_MS);
            }
        }
        done.store(true, std::sync::atomic::Ordering::Release);
        reading.join().unwrap();
    });
}

#[test]
fn a_group_whose_segments_are_gone_is_thrown_away() {
    let disk = data_disk();
    let config = LogConfig { cleanup_policy: CleanupPolicy::CompactAndDelete, ..compacting(100) };
    let config = LogConfig { retention_bytes: 1, retention_ms: -1, ..config };
    let batches: [&[Keyed<'_>]; 3] =
        [&[("a", Some("1"))], &[("a", Some("2"))], &[("b", Some("1"))]];
    let mut log = sealed(&disk, config, &batches);
    let plan = plan(&log, None, NOW_MS).unwrap();
    let mut run = Compaction::start(plan, MEMORY, &mut Unpaced).unwrap();
    let group = run.next_group(&mut Unpaced).unwrap().unwrap();
    let end = log.log_end_offset();
    assert!(log.apply_retention(end, NOW_MS).unwrap().segments_deleted > 0);
    assert_eq!(log.install(group, NOW_MS).unwrap(), Installed::Superseded);
    assert!(!names(&disk).iter().any(|name| name.ends_with(".cleaned")), "{:?}", names(&disk));
    assert_eq!(log.log_end_offset(), end);
}

#[test]
fn a_stopped_or_failed_run_leaves_nothing_behind() {
    struct StopAfter(u32);
    impl Pace for StopAfter {
        fn passed(&mut self, _bytes: u64) -> Result<(), Stopped> {
            self.0 = self.0.checked_sub(1).ok_or(Stopped)?;
            Ok(())
        }
    }
    let disk = data_disk();
    let value = "x".repeat(100_000);
    let mut log = open(&disk, compacting(1 << 20));
    for i in 0..20 {
        append(&mut log, keyed(&[(&format!("{}", i % 2), Some(&value))])).unwrap();
    }
    log.roll(NOW_MS).unwrap();
    let before = content(&log);
    for steps in 0..9 {
        let mut pace = StopAfter(steps);
        let plan = plan(&log, None, NOW_MS).unwrap();
        let outcome = Compaction::start(plan, MEMORY, &mut pace)
            .and_then(|mut run| run.next_group(&mut pace).map(|group| group.map(|g| g.discard())));
        assert!(matches!(outcome, Err(CompactionError::Stopped)), "{steps}");
        assert!(!names(&disk).iter().any(|name| name.ends_with(".cleaned")));
        assert_eq!(content(&log), before);
    }
}

/// Case B32: damage stops the compaction of this log, which is left as it is.
#[test]
fn a_damaged_batch_is_told_and_not_copied() {
    let disk = data_disk();
    let mut log = sealed(&disk, compacting(1 << 20), &[&[("a", Some("1"))], &[("a", Some("2"))]]);
    let path = Path::new(DIR).join("00000000000000000000.log");
    let mut bytes = disk.content(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    disk.overwrite(&path, &bytes);
    let outcome = compact_with(&mut log, None, NOW_MS, MEMORY);
    let Err(CompactionError::Log(LogError::Corrupt { offset: 1, .. })) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(disk.content(&path), Some(bytes));
    assert!(!names(&disk).iter().any(|name| name.ends_with(".cleaned")));
}

/// Case B34: what grows by being written anew is split, not crammed into a segment.
#[test]
fn segments_stay_within_their_bound() {
    let disk = data_disk();
    let params = BatchParams { compression: Compression::Gzip, ..BatchParams::default() };
    let mut log = open(&disk, compacting(3000));
    for i in 0..200 {
        let keys = [format!("a{i}"), format!("b{i}"), format!("x{}", i % 2)];
        let records: Vec<Keyed<'_>> = keys.iter().map(|key| (key.as_str(), None)).collect();
        append(&mut log, keyed_with(params, &records)).unwrap();
    }
    log.roll(NOW_MS).unwrap();
    compact(&mut log, None, NOW_MS).unwrap();
    assert_eq!(content(&log).len(), 402);
    assert!(log.segments.iter().all(|segment| segment.size() <= 3000));
    log.close();
    assert_eq!(content(&open(&disk, compacting(3000))).len(), 402);
}

/// Where compaction was once at work a gap between segments is no sign of a loss.
#[test]
fn a_log_that_is_no_longer_compacted_keeps_its_gaps() {
    let disk = data_disk();
    let batches: [&[Keyed<'_>]; 4] =
        [&[("a", Some("1"))], &[("b", Some("1"))], &[("a", Some("2"))], &[("b", Some("2"))]];
    let mut log = sealed(&disk, compacting(75), &batches);
    let memory = MapMemory { bytes: 0, ..MEMORY };
    let mut checkpoint = None;
    while let Some((end, _)) = compact_with(&mut log, checkpoint, NOW_MS, memory).unwrap() {
        checkpoint = Some(end);
    }
    let seen = content(&log);
    log.close();
    let config = LogConfig { cleanup_policy: CleanupPolicy::Delete, ..compacting(75) };
    let hint = OpenHint { compacted: Compacted::Once, proven_end: 2, ..OpenHint::default() };
    let (log, report) = open_as(&disk, config, hint);
    assert_eq!((content(&log), report.damage, report.segments_dropped), (seen, Vec::new(), 0));
}

#[test]
fn append_times_survive() {
    let disk = data_disk();
    let mut log = open(&disk, compacting(200));
    for i in 0..12_i64 {
        let batch = keyed(&[(if i % 2 == 0 { "a" } else { "b" }, Some("value"))]);
        log.append_as_leader(vec![batch], EPOCH, 10_000 + i * 100).remove(0).unwrap();
    }
    log.roll(NOW_MS).unwrap();
    compact(&mut log, None, NOW_MS).unwrap();
    let reader = log.reader();
    assert_eq!(reader.append_time_at(10).unwrap(), Some(11_000));
    let found = reader.search_append_time(10_900, TimeBoundary::Lower, 12).unwrap();
    assert_eq!(found, Some(10), "the first that is left");
    let file = SegmentFile::of(&disk, FileKind::AppendTimeIndex);
    assert!(file.is_some(), "{:?}", names(&disk));
}

/// A file of the first segment.
struct SegmentFile;

impl SegmentFile {
    fn of(disk: &MemDisk, kind: FileKind) -> Option<Vec<u8>> {
        disk.content(&Path::new(DIR).join(format!("{:020}{}", 0, kind.suffix())))
    }
}
