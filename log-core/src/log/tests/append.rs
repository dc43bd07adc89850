use super::*;
use crate::record::Batch;
use crate::testing::mem_disk::Fault;

#[test]
fn offsets_and_epoch_are_written_and_nothing_else() {
    let mut log = open(&data_disk(), small(4096));
    let sent = plain(&["a", "b", "c"]);
    let before = sent.bytes.to_vec();
    put(&mut log, &["z"]);
    let appended = append(&mut log, sent).unwrap();
    assert_eq!((appended.base_offset, appended.last_offset), (1, 3));
    assert_eq!((appended.append_time_ms, appended.novelty), (-1, Novelty::New));
    let read = log.reader().read(1, 9999, 99, ReadMinimum::OneBatch).unwrap();
    let stored = Batch::parse(&read.pieces[0]).unwrap();
    stored.verify_crc().unwrap();
    assert_eq!(stored.header().base_offset, 1);
    assert_eq!(stored.header().partition_leader_epoch, EPOCH);
    assert_eq!(stored.bytes()[16..], before[16..]);
}

#[test]
fn gathered_batches_are_one_write_and_a_refused_one_disturbs_none() {
    let disk = data_disk();
    let mut log = open(&disk, small(4096));
    put(&mut log, &["first"]);
    let before = disk.operations();
    let answers = log.append_as_leader(
        vec![
            sequenced((1, 0), 0, &["a", "b"]),
            sequenced((1, 0), 5, &["gap"]),
            plain(&["c"]),
            sequenced((1, 0), 0, &["a", "b"]),
            AppendBatch { bytes: BytesMut::from(&b"no batch"[..]), origin: AppendOrigin::Client },
            marker((1, 0), TransactionOutcome::Commit),
            sequenced((1, 0), 2, &["d"]),
        ],
        EPOCH,
        5000,
    );
    assert_eq!(disk.operations() - before, 1, "one write");
    let offsets: Vec<_> = answers.iter().map(|a| a.as_ref().ok().map(|a| a.base_offset)).collect();
    assert_eq!(offsets, [Some(1), None, Some(3), Some(1), None, Some(4), Some(5)]);
    assert!(matches!(answers[1], Err(LogError::OutOfOrderSequence { expected: 2, .. })));
    assert_eq!(answers[3].as_ref().unwrap().novelty, Novelty::Duplicate);
    assert!(matches!(answers[4], Err(LogError::InvalidBatch(_))));
    assert_eq!(log.log_end_offset(), 6);
    let values = values_from(&log.reader(), 0);
    assert_eq!(&values[..4], ["first", "a", "b", "c"]);
    assert_eq!(values[5], "d");
}

#[test]
fn append_time_is_told_under_log_append_time_only() {
    let mut log = open(&data_disk(), small(4096));
    let params = BatchParams { append_time: Some(777), ..BatchParams::default() };
    let bytes = batch_of(params, &[(1, "x")]);
    let appended = append(&mut log, AppendBatch { bytes, origin: AppendOrigin::Client }).unwrap();
    assert_eq!(appended.append_time_ms, 777);
    put(&mut log, &["y"]);
    let first = sequenced((1, 0), 0, &["p"]);
    let again = AppendBatch { bytes: first.bytes.clone(), origin: AppendOrigin::Client };
    append(&mut log, first).unwrap();
    assert_eq!(append(&mut log, again).unwrap().append_time_ms, 1000, "the batch's own");
}

#[test]
fn an_older_leader_is_fenced() {
    let mut log = open(&data_disk(), small(4096));
    put(&mut log, &["a"]);
    let mut by = |epoch| log.append_as_leader(vec![plain(&["b"])], LeaderEpoch(epoch), 0).remove(0);
    assert!(matches!(by(2), Err(LogError::FencedLeaderEpoch { incoming: 2, current: 3 })));
    assert_eq!(by(5).unwrap().base_offset, 1);
    assert!(matches!(by(3), Err(LogError::FencedLeaderEpoch { incoming: 3, current: 5 })));
    let entries: Vec<_> = log
        .reader()
        .leader_epochs()
        .entries()
        .iter()
        .map(|entry| (entry.epoch.0, entry.start_offset.0))
        .collect();
    assert_eq!(entries, [(3, 0), (5, 1)]);
}

#[test]
fn a_client_cannot_write_markers() {
    let mut log = open(&data_disk(), small(4096));
    let forged =
        AppendBatch { origin: AppendOrigin::Client, ..marker((1, 0), TransactionOutcome::Commit) };
    assert!(matches!(append(&mut log, forged), Err(LogError::InvalidBatch(_))));
    assert_eq!(log.log_end_offset(), 0);
}

#[test]
fn transactions_bound_the_stable_offset_and_aborted_ones_are_listed() {
    let disk = data_disk();
    let mut log = open(&disk, small(4096));
    let txn =
        |sequence, value: &str| of_producer((1, 0), sequence, BatchKind::Transactional, &[value]);
    append(&mut log, txn(0, "a")).unwrap();
    put(&mut log, &["plain"]);
    assert_eq!(log.first_unstable_offset(), Some(0));
    append(&mut log, marker((1, 0), TransactionOutcome::Abort)).unwrap();
    log.high_watermark_moved(3);
    assert_eq!(log.first_unstable_offset(), None);
    append(&mut log, txn(1, "b")).unwrap();
    append(&mut log, marker((1, 0), TransactionOutcome::Commit)).unwrap();
    log.high_watermark_moved(5);
    let expected =
        AbortedTxn { producer_id: 1, first_offset: 0, last_offset: 2, last_stable_offset: 3 };
    assert_eq!(log.reader().aborted_transactions(0, 5).unwrap(), [expected]);
    assert_eq!(log.reader().aborted_transactions(3, 5).unwrap(), []);
    log.roll(0).unwrap();
    assert_eq!(log.reader().aborted_transactions(1, 2).unwrap(), [expected], "from the file");
    assert!(names(&disk).contains(&"00000000000000000000.txnindex".to_owned()));
}

#[test]
fn a_full_disk_refuses_and_recovers_without_a_trace() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    append(&mut log, sequenced((1, 0), 0, &["kept"])).unwrap();
    let used = disk.used_bytes();
    disk.set_capacity(Some(used + 100));
    let answers = log.append_as_leader(
        vec![
            sequenced((1, 0), 1, &["refused"]),
            plain(&["refused too"]),
            sequenced((1, 0), 1, &["refused"]),
            sequenced((2, 0), 9, &["refused"]),
        ],
        EPOCH,
        0,
    );
    for answer in &answers {
        assert!(matches!(answer, Err(LogError::StorageFull(_))), "{answer:?}");
    }
    assert_eq!(disk.used_bytes(), used, "the part that was written is cut off");
    assert_eq!((log.log_end_offset(), log.producers().iter().count()), (1, 1));
    assert_eq!(values_from(&log.reader(), 0), ["kept"]);
    disk.set_capacity(None);
    assert_eq!(append(&mut log, sequenced((1, 0), 1, &["now"])).unwrap().base_offset, 1);
    assert_eq!(values_from(&log.reader(), 0), ["kept", "now"]);
}

#[test]
fn a_device_that_fails_once_is_survived_and_one_that_cannot_be_cut_closes_the_log() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["kept"]);
    disk.fail_operation(disk.operations(), Fault::Io);
    assert!(matches!(append(&mut log, plain(&["x"])), Err(LogError::Storage(_))));
    assert_eq!(put(&mut log, &["y"]), 1);
    disk.fail_operation(disk.operations(), Fault::Io);
    disk.fail_operation(disk.operations() + 1, Fault::Io);
    assert!(append(&mut log, plain(&["x"])).is_err());
    assert!(matches!(append(&mut log, plain(&["z"])), Err(LogError::Storage(_))));
    assert_eq!(values_from(&log.reader(), 0), ["kept", "y"], "reads go on");
    let mut log = open(&disk.kill(), small(1 << 20));
    assert_eq!(values_from(&log.reader(), 0), ["kept", "y"]);
    assert_eq!(put(&mut log, &["z"]), 2);
}

#[test]
fn without_a_descriptor_an_append_is_refused_and_the_next_one_is_not() {
    let disk = MemDisk::new();
    let mut log = open(&disk, small(1 << 20));
    put(&mut log, &["kept"]);
    // A log that could not even cut its file back would refuse everything from then on.
    disk.fail_operation(disk.operations(), Fault::OutOfFiles);
    disk.fail_operation(disk.operations() + 1, Fault::OutOfFiles);
    for _ in 0..2 {
        let refused = append(&mut log, sequenced((1, 0), 0, &["refused"]));
        assert!(matches!(refused, Err(LogError::OutOfFiles(_))), "{refused:?}");
    }
    assert_eq!(append(&mut log, sequenced((1, 0), 0, &["now"])).unwrap().base_offset, 1);
    // What waits for the disk is asked for again.
    let point = log.flush_point().unwrap().unwrap();
    disk.fail_operation(disk.operations(), Fault::OutOfFiles);
    assert!(point.sync().unwrap_err().is_retriable());
    log.flush(0).unwrap();
    assert_eq!((log.recovery_point(), log.log_end_offset()), (2, 2));
    assert_eq!(values_from(&log.reader(), 0), ["kept", "now"]);
}

#[test]
fn a_full_disk_at_a_roll_refuses_and_recovers() {
    let disk = data_disk();
    let mut log = open(&disk, small(200));
    let value = "v".repeat(50);
    put(&mut log, &[&value]);
    for attempt in 0..12 {
        // Each call of the roll fails once.
        disk.fail_operation(disk.operations() + attempt, Fault::Full);
        let appended = append(&mut log, plain(&[&value]));
        let refused = matches!(appended, Err(LogError::StorageFull(_)));
        assert!(refused || appended.is_ok());
        disk.clear_faults();
        let held = values_from(&log.reader(), 0).len() as i64;
        assert_eq!(log.log_end_offset(), held, "{attempt}");
        put(&mut log, &[&value]);
    }
    let disk = disk.kill();
    let end = log.log_end_offset();
    let log = open(&disk, small(200));
    assert_eq!(log.log_end_offset(), end);
    assert_eq!(values_from(&log.reader(), 0).len() as i64, end);
}

#[test]
fn segments_roll_by_size_with_their_batches_whole() {
    let disk = data_disk();
    let mut log = open(&disk, small(300));
    for i in 0..20_i64 {
        assert_eq!(put(&mut log, &["0123456789", "0123456789"]), 2 * i);
    }
    assert!(log.reader().segment_count() > 5);
    for name in logs(&disk) {
        assert!(disk.content(&Path::new(DIR).join(name)).unwrap().len() <= 300);
    }
    assert_eq!(read_from(&log.reader(), 0).len(), 40);
    assert_eq!(values_from(&log.reader(), 33).len(), 8, "from the batch that holds it");
    let huge = "h".repeat(300);
    assert!(matches!(
        append(&mut log, plain(&[&huge])),
        Err(LogError::BatchLargerThanSegment { maximum: 300, .. })
    ));
}

#[test]
fn segments_roll_by_record_time_or_the_clock() {
    let config = LogConfig { segment_ms: 1000, ..small(1 << 20) };
    let mut log = open(&data_disk(), config);
    for (timestamp, segments) in [(5000, 1), (6000, 1), (6001, 2), (6500, 2), (1, 2), (7002, 3)] {
        append(&mut log, timed(&[(timestamp, "x")])).unwrap();
        assert_eq!(log.reader().segment_count(), segments, "{timestamp}");
    }
    let mut log = open(&data_disk(), LogConfig { segment_ms: 1000, ..small(1 << 20) });
    for (now_ms, segments) in [(0, 1), (1000, 1), (1001, 2), (1500, 2)] {
        log.append_as_leader(vec![timed(&[(-1, "x")])], EPOCH, now_ms).remove(0).unwrap();
        assert_eq!(log.reader().segment_count(), segments, "{now_ms}");
    }
}

#[test]
fn an_empty_active_segment_does_not_roll_and_no_base_offset_repeats() {
    // Case B78.
    let disk = data_disk();
    let config = LogConfig { segment_ms: 1000, ..small(1 << 20) };
    let mut log = open(&disk, config.clone());
    let write = |log: &mut Log, now_ms| {
        let batch = timed(&[(now_ms, "x")]);
        log.append_as_leader(vec![batch], EPOCH, now_ms).remove(0).unwrap().base_offset
    };
    assert!(!log.roll_if_due(5000).unwrap());
    log.roll(5000).unwrap();
    assert_eq!(write(&mut log, 6000), 0);
    assert!(!log.roll_if_due(6500).unwrap());
    assert!(log.roll_if_due(11_000).unwrap());
    log.roll(20_000).unwrap();
    assert_eq!(logs(&disk), ["00000000000000000000.log", "00000000000000000001.log"]);
    assert_eq!(write(&mut log, 30_000), 1);
    log.set_log_start_offset(2).unwrap();
    log.roll(40_000).unwrap();
    log.apply_retention(2, 40_000).unwrap();
    log.remove_deleted(i64::MAX);
    assert_eq!(logs(&disk), ["00000000000000000002.log"]);
    let disk = disk.kill();
    let mut log = open_as(&disk, config, OpenHint { log_start_offset: Some(2), ..clean() }).0;
    log.roll(99_000).unwrap();
    assert_eq!(write(&mut log, 100_000), 2);
    assert_eq!(logs(&disk), ["00000000000000000002.log"]);
    assert_eq!(read_from(&log.reader(), 2).len(), 1);
}

#[test]
fn a_full_index_rolls_the_segment() {
    let config = LogConfig { segment_index_bytes: 48, ..small(1 << 20) };
    let mut log = open(&data_disk(), config);
    for _ in 0..20 {
        put(&mut log, &["x"]);
    }
    // Six offset entries fit, the first batch gets none; timestamps do not rise.
    assert_eq!(log.reader().segment_count(), 3);
    assert_eq!(read_from(&log.reader(), 0).len(), 20);
}

#[test]
fn a_follower_takes_offsets_and_epochs_as_they_come() {
    let mut leader = open(&data_disk(), small(300));
    let disk = data_disk();
    let mut follower = open(&disk, small(250));
    for i in 0..10 {
        append(&mut leader, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
    }
    let read = leader.reader().read(0, 9999, 99, ReadMinimum::OneBatch).unwrap();
    let batches: Vec<Bytes> = read
        .pieces
        .iter()
        .flat_map(|piece| SharedBatches::new(piece.clone()))
        .map(|batch| batch.unwrap().1)
        .collect();
    assert_eq!(follower.append_as_follower(batches.clone(), 0).unwrap(), 20);
    assert_eq!(read_from(&follower.reader(), 0), read_from(&leader.reader(), 0));
    assert_eq!(follower.producers(), leader.producers());
    assert_eq!(follower.latest_epoch(), Some(EPOCH));
    assert!(matches!(
        follower.append_as_follower(batches, 0),
        Err(LogError::UnexpectedAppendOffset { offset: 0, expected: 20 })
    ));
    assert_eq!(follower.log_end_offset(), 20);
}

#[test]
fn a_follower_may_be_given_offsets_with_gaps() {
    let at = |base_offset| {
        let params = BatchParams { base_offset, leader_epoch: EPOCH, ..BatchParams::default() };
        batch_of(params, &[(1000, "x")]).freeze()
    };
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    log.append_as_follower(vec![at(5), at(9), at(5 + (1 << 31))], 0).unwrap();
    assert_eq!(log.reader().segment_count(), 2, "an offset does not fit 31 bits any more");
    let offsets: Vec<_> = read_from(&log.reader(), 0).into_iter().map(|(o, _)| o).collect();
    assert_eq!(offsets, [5, 9, 5 + (1 << 31)]);
    assert_eq!(logs(&disk).len(), 2);
}

#[test]
fn no_sequence_means_no_duplicate_check() {
    let mut log = open(&data_disk(), small(1 << 20));
    put(&mut log, &["same"]);
    put(&mut log, &["same"]);
    assert_eq!(log.log_end_offset(), 2);
    assert_eq!(log.producers().iter().count(), 0);
    assert_eq!(NO_SEQUENCE, -1);
}
