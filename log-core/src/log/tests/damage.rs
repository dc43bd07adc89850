//! Damage at rest: what was on disk is never cut off, and never lost without a word.

use super::*;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_BYTES;
use crate::testing::mem_disk::{Crash, Fault};

const LOG: &str = "00000000000000000000.log";
const OFFSETS: i64 = 20;

/// Few index entries and nothing in memory.
fn config() -> LogConfig {
    uncached(LogConfig::default())
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(DIR).join(name)
}

/// Ten batches of two records in one segment, cleanly stopped; the file, and where each batch begins.
fn stopped(disk: &MemDisk) -> (Vec<u8>, Vec<usize>) {
    let mut log = open(disk, config());
    for i in 0..10 {
        append(&mut log, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
    }
    log.close_clean(0).unwrap();
    let content = disk.content(&path(LOG)).unwrap();
    let mut starts = vec![0];
    while let Some(header) = content.get(starts[starts.len() - 1]..).filter(|rest| !rest.is_empty())
    {
        let size = BatchHeader::parse(header).unwrap().size_in_bytes();
        starts.push(starts[starts.len() - 1] + size);
    }
    (content, starts)
}

fn known(shutdown: Shutdown) -> OpenHint {
    let (recovery_point, proven_end) = (Some(OFFSETS), OFFSETS);
    OpenHint { shutdown, recovery_point, proven_end, ..OpenHint::default() }
}

/// All records from `offset` on that can be read.
fn readable_from(reader: &LogReader, offset: i64) -> Vec<i64> {
    let mut found = Vec::new();
    let mut next = offset;
    while let Ok(read) = reader.read(next, 1 << 20, i64::MAX, ReadMinimum::OneBatch)
        && read.next_offset > next
    {
        found.extend(records_of(&read.pieces).into_iter().map(|(offset, _)| offset));
        next = read.next_offset;
    }
    found
}

#[test]
fn nothing_below_the_recovery_point_is_cut_off_and_what_is_damaged_is_told() {
    let whole = data_disk();
    let (content, starts) = stopped(&whole);
    let (at, behind) = (starts[5], starts[6]);
    type Spoil = (&'static str, fn(&mut [u8]));
    let damages: [Spoil; 6] = [
        ("magic", |batch| batch[16] ^= 0x09),
        ("length + 1", |batch| batch[11] += 1),
        ("length 0", |batch| batch[8..12].fill(0)),
        ("length negative", |batch| batch[8..12].fill(0xff)),
        ("header", |batch| batch[..HEADER_BYTES].fill(0)),
        ("all", |batch| batch.fill(0)),
    ];
    for (name, spoil) in damages {
        for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
            let disk = whole.kill();
            let mut spoilt = content.clone();
            spoil(&mut spoilt[at..behind]);
            disk.overwrite(&path(LOG), &spoilt);
            let (mut log, report) = open_as(&disk, config(), known(shutdown));
            assert_eq!(disk.content(&path(LOG)).unwrap(), spoilt, "{name}: the file is untouched");
            assert_eq!(log.log_end_offset(), OFFSETS, "{name} {shutdown:?}");
            let expected = Damage {
                from: 10,
                to: 12,
                segment: 0,
                position: at as u64,
                bytes: (behind - at) as u64,
                set_aside: None,
            };
            assert_eq!(report.damage, [expected], "{name} {shutdown:?}");
            assert_eq!((report.bytes_truncated, report.segments_dropped), (0, 0));
            let reader = log.reader();
            // With a header that can be read it is handed over, for clients to check its CRC.
            if name != "length + 1" {
                assert_eq!(readable_from(&reader, 0), (0..10).collect::<Vec<_>>(), "{name}");
                for offset in [10, 11] {
                    let refused = reader.read(offset, 99, i64::MAX, ReadMinimum::OneBatch);
                    assert!(
                        matches!(refused, Err(LogError::Corrupt { .. })),
                        "{name}: {refused:?}"
                    );
                }
            }
            for offset in [12, 13, 14, 19] {
                let all = readable_from(&reader, offset);
                assert_eq!(all, (offset / 2 * 2..20).collect::<Vec<_>>(), "{name}");
            }
            assert_eq!(put(&mut log, &["next"]), OFFSETS);
            assert_eq!(readable_from(&reader, 20), [20]);
            // The next clean start believes the indexes, which lead behind the damage.
            log.close_clean(0).unwrap();
            let hint = OpenHint { recovery_point: Some(21), proven_end: 21, ..clean() };
            let (log, report) = open_as(&disk.kill(), config(), hint);
            assert_eq!((report.segments_scanned, log.log_end_offset()), (0, 21), "{name}");
            assert_eq!(readable_from(&log.reader(), 12), (12..21).collect::<Vec<_>>(), "{name}");
        }
    }
}

#[test]
fn a_log_that_ends_early_after_a_clean_stop_goes_on_where_it_had_ended() {
    let whole = data_disk();
    let (content, starts) = stopped(&whole);
    let rows: [(&str, Vec<u8>, i64); 4] = [
        ("cut between batches", content[..starts[7]].to_vec(), 14),
        ("cut inside a batch", content[..starts[7] + 9].to_vec(), 14),
        ("emptied", Vec::new(), 0),
        ("zeros at the end", [&content[..starts[7]], &[0; 999]].concat(), 14),
    ];
    for (name, kept, from) in rows {
        let disk = whole.kill();
        disk.overwrite(&path(LOG), &kept);
        let (mut log, report) = open_as(&disk, config(), known(Shutdown::Clean));
        let [damage] = &report.damage[..] else { panic!("{name}: {:?}", report.damage) };
        assert_eq!((damage.from, damage.to), (from, OFFSETS), "{name}");
        let rest = &kept[damage.position as usize..];
        let set_aside = damage.set_aside.as_ref().map(|file| disk.content(file).unwrap());
        assert_eq!(set_aside.unwrap_or_default(), rest, "{name}: what is cut off is set aside");
        assert_eq!(log.log_end_offset(), OFFSETS, "{name}: no offset is given twice");
        assert_eq!(readable_from(&log.reader(), 0), (0..from).collect::<Vec<_>>(), "{name}");
        assert_eq!(put(&mut log, &["next"]), OFFSETS);
        assert_eq!(readable_from(&log.reader(), from), [OFFSETS], "{name}");
    }
    let disk = whole.kill();
    disk.remove(&path(LOG)).unwrap();
    let (log, report) = open_as(&disk, config(), known(Shutdown::Clean));
    assert_eq!((report.damage[0].from, report.damage[0].to), (0, OFFSETS));
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (OFFSETS, OFFSETS));
}

#[test]
fn a_log_that_must_be_whole_is_refused_and_left_as_it_is() {
    let whole = data_disk();
    let (content, starts) = stopped(&whole);
    let mut spoilt = content.clone();
    spoilt[starts[5]..starts[6]].fill(0);
    let rows = [Some(&spoilt[..]), Some(&content[..starts[7]]), Some(&[]), None];
    for kept in rows {
        for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
            let disk = whole.kill();
            match kept {
                Some(kept) => disk.overwrite(&path(LOG), kept),
                None => disk.remove(&path(LOG)).unwrap(),
            }
            let hint = OpenHint { on_loss: OnLoss::Refuse, ..known(shutdown) };
            let open = |hint| {
                let shared: Arc<dyn Disk> = Arc::new(disk.clone());
                let config = Arc::new(config());
                Log::open(shared, Path::new(DIR), identity(), config, hint, 0).map(drop)
            };
            for _ in 0..2 {
                assert!(matches!(open(hint), Err(LogError::Corrupt { .. })), "{shutdown:?}");
                assert_eq!(disk.content(&path(LOG)).as_deref(), kept);
            }
            // Without the proof it is opened.
            assert!(open(OpenHint { proven_end: 0, ..hint }).is_ok());
        }
    }
}

#[test]
fn the_good_batches_before_damage_are_given_first() {
    let whole = data_disk();
    let (content, starts) = stopped(&whole);
    type Spoil = fn(&mut [u8]);
    let damages: [Spoil; 3] = [
        |batch| batch[16] = 9,
        |batch| batch[8..12].fill(0xff),
        // A base offset far above the log end.
        |batch| batch[2] = 1,
    ];
    for spoil in damages {
        let disk = data_disk();
        let mut log = open(&disk, config());
        for i in 0..10 {
            append(&mut log, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
        }
        let mut spoilt = content.clone();
        spoil(&mut spoilt[starts[5]..starts[6]]);
        disk.overwrite(&path(LOG), &spoilt);
        let read = log.reader().read(0, 1 << 20, i64::MAX, ReadMinimum::OneBatch).unwrap();
        assert_eq!(read.next_offset, 10);
        let refused = log.reader().read(10, 1 << 20, i64::MAX, ReadMinimum::OneBatch);
        assert!(matches!(refused, Err(LogError::Corrupt { offset: 10, .. })), "{refused:?}");
    }
}

#[test]
fn a_damaged_offset_in_an_old_segment_drops_no_later_one() {
    let disk = data_disk();
    let mut log = open(&disk, uncached(small(300)));
    for i in 0..10 {
        append(&mut log, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
    }
    log.flush(0).unwrap();
    let (end, segments) = (log.log_end_offset(), log.segments.len());
    let content = disk.content(&path(LOG)).unwrap();
    let size = BatchHeader::parse(&content).unwrap().size_in_bytes();
    let mut spoilt = content.clone();
    let last = content.len() - size;
    spoilt[last + 2] = 1;
    for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
        let disk = disk.crash(Crash::ForgetUnsynced);
        disk.overwrite(&path(LOG), &spoilt);
        let hint = OpenHint {
            shutdown,
            recovery_point: Some(end),
            proven_end: end,
            ..OpenHint::default()
        };
        let (log, report) = open_as(&disk, uncached(small(300)), hint);
        assert_eq!((log.log_end_offset(), log.segments.len()), (end, segments), "{shutdown:?}");
        assert_eq!(report.segments_dropped, 0);
    }
}

/// Ten batches of two records over several segments, cleanly stopped; the segments' base offsets.
fn synced_segments(disk: &MemDisk) -> Vec<i64> {
    let mut log = open(disk, uncached(small(300)));
    for i in 0..10 {
        append(&mut log, sequenced((1, 0), 2 * i, &["left", "right"])).unwrap();
    }
    log.close_clean(0).unwrap();
    log.segments.iter().map(|segment| segment.base_offset).collect()
}

#[test]
fn behind_a_missing_segment_all_that_was_synced_is_kept_and_readers_step_over() {
    let whole = data_disk();
    let bases = synced_segments(&whole);
    assert!(bases.len() >= 4, "{bases:?}");
    let config = || uncached(small(300));
    for missing in 1..bases.len() - 1 {
        let (from, to) = (bases[missing], bases[missing + 1]);
        for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
            let disk = whole.kill();
            disk.remove(&path(&format!("{from:020}.log"))).unwrap();
            let (mut log, report) = open_as(&disk, config(), known(shutdown));
            assert_eq!((log.log_end_offset(), report.segments_dropped), (OFFSETS, 0), "{from}");
            let lost: Vec<_> = report.damage.iter().map(|one| (one.from, one.to)).collect();
            assert_eq!(lost, [(from, to)], "{from} {shutdown:?}");
            let reader = log.reader();
            for offset in 0..OFFSETS {
                let first = if (from..to).contains(&offset) { to } else { offset / 2 * 2 };
                let rest = (first..OFFSETS).filter(|found| !(from..to).contains(found));
                assert_eq!(readable_from(&reader, offset), rest.collect::<Vec<_>>(), "{offset}");
                for end in offset + 1..=OFFSETS {
                    for minimum in [ReadMinimum::OneBatch, ReadMinimum::Nothing] {
                        let read = reader.read(offset, 1 << 20, end, minimum).unwrap();
                        assert!((offset..=OFFSETS).contains(&read.next_offset), "{offset} {end}");
                    }
                }
                reader.tags(offset, OFFSETS, &|_| None).unwrap();
                reader.offset_for_timestamp(offset, OFFSETS).unwrap();
            }
            assert_eq!(put(&mut log, &["next"]), OFFSETS);
            let next = append(&mut log, sequenced((1, 0), 20, &["producers are whole"])).unwrap();
            assert_eq!(next.novelty, Novelty::New);
            log.truncate_to(from + 1, 0).unwrap();
            assert!(log.log_end_offset() <= from, "cut in the gap");
            put(&mut log, &["x"]);
        }
    }
}

#[test]
fn a_log_that_must_be_whole_is_refused_when_a_segment_is_missing() {
    let disk = data_disk();
    let bases = synced_segments(&disk);
    disk.remove(&path(&format!("{:020}.log", bases[1]))).unwrap();
    let hint = OpenHint { on_loss: OnLoss::Refuse, ..known(Shutdown::Unclean) };
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let refused = Log::open(shared, Path::new(DIR), identity(), Arc::new(small(300)), hint, 0);
    assert!(matches!(refused, Err(LogError::Corrupt { offset, .. }) if offset == bases[1]));
}

#[test]
fn behind_a_gap_above_the_recovery_point_nothing_is_kept() {
    let disk = data_disk();
    let bases = synced_segments(&disk);
    disk.remove(&path(&format!("{:020}.log", bases[2]))).unwrap();
    let hint = OpenHint { recovery_point: Some(bases[1]), ..OpenHint::default() };
    let (log, report) = open_as(&disk, small(300), hint);
    assert_eq!(log.log_end_offset(), bases[2], "the log ends where the gap begins");
    assert_eq!(report.segments_dropped, bases.len() - 3);
}

/// After an unclean stop: all of it was on disk but for what the last segment holds.
fn flushed_to_last(bases: &[i64]) -> OpenHint {
    let recovery_point = bases[bases.len() - 1];
    OpenHint {
        recovery_point: Some(recovery_point),
        proven_end: recovery_point,
        high_watermark: OFFSETS,
        ..OpenHint::default()
    }
}

#[test]
fn what_is_shortened_emptied_or_gone_below_the_recovery_point_costs_nothing_behind_it() {
    let whole = data_disk();
    let bases = synced_segments(&whole);
    let last = bases.len() - 1;
    for (index, base) in bases.iter().enumerate() {
        let log = path(&format!("{base:020}.log"));
        let content = whole.content(&log).unwrap();
        let end = bases.get(index + 1).copied().unwrap_or(OFFSETS);
        let cut = content[..content.len() - 1].to_vec();
        let stump = content[..content.len() / 2 + 1].to_vec();
        for kept in [Some(cut), Some(stump), Some(Vec::new()), None] {
            // The last one is scanned, and known to be on disk too.
            let hints = if index == last {
                vec![known(Shutdown::Unclean)]
            } else {
                vec![known(Shutdown::Unclean), flushed_to_last(&bases)]
            };
            for hint in hints {
                let disk = whole.kill();
                match &kept {
                    Some(kept) => disk.overwrite(&log, kept),
                    None => disk.remove(&log).unwrap(),
                }
                let what = format!("{base} of {bases:?}, {:?} bytes", kept.as_ref().map(Vec::len));
                let (mut log, report) = open_as(&disk, uncached(small(300)), hint);
                assert_eq!(log.log_end_offset(), OFFSETS, "{what}: {report:?}");
                let is_first_gone = index == 0 && kept.is_none();
                assert!(!report.damage.is_empty(), "{what}: it is told");
                for damage in &report.damage {
                    assert!(*base <= damage.from && damage.to == end, "{what}: {damage:?}");
                }
                let reader = log.reader();
                let from = if is_first_gone { end } else { 0 };
                assert_eq!(log.log_start_offset(), from, "{what}");
                let before: Vec<i64> = readable_from(&reader, from);
                assert!(before.starts_with(&(from..*base).collect::<Vec<_>>()), "{what}");
                assert_eq!(readable_from(&reader, end), (end..OFFSETS).collect::<Vec<_>>());
                assert_eq!(put(&mut log, &["next"]), OFFSETS, "{what}: no offset twice");
                assert_eq!(readable_from(&reader, OFFSETS), [OFFSETS], "{what}");
                // Nor does the next crash take anything.
                drop(log);
                let log = open_as(&disk.kill(), uncached(small(300)), hint).0;
                assert_eq!(log.log_end_offset(), OFFSETS + 1, "{what}");
                assert_eq!(readable_from(&log.reader(), OFFSETS), [OFFSETS], "{what}");
            }
        }
    }
}

#[test]
fn what_was_committed_and_is_dropped_is_set_aside() {
    let whole = data_disk();
    let bases = synced_segments(&whole);
    let log = path(LOG);
    let content = whole.content(&log).unwrap();
    let mut spoilt = content.clone();
    spoilt[70] ^= 1;
    for high_watermark in [0, bases[1] + 1] {
        // Nothing is known of the disk: the first segment ends before its spoilt batch.
        let disk = whole.kill();
        disk.overwrite(&log, &spoilt);
        let hint = OpenHint { high_watermark, ..OpenHint::default() };
        let (_, report) = open_as(&disk, small(300), hint);
        assert_eq!((report.log_end_offset, report.segments_dropped), (0, bases.len() - 1));
        let expected: Vec<_> = if high_watermark == 0 {
            Vec::new()
        } else {
            let dropped = path(&format!("{:020}.log", bases[1]));
            let kept = [
                (LOG, spoilt.clone()),
                (dropped.to_str().unwrap(), { whole.content(&dropped).unwrap() }),
            ];
            kept.map(|(name, content)| (path(name).with_extension("log.0.damaged"), content)).into()
        };
        assert_eq!(
            report.set_aside.iter().map(|file| disk.content(file)).collect::<Vec<_>>(),
            expected.iter().map(|(_, content)| Some(content.clone())).collect::<Vec<_>>()
        );
        let files: Vec<_> = expected.into_iter().map(|(file, _)| file).collect();
        assert_eq!(report.set_aside, files);
        // It stays there.
        open_as(&disk, small(300), OpenHint::default());
        assert!(files.iter().all(|file| disk.content(file).is_some()));
    }
}

#[test]
fn after_a_clean_stop_what_is_missing_before_and_between_segments_is_told() {
    let whole = data_disk();
    let bases = synced_segments(&whole);
    for (index, base) in bases.iter().enumerate().take(bases.len() - 1) {
        for emptied in [false, true] {
            let (disk, log) = (whole.kill(), path(&format!("{base:020}.log")));
            if emptied {
                disk.overwrite(&log, &[]);
            } else {
                disk.remove(&log).unwrap();
            }
            let (log, report) = open_as(&disk, uncached(small(300)), known(Shutdown::Clean));
            let told: Vec<_> = report.damage.iter().map(|one| (one.from, one.to)).collect();
            assert_eq!(told, [(*base, bases[index + 1])], "emptied: {emptied}");
            assert_eq!((report.segments_scanned, log.log_end_offset()), (0, OFFSETS));
        }
    }
    // What retention took is not missing.
    let disk = whole.kill();
    let (mut log, _) = open_as(&disk, uncached(small(300)), known(Shutdown::Clean));
    log.set_log_start_offset(bases[2]).unwrap();
    assert_eq!(log.apply_retention(OFFSETS, 0).unwrap().segments_deleted, 2);
    log.close_clean(0).unwrap();
    let (log, report) = open_as(&disk.kill(), small(300), known(Shutdown::Clean));
    assert_eq!((log.log_start_offset(), &report.damage[..]), (bases[2], &[][..]));
}

/// What an owner does: retention, the flush that is due after it, removal; of all but the last two segments.
fn delete_oldest(log: &mut Log, bases: &[i64]) -> Result<(), LogError> {
    log.set_log_start_offset(bases[bases.len() - 2])?;
    log.apply_retention(OFFSETS, 0)?;
    if let Some(point) = log.sealed_flush_point()? {
        point.sync()?;
        log.mark_synced(&point, 7);
    }
    log.remove_deleted(i64::MAX);
    Ok(())
}

#[test]
fn what_retention_took_is_not_missing_after_a_stop_at_any_call() {
    let whole = data_disk();
    let bases = synced_segments(&whole);
    let open_unclean = |disk: &MemDisk| {
        let (mut log, report) = open_as(disk, uncached(small(300)), known(Shutdown::Unclean));
        assert_eq!((report.damage, log.log_end_offset()), (vec![], OFFSETS));
        log.flush(0).map(|()| log)
    };
    let stops = |disk: &MemDisk, seed| [disk.kill(), disk.crash(Crash::Seeded(seed))];
    for call in 0.. {
        let mut is_halted = false;
        for seed in 0..8 {
            let disk = whole.kill();
            let (mut log, _) = open_as(&disk, uncached(small(300)), known(Shutdown::Clean));
            disk.fail_operation(disk.operations() + call, Fault::Halt);
            is_halted = delete_oldest(&mut log, &bases).is_err() || disk.is_halted();
            for disk in stops(&disk, seed) {
                // The next start is stopped at some call, too.
                disk.fail_operation(disk.operations() + call % 7 + seed, Fault::Halt);
                let shared: Arc<dyn Disk> = Arc::new(disk.clone());
                let (config, hint) = (Arc::new(small(300)), known(Shutdown::Unclean));
                _ = Log::open(shared, Path::new(DIR), identity(), config, hint, 0);
                for disk in stops(&disk, seed) {
                    open_unclean(&disk).unwrap();
                }
            }
        }
        if !is_halted {
            assert!(call > 10, "{call} calls");
            return;
        }
    }
}

#[test]
fn what_was_before_a_log_began_anew_is_not_missing() {
    let disk = data_disk();
    synced_segments(&disk);
    let (mut log, _) = open_as(&disk, uncached(small(300)), known(Shutdown::Clean));
    log.truncate_fully_and_start_at(OFFSETS, 0).unwrap();
    for mut disk in [disk.kill(), disk.crash(Crash::ForgetUnsynced)] {
        for _ in 0..2 {
            disk = disk.kill();
            let (log, report) = open_as(&disk, small(300), known(Shutdown::Unclean));
            assert_eq!((report.damage, log.log_start_offset()), (vec![], OFFSETS));
        }
    }
}

#[test]
fn what_is_missing_before_what_retention_took_is_told() {
    let disk = data_disk();
    let bases = synced_segments(&disk);
    let (mut log, _) = open_as(&disk, uncached(small(300)), known(Shutdown::Clean));
    log.set_log_start_offset(bases[2]).unwrap();
    log.apply_retention(OFFSETS, 0).unwrap();
    let disk = disk.kill();
    disk.remove(&path(&format!("{LOG}.deleted"))).unwrap();
    let report = open_as(&disk, small(300), known(Shutdown::Unclean)).1;
    let told: Vec<_> = report.damage.iter().map(|one| (one.from, one.to)).collect();
    assert_eq!(told, [(0, bases[1])]);
}

#[test]
fn a_flush_of_where_the_log_starts_puts_off_no_other() {
    let disk = data_disk();
    let bases = synced_segments(&disk);
    let (mut log, _) = open_as(&disk, uncached(small(300)), known(Shutdown::Clean));
    put(&mut log, &["waits"]);
    let since_ms = log.first_unflushed_ms();
    delete_oldest(&mut log, &bases).unwrap();
    assert!(log.sealed_flush_point().unwrap().is_none(), "nothing is left to say");
    assert_eq!((log.first_unflushed_ms(), log.unflushed_messages()), (since_ms, 1));
}

#[test]
fn a_log_start_beyond_all_that_is_known_of_the_end_deletes_nothing() {
    let whole = data_disk();
    synced_segments(&whole);
    for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
        for far in [OFFSETS + 1, i64::MAX] {
            let disk = whole.kill();
            let hint = OpenHint { log_start_offset: Some(far), ..known(shutdown) };
            let (mut log, report) = open_as(&disk, uncached(small(300)), hint);
            assert_eq!(report.log_start_refused, Some(far));
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, OFFSETS));
            assert_eq!(log.apply_retention(OFFSETS, 0).unwrap().segments_deleted, 0);
            assert_eq!(readable_from(&log.reader(), 0), (0..OFFSETS).collect::<Vec<_>>());
        }
        // At the end everything was deleted on purpose.
        let hint = OpenHint { log_start_offset: Some(OFFSETS), ..known(shutdown) };
        let (log, report) = open_as(&whole.kill(), small(300), hint);
        assert_eq!((log.log_start_offset(), report.log_start_refused), (OFFSETS, None));
    }
}
