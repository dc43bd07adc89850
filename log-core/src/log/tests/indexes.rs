use super::*;
use crate::testing::mem_disk::Crash;

/// What spoils an index file.
fn spoilings(content: &[u8]) -> Vec<Option<Vec<u8>>> {
    let padded = |bytes: usize| [content, &vec![0; bytes]].concat();
    vec![
        None,
        Some(Vec::new()),
        Some(padded(12)),
        Some(padded(8)),
        Some(padded(10 << 20)),
        Some(vec![0xFF; content.len().max(24)]),
        Some(vec![0; content.len().max(24)]),
        Some(content[..content.len().saturating_sub(3)].to_vec()),
    ]
}

fn answers(log: &Log) -> Vec<String> {
    let reader = log.reader();
    let mut answers = Vec::new();
    for offset in 0..=log.log_end_offset() {
        answers.push(format!("{:?}", read_from(&reader, offset)));
    }
    for time in 0..14 {
        answers.push(format!("{:?}", reader.offset_for_timestamp(time, 99).unwrap()));
    }
    answers.push(format!("{:?}", reader.max_timestamp(99).unwrap()));
    answers.push(format!("{:?}", reader.aborted_transactions(0, 99).unwrap()));
    answers.push(format!("{:?}", log.first_unstable_offset()));
    answers
}

#[test]
fn b75_spoilt_indexes_are_made_anew_and_nothing_is_lost_to_retention() {
    let disk = data_disk();
    let mut log = open(&disk, small(260));
    for time in 1..=12 {
        append(&mut log, timed(&[(time, "value")])).unwrap();
        if time % 4 == 0 {
            append(&mut log, of_producer((time, 0), 0, BatchKind::Transactional, &["t"])).unwrap();
            append(&mut log, marker((time, 0), TransactionOutcome::Abort)).unwrap();
        }
    }
    log.flush(0).unwrap();
    log.high_watermark_moved(99);
    let expected = answers(&log);
    assert!(expected.iter().any(|answer| answer.contains("AbortedTxn")));
    let end = log.log_end_offset();
    let files: Vec<String> =
        names(&disk).into_iter().filter(|name| name.ends_with("index")).collect();
    for suffix in [".index", ".timeindex", ".txnindex"] {
        for which in 0..8 {
            for hint in [unclean(end), OpenHint::default()] {
                let disk = disk.kill();
                for name in files.iter().filter(|name| name.ends_with(suffix)) {
                    let content = disk.content(&path(name)).unwrap();
                    match &spoilings(&content)[which] {
                        Some(spoilt) => disk.overwrite(&path(name), spoilt),
                        // A missing transaction index means that none was aborted: only a scan of
                        // its segment tells otherwise.
                        None if suffix == ".txnindex" && hint.recovery_point.is_some() => {}
                        None => disk.remove(&path(name)).unwrap(),
                    }
                }
                let config = LogConfig { retention_ms: 1000, ..uncached(small(260)) };
                let (mut log, report) = open_as(&disk, config, hint);
                log.high_watermark_moved(99);
                assert_eq!(answers(&log), expected, "{suffix} {which} {report:?}");
                let retained = log.apply_retention(end, 1001).unwrap();
                assert_eq!(retained.segments_deleted, 0, "{suffix} {which}");
            }
        }
    }
}

#[test]
fn a_sealed_index_that_is_spoilt_after_a_clean_stop_is_made_anew_when_first_used() {
    let disk = data_disk();
    let mut log = open(&disk, small(260));
    for time in 1..=12 {
        append(&mut log, timed(&[(time, "value")])).unwrap();
    }
    let expected = answers(&log);
    log.close_clean(0).unwrap();
    let name = "00000000000000000000.timeindex";
    let sound = disk.content(&path(name)).unwrap();
    for which in 0..8 {
        let disk = disk.kill();
        for name in [name, "00000000000000000000.index"] {
            let content = disk.content(&path(name)).unwrap();
            match &spoilings(&content)[which] {
                Some(spoilt) => disk.overwrite(&path(name), spoilt),
                None => disk.remove(&path(name)).unwrap(),
            }
        }
        let (log, report) = open_as(&disk, uncached(small(260)), clean());
        assert_eq!(report.segments_scanned, 0);
        assert_eq!(answers(&log), expected, "{which}");
        assert_eq!(disk.content(&path(name)).unwrap(), sound);
    }
}

/// A plain batch, and a transaction that ends in its abortion, at each of these times.
fn with_aborted(log: &mut Log, times: std::ops::RangeInclusive<i64>) {
    for time in times {
        append(log, timed(&[(time, "value")])).unwrap();
        append(log, of_producer((time, 0), 0, BatchKind::Transactional, &["t"])).unwrap();
        append(log, marker((time, 0), TransactionOutcome::Abort)).unwrap();
    }
}

#[test]
fn a_clean_stop_leaves_every_index_on_disk() {
    let disk = data_disk();
    let mut log = open(&disk, small(260));
    with_aborted(&mut log, 1..=4);
    log.flush(0).unwrap();
    log.high_watermark_moved(99);
    let expected = answers(&log);
    let written = |disk: &MemDisk| {
        let names = names(disk).into_iter().filter(|name| name.ends_with("index"));
        names.map(|name| (disk.content(&path(&name)), name)).collect::<Vec<_>>()
    };
    log.close_clean(0).unwrap();
    let before = written(&disk);
    let survived = disk.crash(Crash::ForgetUnsynced);
    assert_eq!(written(&survived), before);
    let (mut log, report) = open_as(&survived, uncached(small(260)), clean());
    log.high_watermark_moved(99);
    assert_eq!((report.segments_scanned, report.indexes_rebuilt), (0, 0));
    assert_eq!(answers(&log), expected);
}

/// The recovery point then stands at the base of a segment whose predecessor's indexes were never synced.
#[test]
fn a_segment_sealed_where_a_flush_ended_is_read_right_after_a_power_cut() {
    let ways = (0..200).map(Crash::Seeded).chain([Crash::ForgetUnsynced]);
    for how in ways {
        let disk = data_disk();
        let mut log = open(&disk, small(1 << 20));
        with_aborted(&mut log, 1..=4);
        log.flush(0).unwrap();
        log.high_watermark_moved(99);
        let expected = answers(&log);
        let recovery_point = log.recovery_point();
        log.roll(0).unwrap();
        let disk = disk.crash(how);
        let (mut log, report) = open_as(&disk, uncached(small(1 << 20)), unclean(recovery_point));
        log.high_watermark_moved(99);
        assert_eq!(answers(&log), expected, "{how:?} {report:?}");
    }
}

/// One segment of so many batches, each with its offset for its time.
fn sealed_where_a_flush_ended(batches: i64) -> MemDisk {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    for time in 0..batches {
        append(&mut log, timed(&[(time, "value")])).unwrap();
    }
    log.flush(0).unwrap();
    log.roll(0).unwrap();
    disk
}

/// Of several writes into an index, any may be lost before one that was kept.
#[test]
fn a_long_index_with_holes_is_made_anew() {
    let batches = 1_400;
    let disk = sealed_where_a_flush_ended(batches);
    for seed in 0..40 {
        let disk = disk.crash(Crash::Seeded(seed));
        let log = open_as(&disk, uncached(small(1 << 20)), unclean(batches)).0;
        let reader = log.reader();
        for offset in (0..batches).step_by(97) {
            let read = reader.read(offset, 1, batches, ReadMinimum::OneBatch).unwrap();
            assert_eq!(records_of(&read.pieces), [(offset, "value".to_owned())], "seed {seed}");
            let found = reader.offset_for_timestamp(offset, batches).unwrap();
            assert_eq!(found.map(|found| found.offset), Some(offset), "seed {seed}");
        }
    }
}

/// The entries that a roll writes may be lost, those before be whole: only the batches tell.
#[test]
fn a_time_index_without_its_newest_entries_is_made_anew() {
    let batches = 40;
    let disk = sealed_where_a_flush_ended(batches);
    let name = "00000000000000000000.timeindex";
    let whole = disk.content(&path(name)).unwrap();
    for kept in 1..whole.len() / 12 {
        let disk = disk.kill();
        disk.overwrite(&path(name), &whole[..kept * 12]);
        let (log, report) = open_as(&disk, uncached(small(1 << 20)), unclean(batches));
        let found = log.reader().offset_for_timestamp(batches - 1, batches).unwrap();
        assert_eq!(found.map(|found| found.offset), Some(batches - 1), "{kept}");
        assert_eq!(report.indexes_rebuilt, 1, "{kept}");
        assert_eq!(disk.content(&path(name)).unwrap(), whole);
    }
}

#[test]
fn what_is_made_anew_of_a_trusted_segment_is_synced_by_the_next_flush() {
    let disk = data_disk();
    let mut log = open(&disk, small(260));
    with_aborted(&mut log, 1..=4);
    log.flush(0).unwrap();
    let end = log.log_end_offset();
    let index_names = |disk: &MemDisk| {
        let sealed =
            |name: &String| name.ends_with("index") && !name.contains(&format!("{end:020}"));
        names(disk).into_iter().filter(sealed).collect::<Vec<_>>()
    };
    log.roll(0).unwrap();
    log.flush(0).unwrap();
    let sound: Vec<_> =
        index_names(&disk).into_iter().map(|name| (disk.content(&path(&name)), name)).collect();
    let disk = disk.kill();
    for (_, name) in &sound {
        disk.overwrite(&path(name), &[0xFF; 7]);
    }
    let mut log = open_as(&disk, uncached(small(260)), unclean(end)).0;
    log.flush(0).unwrap();
    let disk = disk.crash(Crash::ForgetUnsynced);
    for (content, name) in sound {
        assert_eq!(disk.content(&path(&name)), content, "{name}");
    }
}

/// Nobody flushes for a reader.
#[test]
fn what_a_reader_had_made_anew_outlives_a_power_cut() {
    let batches = 40;
    let disk = sealed_where_a_flush_ended(batches);
    let name = "00000000000000000000.timeindex";
    let mut log = open_as(&disk.kill(), small(1 << 20), unclean(batches)).0;
    log.flush(0).unwrap();
    let disk = disk.kill();
    let sound = disk.content(&path(name)).unwrap();
    disk.overwrite(&path(name), &[0xFF; 7]);
    let log = open_as(&disk, uncached(small(1 << 20)), clean()).0;
    log.reader().offset_for_timestamp(batches - 1, batches).unwrap();
    let survived = disk.crash(Crash::ForgetUnsynced);
    assert_eq!(survived.content(&path(name)).unwrap(), sound);
}
