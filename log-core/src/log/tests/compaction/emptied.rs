//! A first segment of which compaction has left nothing but its name: what retention makes of it.

use super::*;

/// A segment for each record, the first of them emptied at `modified_ms`, and an active one without any.
fn emptied(modified_ms: i64) -> (MemDisk, Log) {
    let disk = data_disk();
    disk.set_now_ms(modified_ms);
    let batches: [&[Keyed<'_>]; 3] =
        [&[("a", Some("1"))], &[("a", Some("2"))], &[("b", Some("1"))]];
    let mut log = sealed(&disk, compacting(100), &batches);
    compact(&mut log, None, NOW_MS).unwrap();
    let sizes: Vec<_> = log.segments.iter().map(|segment| segment.size() > 0).collect();
    assert_eq!(sizes, [false, true, true, false]);
    (disk, log)
}

fn retain(log: &mut Log, config: LogConfig, now_ms: i64) -> (usize, i64) {
    let cleanup_policy = CleanupPolicy::CompactAndDelete;
    log.set_config(Arc::new(LogConfig { cleanup_policy, ..config }));
    let retained = log.apply_retention(3, now_ms).unwrap();
    (retained.segments_deleted, log.log_start_offset())
}

#[test]
fn it_goes_with_the_expired_one_behind_it() {
    let (disk, mut log) = emptied(NOW_MS);
    let keeping = |retention_ms| LogConfig { retention_ms, ..compacting(100) };
    assert_eq!(retain(&mut log, keeping(NOW_MS), NOW_MS), (0, 0), "nothing is due");
    assert_eq!(retain(&mut log, keeping(HOUR_MS), NOW_MS), (3, 3));
    assert_eq!(retain(&mut log, keeping(HOUR_MS), NOW_MS), (0, 3), "the last, empty one stays");
    let (log, report) = open_as(&disk.kill(), compacting(100), OpenHint::default());
    assert_eq!((log.log_start_offset(), log.log_end_offset(), report.damage.len()), (3, 3, 0));
}

#[test]
fn it_goes_alone_once_its_file_is_old() {
    // The records behind it are of the time 1000.
    let (_disk, mut log) = emptied(0);
    let aging = || LogConfig { retention_ms: HOUR_MS, ..compacting(100) };
    assert_eq!(retain(&mut log, aging(), HOUR_MS), (0, 0));
    assert_eq!(retain(&mut log, aging(), HOUR_MS + 1), (1, 1));
    assert_eq!(content(&log), [row(1, "a", "2"), row(2, "b", "1")]);
}

#[test]
fn it_goes_when_the_log_is_too_large() {
    let (_disk, mut log) = emptied(NOW_MS);
    let one = log.reader().size_in_bytes() as i64 / 2;
    let bounded =
        |retention_bytes| LogConfig { retention_bytes, retention_ms: -1, ..compacting(100) };
    assert_eq!(retain(&mut log, bounded(2 * one + 1), NOW_MS), (0, 0));
    assert_eq!(retain(&mut log, bounded(one), NOW_MS), (2, 2));
    assert_eq!(retain(&mut log, bounded(0), NOW_MS), (1, 3));
    assert_eq!(retain(&mut log, bounded(0), NOW_MS), (0, 3), "the last, empty one stays");
}
