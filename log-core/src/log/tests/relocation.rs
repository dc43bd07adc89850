use super::*;
use crate::log::compaction::{Pace, Stopped};
use crate::log::relocation::{Relocation, RelocationError};
use crate::testing::mem_disk::{Crash, Fault};

const FUTURE: &str = "/other/t-0.1234-future";
const PLACE: &str = "/other/t-0";

struct AtOnce;

impl Pace for AtOnce {
    fn passed(&mut self, _bytes: u64) -> Result<(), Stopped> {
        Ok(())
    }
}

/// Lets so many chunks pass.
struct For(usize);

impl Pace for For {
    fn passed(&mut self, _bytes: u64) -> Result<(), Stopped> {
        self.0 = self.0.checked_sub(1).ok_or(Stopped)?;
        Ok(())
    }
}

fn two_disks() -> MemDisk {
    let disk = data_disk();
    create_durable_dir_all(&disk, Path::new("/other")).unwrap();
    disk
}

/// The run of the process that begins a copy, unless a test says otherwise.
const RUN: LeaderEpoch = LeaderEpoch(5);

fn begin(disk: &MemDisk, log: &Log, proven_end: i64) -> Result<Relocation, LogError> {
    begin_in(RUN, disk, log, proven_end)
}

fn begin_in(
    run: LeaderEpoch,
    disk: &MemDisk,
    log: &Log,
    proven_end: i64,
) -> Result<Relocation, LogError> {
    let folders = (Path::new(DIR), Path::new(FUTURE));
    let disk = Arc::new(disk.clone());
    Relocation::start(disk, &log.reader(), folders, &identity(), run, proven_end)
}

fn finish(relocation: &mut Relocation, log: &mut Log) -> Result<Log, RelocationError> {
    let last = log.last_state()?;
    relocation.finish(&last, Path::new(PLACE), OpenHint::default(), 6000)
}

/// Ten batches in segments of two or three.
fn written(disk: &MemDisk) -> Log {
    let mut log = open(disk, small(200));
    for number in 0..10 {
        put(&mut log, &[&format!("value {number}")]);
    }
    assert!(log.reader().segment_count() > 3);
    log
}

fn expected(numbers: std::ops::Range<i64>) -> Vec<(i64, String)> {
    numbers.map(|number| (number, format!("value {number}"))).collect()
}

#[test]
fn what_is_written_meanwhile_comes_along_and_readers_follow() {
    let disk = two_disks();
    let mut log = written(&disk);
    let (reader, old_reader) = (log.reader(), log.reader());
    let mut relocation = begin(&disk, &log, 0).unwrap();
    assert!(relocation.copy(&mut AtOnce).unwrap() > 0);
    assert_eq!(relocation.progress().end_offset(), 10);
    assert_eq!(relocation.progress().bytes(), reader.size_in_bytes());
    for number in 10..15 {
        put(&mut log, &[&format!("value {number}")]);
    }
    assert!(relocation.copy(&mut AtOnce).unwrap() > 0);
    assert_eq!(relocation.copy(&mut AtOnce).unwrap(), 0);
    put(&mut log, &["value 15"]);
    assert!(relocation.progress().end_offset() < 16);
    let segments = reader.segment_count();
    let mut moved = finish(&mut relocation, &mut log).unwrap();
    moved.take_place_of(log);
    assert_eq!(moved.reader().segment_count(), segments);
    put(&mut moved, &["value 16"]);
    // Whoever had the reader before reads what was written since, with the old folder gone.
    disk.remove_dir_all(Path::new(DIR)).unwrap();
    assert_eq!(read_from(&reader, 0), expected(0..17));
    assert_eq!(read_from(&old_reader, 12), expected(12..17));
    assert_eq!(old_reader.log_end_offset(), 17);
    assert_eq!(moved.recovery_point(), 16, "all that was copied is synced");
    assert!(disk.list(Path::new(FUTURE)).is_err());
}

#[test]
fn producers_transactions_and_epochs_come_along() {
    let disk = two_disks();
    let mut log = open(&disk, small(1 << 20));
    append(&mut log, sequenced((7, 0), 0, &["a", "b"])).unwrap();
    append(&mut log, of_producer((8, 0), 0, BatchKind::Transactional, &["c"])).unwrap();
    append(&mut log, marker((8, 0), TransactionOutcome::Abort)).unwrap();
    append(&mut log, of_producer((9, 0), 0, BatchKind::Transactional, &["d"])).unwrap();
    log.high_watermark_moved(5);
    let aborted = log.reader().aborted_transactions(0, 5).unwrap();
    assert_eq!((aborted.len(), log.first_unstable_offset()), (1, Some(4)));
    let mut relocation = begin(&disk, &log, 0).unwrap();
    let mut moved = finish(&mut relocation, &mut log).unwrap();
    let changed = log.transactions_changed();
    moved.take_place_of(log);
    assert!(moved.transactions_changed() > changed);
    assert_eq!(moved.first_unstable_offset(), Some(4));
    assert_eq!(moved.latest_epoch(), Some(EPOCH));
    assert_eq!(moved.reader().aborted_transactions(0, 5).unwrap(), aborted);
    let again = append(&mut moved, sequenced((7, 0), 0, &["a", "b"])).unwrap();
    assert_eq!((again.novelty, again.base_offset), (Novelty::Duplicate, 0));
    let gap = append(&mut moved, sequenced((7, 0), 5, &["x"]));
    assert!(matches!(gap, Err(LogError::OutOfOrderSequence { .. })), "{gap:?}");
    // A start reads the same from the files alone.
    moved.close_clean(7000).unwrap();
    let (again, _) = Log::open(
        Arc::new(disk.clone()),
        Path::new(PLACE),
        identity(),
        Arc::new(small(1 << 20)),
        clean(),
        0,
    )
    .unwrap();
    assert_eq!(again.first_unstable_offset(), Some(4));
    assert_eq!(again.reader().aborted_transactions(0, 5).unwrap(), aborted);
}

#[test]
fn segments_that_go_meanwhile_are_not_in_the_copy() {
    let disk = two_disks();
    let mut log = written(&disk);
    let mut relocation = begin(&disk, &log, 0).unwrap();
    relocation.copy(&mut AtOnce).unwrap();
    log.set_log_start_offset(7).unwrap();
    log.apply_retention(10, 5000).unwrap();
    log.remove_deleted(i64::MAX);
    relocation.copy(&mut AtOnce).unwrap();
    let mut moved = finish(&mut relocation, &mut log).unwrap();
    assert_eq!(moved.log_start_offset(), 7);
    moved.take_place_of(log);
    assert_eq!(read_from(&moved.reader(), 7), expected(7..10));
    assert_eq!(moved.checkpointed_log_start(), Some(7));
    put(&mut moved, &["value 10"]);
}

#[test]
fn a_copy_that_was_begun_earlier_goes_on_behind_its_whole_segments() {
    let disk = two_disks();
    let mut log = written(&disk);
    log.flush(5000).unwrap();
    let mut relocation = begin(&disk, &log, 0).unwrap();
    let stopped = relocation.copy(&mut For(2));
    assert!(matches!(stopped, Err(RelocationError::Stopped)), "{stopped:?}");
    drop(relocation);
    let mut relocation = begin_in(LeaderEpoch(6), &disk, &log, 10).unwrap();
    let taken_over = relocation.progress().bytes();
    assert!(taken_over > 0 && taken_over < log.reader().size_in_bytes());
    let copied = relocation.copy(&mut AtOnce).unwrap();
    assert_eq!(taken_over + copied, log.reader().size_in_bytes());
    // What was not proven to be on disk may have been cut off since.
    drop(relocation);
    let mut relocation = begin_in(LeaderEpoch(7), &disk, &log, 0).unwrap();
    assert_eq!(relocation.progress().bytes(), 0);
    let moved = finish(&mut relocation, &mut log).unwrap();
    assert_eq!(read_from(&moved.reader(), 0), expected(0..10));
}

/// In between, a start without the copy's directory may have found the log cut short by a power cut, and
/// filled it again: with other records in segments of the same sizes.
#[test]
fn a_copy_of_a_run_before_the_last_one_counts_for_nothing() {
    let disk = two_disks();
    let mut log = written(&disk);
    log.flush(5000).unwrap();
    let sizes = |log: &Log| -> Vec<_> {
        log.segments.iter().map(|segment| (segment.base_offset, segment.size())).collect()
    };
    let before = sizes(&log);
    let mut relocation = begin_in(LeaderEpoch(5), &disk, &log, 0).unwrap();
    relocation.copy(&mut AtOnce).unwrap();
    drop(relocation);
    log.truncate_to(1, 5000).unwrap();
    for number in 1..10 {
        put(&mut log, &[&format!("VALUE {number}")]);
    }
    log.flush(5000).unwrap();
    assert_eq!(sizes(&log), before);
    let mut relocation = begin_in(LeaderEpoch(7), &disk, &log, 10).unwrap();
    assert_eq!(relocation.progress().bytes(), 0);
    let moved = finish(&mut relocation, &mut log).unwrap();
    assert_eq!(
        values_from(&moved.reader(), 1),
        (1..10).map(|n| format!("VALUE {n}")).collect::<Vec<_>>()
    );
}

/// What is removed must not be taken over later: not even after a power cut, by the run after this one.
#[test]
fn a_stop_while_an_old_copy_is_removed_makes_it_no_newer() {
    for at in 0.. {
        let disk = two_disks();
        let mut log = written(&disk);
        log.flush(5000).unwrap();
        begin_in(LeaderEpoch(5), &disk, &log, 0).unwrap().copy(&mut AtOnce).unwrap();
        disk.fail_operation(disk.operations() + at, Fault::Halt);
        let begun = begin_in(LeaderEpoch(7), &disk, &log, 10);
        for disk in [disk.crash(Crash::ForgetUnsynced), disk.crash(Crash::Seeded(at)), disk.kill()]
        {
            let (log, _) = open_as(&disk, small(200), clean());
            let relocation = begin_in(LeaderEpoch(8), &disk, &log, 10).unwrap();
            assert_eq!(relocation.progress().bytes(), 0, "call {at}");
        }
        if begun.is_ok() {
            assert!(at > 10);
            break;
        }
    }
}

/// A move of a log with ten batches on disk, while an eleventh is written.
fn moved(disk: &MemDisk, log: &mut Log) -> Result<Log, RelocationError> {
    let mut relocation = begin(disk, log, 0)?;
    relocation.copy(&mut AtOnce)?;
    append(log, plain(&["value 10"]))?;
    finish(&mut relocation, log)
}

/// Whatever call fails, the log that goes on has all; whatever call is the last, the folder that a start
/// takes has.
#[test]
fn no_call_of_a_move_that_fails_or_is_the_last_loses_anything() {
    let start = || {
        let disk = two_disks();
        let mut log = written(&disk);
        log.flush(5000).unwrap();
        (disk, log)
    };
    let (disk, mut log) = start();
    let before = disk.operations();
    moved(&disk, &mut log).unwrap();
    let calls = disk.operations() - before;
    assert!(calls > 50, "{calls}");
    let mut torn = 0;
    for at in 0..calls {
        let (disk, mut log) = start();
        disk.fail_operation(disk.operations() + at, Fault::Halt);
        assert!(moved(&disk, &mut log).is_err() && disk.is_halted(), "call {at}");
        for how in [Crash::ForgetUnsynced, Crash::Seeded(at)] {
            check_after_crash(&disk.crash(how));
        }
        check_after_crash(&disk.kill());

        let (disk, mut log) = start();
        disk.fail_operation(disk.operations() + at, Fault::Io);
        let moved = moved(&disk, &mut log);
        disk.clear_faults();
        let goes_on = match moved {
            Ok(mut moved) => {
                moved.take_place_of(log);
                moved
            }
            Err(RelocationError::Torn(_)) => {
                torn += 1;
                continue;
            }
            Err(_) => {
                assert!(disk.list(Path::new(PLACE)).is_err(), "call {at}: in two places");
                log
            }
        };
        let found = read_from(&goes_on.reader(), 0);
        assert_eq!(found.get(..10), Some(&expected(0..10)[..]), "call {at}");
    }
    assert_eq!(torn, 0, "one fault leaves a way back");
}

fn check_after_crash(disk: &MemDisk) {
    // As a start decides: the new name is given only to what is whole.
    let place = if disk.list(Path::new(PLACE)).is_ok() { PLACE } else { DIR };
    let hint = OpenHint { recovery_point: Some(10), proven_end: 10, ..OpenHint::default() };
    let (shared, config): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Arc::new(small(200)));
    let (log, _) = Log::open(shared, Path::new(place), identity(), config, hint, 0).unwrap();
    assert_eq!(read_from(&log.reader(), 0).get(..10), Some(&expected(0..10)[..]), "{place}");
}
