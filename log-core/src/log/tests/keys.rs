use super::*;
use crate::limits::KEY_HITS_MAX;
use crate::record::{Compression, Header, Record};
use crate::storage::keys::{KeyHits, KeyRule};

/// Each byte of the values of `KEYS` headers is the hash of a key.
fn keys_of(record: &Record<'_>, found: &mut dyn FnMut(u32)) {
    for header in record.headers.iter().filter(|header| header.key == b"KEYS") {
        header.value.unwrap_or_default().iter().for_each(|byte| found(u32::from(*byte)));
    }
}

const RULE: KeyRule<'static> = KeyRule { id: b'T', keys_of: &keys_of };

fn keyed(compression: Compression, keys: &[&str]) -> AppendBatch {
    let mut builder = BatchBuilder::new(BatchParams { compression, ..BatchParams::default() });
    for keys in keys {
        let headers = [Header { key: b"KEYS", value: Some(keys.as_bytes()) }];
        let record = NewRecord { value: Some(b"body"), headers: &headers, ..NewRecord::default() };
        builder.append(&record).unwrap();
    }
    let bytes = builder.finish(&mut Compressor::new()).unwrap();
    AppendBatch { bytes, origin: AppendOrigin::Client }
}

/// All offsets of a key, however many steps it takes.
fn find(reader: &LogReader, key: char, start: i64) -> Vec<i64> {
    let (mut offsets, mut next) = (Vec::new(), start);
    while next < reader.log_end_offset() {
        let hits = reader.keys(u32::from(key), (next, i64::MAX), RULE).unwrap();
        assert!(hits.end_offset > next || hits.grows, "stuck at {next}");
        offsets.extend(hits.offsets);
        next = hits.end_offset;
    }
    offsets
}

fn filled(disk: &MemDisk, config: LogConfig) -> Log {
    let mut log = open(disk, config);
    for codec in [Compression::None, Compression::Lz4, Compression::Zstd] {
        append(&mut log, keyed(codec, &["AB", "", "BB"])).unwrap();
    }
    append(&mut log, of_producer((1, 0), 0, BatchKind::Transactional, &["x"])).unwrap();
    append(&mut log, marker((1, 0), TransactionOutcome::Abort)).unwrap();
    append(&mut log, keyed(Compression::None, &["B"])).unwrap();
    log
}

#[test]
fn every_record_of_a_key_is_found_in_any_codec_and_from_anywhere() {
    for config in [small(250), small(1 << 20)] {
        let log = filled(&data_disk(), config);
        let reader = log.reader();
        let (of_a, of_b) = ([0, 3, 6], [0, 2, 3, 5, 6, 8, 11]);
        for start in [0, 11, 5, 7, 0, 3] {
            let from = |all: &[i64]| -> Vec<i64> {
                all.iter().copied().filter(|offset| *offset >= start).collect()
            };
            assert_eq!(find(&reader, 'A', start), from(&of_a), "{start}");
            assert_eq!(find(&reader, 'B', start), from(&of_b), "{start}");
            assert_eq!(find(&reader, 'C', start), []);
        }
        let few = reader.keys(66, (1, 4), RULE).unwrap();
        assert!(few.offsets.iter().all(|offset| (1..4).contains(offset)) && few.end_offset <= 4);
        assert!(matches!(reader.keys(65, (13, 99), RULE), Err(LogError::OffsetOutOfRange { .. })));
    }
}

#[test]
fn a_sealed_segment_that_was_read_through_keeps_its_keys_in_a_file() {
    let disk = data_disk();
    let mut log = filled(&disk, small(1 << 20));
    log.roll(0).unwrap();
    let name = "00000000000000000000.keys".to_owned();
    assert!(!names(&disk).contains(&name));
    find(&log.reader(), 'A', 4);
    assert!(names(&disk).contains(&name));
    log.close_clean(0).unwrap();
    let disk = disk.kill();
    let log = open_as(&disk, small(1 << 20), clean()).0;
    let never = |_: &Record<'_>, _: &mut dyn FnMut(u32)| panic!("the file says it");
    let hits = log.reader().keys(65, (1, 99), KeyRule { keys_of: &never, ..RULE }).unwrap();
    assert_eq!(hits, KeyHits { offsets: vec![3, 6], end_offset: 12, grows: false });
    let path = Path::new(DIR).join(name);
    let mut content = disk.content(&path).unwrap();
    content[50] ^= 1;
    disk.overwrite(&path, &content);
    let log = open_as(&disk.kill(), small(1 << 20), OpenHint::default()).0;
    assert_eq!(find(&log.reader(), 'A', 0), [0, 3, 6], "spoilt, and made anew");
}

#[test]
fn without_memory_the_index_ends_but_without_an_error() {
    let budget = Arc::new(TailBudget::new(40));
    let config = LogConfig { key_budget: Arc::clone(&budget), ..small(1 << 20) };
    let log = filled(&data_disk(), config);
    // Four keys a batch, eight bytes each.
    let hits = log.reader().keys(65, (0, 99), RULE).unwrap();
    assert_eq!((hits.offsets, hits.end_offset), (vec![0], 3));
    assert_eq!(budget.used_bytes(), 32);
    let hits = log.reader().keys(65, (3, 99), RULE).unwrap();
    assert_eq!((hits.end_offset, hits.grows), (3, false));
    drop(log);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn truncation_forgets_keys() {
    let mut log = filled(&data_disk(), small(1 << 20));
    find(&log.reader(), 'A', 0);
    log.truncate_to(3, 0).unwrap();
    append(&mut log, keyed(Compression::None, &["B", "A"])).unwrap();
    assert_eq!(find(&log.reader(), 'A', 0), [0, 4]);
}

#[test]
fn keys_by_another_rule_are_made_anew() {
    let disk = data_disk();
    let mut log = filled(&disk, small(1 << 20));
    log.roll(0).unwrap();
    let none = |_: &Record<'_>, _: &mut dyn FnMut(u32)| {};
    let other = KeyRule { id: b'N', keys_of: &none };
    for _ in 0..2 {
        assert_eq!(find(&log.reader(), 'A', 0), [0, 3, 6]);
        let mut hits = KeyHits { grows: true, ..KeyHits::default() };
        while hits.grows {
            hits = log.reader().keys(65, (0, 99), other).unwrap();
        }
        assert_eq!((hits.offsets, hits.end_offset), (vec![], 12));
    }
    log.close_clean(0).unwrap();
    let log = open_as(&disk.kill(), small(1 << 20), clean()).0;
    let panics = |_: &Record<'_>, _: &mut dyn FnMut(u32)| panic!("the file says it");
    let asked = KeyRule { keys_of: &panics, ..other };
    assert_eq!(log.reader().keys(65, (0, 99), asked).unwrap().end_offset, 12);
    assert_eq!(find(&log.reader(), 'A', 0), [0, 3, 6]);
}

/// The file of a sealed segment may be on disk before the segment's last batches are.
#[test]
fn a_power_cut_takes_the_keys_of_what_it_took() {
    let disk = data_disk();
    let mut log = filled(&disk, small(1 << 20));
    let path = Path::new(DIR).join("00000000000000000000.log");
    let short = disk.content(&path).unwrap();
    append(&mut log, keyed(Compression::None, &["A", "A"])).unwrap();
    log.roll(0).unwrap();
    assert_eq!(find(&log.reader(), 'A', 0), [0, 3, 6, 12, 13]);
    drop(log);
    let disk = disk.kill();
    disk.overwrite(&path, &short);
    for kind in ["log", "index", "timeindex", "snapshot"] {
        disk.remove(&Path::new(DIR).join(format!("{:020}.{kind}", 14))).ok();
    }
    let mut log = open_as(&disk, small(1 << 20), OpenHint::default()).0;
    assert_eq!(log.log_end_offset(), 12);
    append(&mut log, keyed(Compression::None, &["B", "A"])).unwrap();
    log.roll(0).unwrap();
    assert_eq!(find(&log.reader(), 'A', 0), [0, 3, 6, 13]);
}

#[test]
fn one_search_finds_so_many_and_goes_on_behind_them() {
    let disk = data_disk();
    let mut log = open(&disk, small(64 << 20));
    let many: Vec<&str> = vec!["AA"; KEY_HITS_MAX / 2 + 1];
    for _ in 0..3 {
        append(&mut log, keyed(Compression::None, &many)).unwrap();
    }
    let all: Vec<i64> = (0..log.log_end_offset()).collect();
    assert!(all.len() > KEY_HITS_MAX);
    assert_eq!(find(&log.reader(), 'A', 0), all);
    log.roll(0).unwrap();
    for _ in 0..2 {
        assert_eq!(find(&log.reader(), 'A', 0), all);
    }
    let hits = log.reader().keys(65, (0, i64::MAX), RULE).unwrap();
    assert_eq!((hits.offsets.len(), hits.end_offset), (KEY_HITS_MAX, KEY_HITS_MAX as i64));
}

#[test]
fn a_narrow_search_far_behind_the_index_makes_none() {
    let log = filled(&data_disk(), small(1 << 20));
    let hits = log.reader().keys(65, (9, 12), RULE).unwrap();
    assert_eq!(hits, KeyHits { offsets: vec![], end_offset: 9, grows: false });
    assert_eq!(find(&log.reader(), 'B', 0).len(), 7);
    assert_eq!(log.reader().keys(66, (9, 12), RULE).unwrap().offsets, [11]);
}
