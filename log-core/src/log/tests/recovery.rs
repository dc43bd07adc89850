use super::*;
use crate::producers::BATCHES_KEPT;
use crate::record::BatchHeader;
use crate::testing::mem_disk::{Crash, Fault};

/// Ten batches of two records each over several segments, of one idempotent producer.
fn filled(disk: &MemDisk, config: LogConfig) -> Log {
    let mut log = open(disk, config);
    for i in 0..10 {
        append(&mut log, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
    }
    log
}

#[test]
fn a_clean_stop_spares_the_scan_and_replays_nothing() {
    let disk = data_disk();
    let mut log = filled(&disk, small(300));
    let (records, producers) = (read_from(&log.reader(), 0), log.producers().clone());
    log.close_clean(0).unwrap();
    let (log, report) = open_as(&disk.crash(Crash::ForgetUnsynced), small(300), clean());
    let expected = RecoveryReport {
        segments: log.reader().segment_count(),
        log_end_offset: 20,
        ..RecoveryReport::default()
    };
    assert_eq!(report, expected);
    assert_eq!(read_from(&log.reader(), 0), records);
    assert_eq!(log.producers().producer(1).unwrap().epoch, 0);
    assert_eq!(log.recovery_point(), 20);
    let last = |producers: &Producers| producers.producer(1).unwrap().last_batch();
    assert_eq!(last(log.producers()), last(&producers));
}

#[test]
fn a_clean_stop_remembers_the_whole_window_of_each_producer() {
    let disk = data_disk();
    let mut log = filled(&disk, small(1 << 20));
    log.close_clean(0).unwrap();
    let mut log = open_as(&disk.kill(), small(1 << 20), clean()).0;
    for i in 10 - BATCHES_KEPT as i32..10 {
        let again = append(&mut log, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
        assert_eq!((again.novelty, again.base_offset), (Novelty::Duplicate, i64::from(2 * i)));
    }
    let older = append(&mut log, sequenced((1, 0), 8, &["left", "right"]));
    assert!(matches!(older, Err(LogError::OutOfOrderSequence { expected: 20, .. })));
}

#[test]
fn the_scan_begins_with_the_segment_of_the_recovery_point() {
    let disk = data_disk();
    let mut log = filled(&disk, small(300));
    let records = read_from(&log.reader(), 0);
    log.flush(0).unwrap();
    let all = log.reader().segment_count();
    for recovery_point in 0..=20 {
        let (log, report) = open_as(&disk.kill(), small(300), unclean(recovery_point));
        let bases: Vec<i64> = log.segments.iter().map(|segment| segment.base_offset).collect();
        let expected = bases.iter().filter(|base| **base > recovery_point).count() + 1;
        assert_eq!(report.segments_scanned, expected, "{recovery_point}");
        assert_eq!((report.bytes_truncated, report.indexes_rebuilt), (0, 0));
        assert_eq!(read_from(&log.reader(), 0), records);
        assert_eq!(log.recovery_point(), recovery_point);
    }
    let (_, report) = open_as(&disk.kill(), small(300), OpenHint::default());
    assert_eq!(report.segments_scanned, all, "without a recovery point all is scanned");
}

#[test]
fn every_torn_tail_is_cut_to_the_last_whole_batch() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    let mut ends = vec![0];
    for i in 0..3 {
        append(&mut log, sequenced((1, 0), i, &["value"])).unwrap();
        ends.push(log.reader().size_in_bytes() as usize);
    }
    let file = path("00000000000000000000.log");
    let content = disk.content(&file).unwrap();
    for cut in 0..content.len() {
        let disk = disk.kill();
        disk.overwrite(&file, &content[..cut]);
        let (mut log, report) = open_as(&disk, small(1 << 20), OpenHint::default());
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        assert_eq!(log.log_end_offset(), whole as i64, "{cut}");
        assert_eq!(report.bytes_truncated as usize, cut - ends[whole]);
        assert_eq!(disk.content(&file).unwrap().len(), ends[whole]);
        let sequence = i32::try_from(whole).unwrap();
        let next = append(&mut log, sequenced((1, 0), sequence, &["again"])).unwrap();
        assert_eq!(next.base_offset, whole as i64);
    }
}

#[test]
fn a_flipped_bit_ends_the_log_before_its_batch_and_drops_later_segments() {
    let disk = data_disk();
    let log = filled(&disk, small(300));
    let records = read_from(&log.reader(), 0);
    let bases: Vec<i64> = log.segments.iter().map(|segment| segment.base_offset).collect();
    assert!(bases.len() >= 4);
    let name = format!("{:020}.log", bases[1]);
    let content = disk.content(&path(&name)).unwrap();
    let size = BatchHeader::parse(&content).unwrap().size_in_bytes();
    for at in 0..content.len() {
        // Base offset and leader epoch lie outside the CRC.
        if (0..8).contains(&(at % size)) || (12..16).contains(&(at % size)) {
            continue;
        }
        let disk = disk.kill();
        let mut spoilt = content.clone();
        spoilt[at] ^= 0x80;
        disk.overwrite(&path(&name), &spoilt);
        let (log, report) = open_as(&disk, small(300), OpenHint::default());
        let kept = read_from(&log.reader(), 0);
        assert!(records.starts_with(&kept), "{at}");
        assert!((bases[1]..bases[2]).contains(&log.log_end_offset()), "{at}");
        assert_eq!(report.segments_dropped, bases.len() - 2);
        assert_eq!(logs(&disk).len(), 2);
        assert!(
            !names(&disk)
                .iter()
                .any(|name| name.ends_with(".snapshot") && *name > format!("{:020}", bases[2]))
        );
    }
}

#[test]
fn a_segment_that_does_not_continue_the_log_is_dropped() {
    let disk = data_disk();
    let log = filled(&disk, small(300));
    let bases: Vec<i64> = log.segments.iter().map(|segment| segment.base_offset).collect();
    let name = format!("{:020}.log", bases[1]);
    let content = disk.content(&path(&name)).unwrap();
    let one_batch = BatchHeader::parse(&content).unwrap().size_in_bytes();
    disk.overwrite(&path(&name), &content[..one_batch]);
    let (log, report) = open_as(&disk.kill(), small(300), OpenHint::default());
    assert_eq!(report.segments_dropped, bases.len() - 2);
    assert_eq!((log.log_end_offset(), report.bytes_truncated > 0), (bases[1] + 2, true));
}

#[test]
fn compaction_may_leave_gaps_between_segments() {
    let at = |base_offset| {
        let params = BatchParams { base_offset, leader_epoch: EPOCH, ..BatchParams::default() };
        batch_of(params, &[(1000, "x")]).freeze()
    };
    let disk = data_disk();
    let config = LogConfig { cleanup_policy: CleanupPolicy::Compact, ..small(80) };
    let mut log = open(&disk, config.clone());
    log.append_as_follower(vec![at(3), at(9), at(40)], 0).unwrap();
    assert_eq!(log.reader().segment_count(), 3);
    for segment in ["00000000000000000004", "00000000000000000010"] {
        assert!(!logs(&disk).contains(&format!("{segment}.log")));
    }
    let log = open(&disk.kill(), config);
    let offsets: Vec<_> = read_from(&log.reader(), 0).into_iter().map(|(o, _)| o).collect();
    assert_eq!(offsets, [3, 9, 40]);
}

#[test]
fn producers_survive_with_any_snapshot_missing_or_spoilt() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    for i in 0..10 {
        append(&mut log, sequenced((1, 0), i, &["left"])).unwrap();
        append(&mut log, of_producer((2, 0), i, BatchKind::Transactional, &["t"])).unwrap();
    }
    let expected = log.producers().clone();
    log.flush(0).unwrap();
    let snapshots: Vec<String> =
        names(&disk).into_iter().filter(|name| name.ends_with(".snapshot")).collect();
    assert!(snapshots.len() > 3);
    for spoil in 0..3 {
        for recovery_point in [0, 20] {
            let disk = disk.kill();
            for name in &snapshots {
                match spoil {
                    0 => {}
                    1 => disk.remove(&path(name)).unwrap(),
                    _ => disk.overwrite(&path(name), b"spoilt"),
                }
            }
            let log = open_as(&disk, small(300), unclean(recovery_point)).0;
            assert_eq!(log.producers(), &expected, "{spoil} {recovery_point}");
            assert_eq!(log.first_unstable_offset(), Some(1));
        }
    }
}

#[test]
fn leader_epochs_are_read_from_the_batches_when_their_file_is_gone() {
    for spoil in [None, Some(&b""[..]), Some(b"0\n5\n1 2\n")] {
        let disk = data_disk();
        let mut log = open(&disk, small(200));
        for epoch in [2, 2, 5, 9] {
            log.append_as_leader(vec![plain(&["x"])], LeaderEpoch(epoch), 0).remove(0).unwrap();
        }
        let expected = log.reader().leader_epochs();
        log.close_clean(0).unwrap();
        match spoil {
            Some(content) => disk.overwrite(&path("leader-epoch-checkpoint"), content),
            None => disk.remove(&path("leader-epoch-checkpoint")).unwrap(),
        }
        for hint in [clean(), OpenHint::default()] {
            let log = open_as(&disk.kill(), small(200), hint).0;
            assert_eq!(log.reader().leader_epochs(), expected);
        }
    }
}

#[test]
fn a_folder_of_another_topic_is_refused_and_left_alone() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    put(&mut log, &["a"]);
    log.close_clean(0).unwrap();
    disk.overwrite(&path("00000000000000000000.log.deleted"), b"x");
    let other = LogIdentity { topic_id: TopicId([9; 16]), ..identity() };
    let opened =
        Log::open(Arc::new(disk.clone()), Path::new(DIR), other, Arc::new(small(300)), clean(), 0);
    assert!(matches!(
        opened,
        Err(LogError::InconsistentTopicId { expected, found })
            if expected == TopicId([9; 16]) && found == TopicId([7; 16])
    ));
    assert!(names(&disk).contains(&"00000000000000000000.log.deleted".to_owned()));
}

#[test]
fn leftovers_go_and_foreign_files_stay() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    put(&mut log, &["a"]);
    log.close_clean(0).unwrap();
    for name in [
        "00000000000000000005.log.deleted",
        "00000000000000000005.index",
        "00000000000000000005.timeindex",
        "00000000000000000000.log.cleaned",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000099.snapshot",
        "notes.txt",
    ] {
        disk.overwrite(&path(name), b"x");
    }
    let (_, report) = open_as(&disk, small(300), clean());
    assert_eq!(report.stray_files_removed, 6);
    assert_eq!(
        names(&disk),
        [
            "00000000000000000000.appendtime",
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "00000000000000000001.snapshot",
            "leader-epoch-checkpoint",
            "notes.txt",
            "partition.metadata",
        ]
    );
}

#[test]
fn a_log_start_beyond_a_lost_end_is_kept() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    for _ in 0..5 {
        put(&mut log, &["a"]);
    }
    log.set_log_start_offset(4).unwrap();
    disk.overwrite(&path("00000000000000000000.log"), b"");
    let hint = OpenHint { log_start_offset: Some(4), ..OpenHint::default() };
    let (mut log, report) = open_as(&disk.kill(), small(1 << 20), hint);
    assert_eq!((log.log_start_offset(), report.log_end_offset), (4, 4));
    assert_eq!(put(&mut log, &["b"]), 4);
}

#[test]
fn a_clean_marker_over_a_torn_log_is_not_believed() {
    let disk = data_disk();
    let mut log = filled(&disk, small(300));
    log.close_clean(0).unwrap();
    let last = logs(&disk).pop().unwrap();
    let content = disk.content(&path(&last)).unwrap();
    disk.overwrite(&path(&last), &content[..content.len() - 1]);
    let (log, report) = open_as(&disk, small(300), clean());
    assert_eq!((log.log_end_offset(), report.segments_scanned), (18, 1));
}

#[test]
fn kafkas_own_files_open() {
    // Producer id 0, epoch 0 of the golden snapshot has its last batch at 14975 to 15043.
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["a"]);
    log.close_clean(0).unwrap();
    // Kafka preallocates the indexes of the active segment and leaves them so when killed.
    for (name, len) in [("index", 10_485_760), ("timeindex", 10_485_756)] {
        let name = path(&format!("00000000000000000000.{name}"));
        let mut content = disk.content(&name).unwrap();
        content.resize(len, 0);
        disk.overwrite(&name, &content);
    }
    let (log, report) = open_as(&disk.kill(), small(1 << 20), OpenHint::default());
    assert_eq!((log.log_end_offset(), report.indexes_rebuilt), (1, 2));
    assert_eq!(values_from(&log.reader(), 0), ["a"]);
}

/// The disk after a clean stop, or after a power cut right behind a flush, and what is known of it.
fn left(disk: &MemDisk, log: &mut Log, shutdown: Shutdown) -> (MemDisk, OpenHint) {
    log.flush(0).unwrap();
    let recovery_point = Some(log.recovery_point());
    if shutdown == Shutdown::Clean {
        log.close_clean(0).unwrap();
    }
    let hint = OpenHint { shutdown, recovery_point, ..OpenHint::default() };
    (disk.crash(Crash::ForgetUnsynced), hint)
}

#[test]
fn a_roll_that_fails_at_any_call_costs_nothing_that_is_synced_later() {
    for (fault, shutdown) in [
        (Fault::Io, Shutdown::Clean),
        (Fault::Io, Shutdown::Unclean),
        (Fault::Full, Shutdown::Clean),
        (Fault::Full, Shutdown::Unclean),
    ] {
        for at in 0.. {
            let disk = data_disk();
            let mut log = open(&disk, small(1 << 20));
            put(&mut log, &["a"]);
            put(&mut log, &["b"]);
            disk.fail_operation(disk.operations() + at, fault);
            let rolled = log.roll(0);
            disk.clear_faults();
            put(&mut log, &["c"]);
            put(&mut log, &["d"]);
            let expected = read_from(&log.reader(), 0);
            assert_eq!(expected.len(), 4);
            let (disk, hint) = left(&disk, &mut log, shutdown);
            let mut log = open_as(&disk, small(1 << 20), hint).0;
            assert_eq!(log.log_end_offset(), 4, "{fault:?} at call {at}, {shutdown:?}");
            assert_eq!(read_from(&log.reader(), 0), expected);
            assert_eq!(put(&mut log, &["e"]), 4);
            if rolled.is_ok() {
                assert!(at > 4, "it has that many calls");
                break;
            }
        }
    }
}

#[test]
fn what_a_failed_roll_left_behind_hides_no_record() {
    for stray in [1, 4, 9, 13, 19] {
        let disk = data_disk();
        let mut log = filled(&disk, small(300));
        let records = read_from(&log.reader(), 0);
        let bases: Vec<i64> = log.segments.iter().map(|segment| segment.base_offset).collect();
        assert!(!bases.contains(&stray));
        log.close_clean(0).unwrap();
        let hints = (0..=20).map(unclean).chain([clean(), OpenHint::default()]);
        for hint in hints {
            let disk = disk.kill();
            disk.overwrite(&path(&format!("{stray:020}.log")), b"");
            let (log, report) = open_as(&disk, uncached(small(300)), hint);
            assert_eq!(read_from(&log.reader(), 0), records, "{stray} {hint:?} {report:?}");
            for offset in 0..20 {
                assert!(read_from(&log.reader(), offset)[0].0 <= offset, "{stray} {offset}");
            }
            assert_eq!(logs(&disk).len(), bases.len(), "it is gone");
        }
    }
}

#[test]
fn an_empty_last_segment_that_continues_the_log_stays() {
    for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
        let disk = data_disk();
        let mut log = filled(&disk, small(300));
        log.roll(0).unwrap();
        let count = log.reader().segment_count();
        let (disk, hint) = left(&disk, &mut log, shutdown);
        let (log, report) = open_as(&disk, small(300), hint);
        assert_eq!((log.reader().segment_count(), report.segments_dropped), (count, 0));
        assert_eq!(log.log_end_offset(), 20);
    }
}

#[test]
fn a_segment_that_overlaps_a_synced_one_is_dropped_and_the_synced_one_kept() {
    let disk = data_disk();
    let mut log = filled(&disk, small(300));
    let records = read_from(&log.reader(), 0);
    let bases: Vec<i64> = log.segments.iter().map(|segment| segment.base_offset).collect();
    log.flush(0).unwrap();
    let last = disk.content(&path(&format!("{:020}.log", bases[bases.len() - 1]))).unwrap();
    for base in bases.iter().map(|base| base + 1) {
        let disk = disk.kill();
        disk.overwrite(&path(&format!("{base:020}.log")), &last);
        let (log, report) = open_as(&disk, small(300), unclean(20));
        let found = read_from(&log.reader(), 0);
        assert!(found == records || base > bases[bases.len() - 1], "{base} {report:?}");
        assert!(records.starts_with(&found));
    }
}

/// A base offset is outside its batch's CRC. One beyond what a segment can hold was passed for whole behind damage and refused as the
/// next batch, over and over.
#[test]
fn a_batch_behind_damage_that_claims_an_offset_of_no_segment_is_damage_too() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    for value in ["a", "b", "c"] {
        put(&mut log, &[value]);
    }
    log.flush(0).unwrap();
    let name = "00000000000000000000.log";
    let mut content = disk.content(&path(name)).unwrap();
    let size = content.len() / 3;
    content[2 * size - 1] ^= 1;
    content[2 * size + 1] = 1;
    let disk = disk.kill();
    disk.overwrite(&path(name), &content);
    let hint = OpenHint { proven_end: 3, ..unclean(0) };
    let (log, report) = open_as(&disk, uncached(small(1 << 20)), hint);
    assert_eq!(report.damage.len(), 1);
    assert_eq!((report.damage[0].from, report.damage[0].to), (1, 3));
    assert_eq!(values_from(&log.reader(), 0), ["a"]);
    assert_eq!(log.log_end_offset(), 3);
}
