use super::*;
use crate::record::{Compression, Header, Record};
use crate::storage::tags::{RecordTag, Tags};

/// The first byte of a `TAGS` header.
fn tag_of(record: &Record<'_>) -> Option<i32> {
    let header = record.headers.iter().find(|header| header.key == b"TAGS")?;
    header.value?.first().map(|byte| i32::from(*byte))
}

fn tagged(compression: Compression, tags: &[Option<&str>]) -> AppendBatch {
    let params = BatchParams { compression, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    for tag in tags {
        let header = tag.map(|tag| Header { key: b"TAGS", value: Some(tag.as_bytes()) });
        let headers: Vec<_> = header.into_iter().collect();
        let record = NewRecord { value: Some(b"body"), headers: &headers, ..NewRecord::default() };
        builder.append(&record).unwrap();
    }
    let bytes = builder.finish(&mut Compressor::new()).unwrap();
    AppendBatch { bytes, origin: AppendOrigin::Client }
}

fn all_tags(reader: &LogReader, start: i64) -> Vec<(i64, RecordTag)> {
    let (mut tags, mut next) = (Vec::new(), start);
    while next < reader.log_end_offset() {
        let found = reader.tags(next, i64::MAX, &tag_of).unwrap();
        tags.extend(found.iter());
        assert!(found.end_offset() > next);
        next = found.end_offset();
    }
    tags
}

const A: RecordTag = RecordTag::Tagged(65);
const B: RecordTag = RecordTag::Tagged(66);

fn filled(disk: &MemDisk, config: LogConfig) -> Log {
    let mut log = open(disk, config);
    for codec in [Compression::None, Compression::Lz4, Compression::Zstd] {
        append(&mut log, tagged(codec, &[Some("A"), None, Some("B")])).unwrap();
    }
    append(&mut log, of_producer((1, 0), 0, BatchKind::Transactional, &["x"])).unwrap();
    append(&mut log, marker((1, 0), TransactionOutcome::Abort)).unwrap();
    append(&mut log, tagged(Compression::None, &[Some("B")])).unwrap();
    log
}

fn expected() -> Vec<(i64, RecordTag)> {
    let untagged = RecordTag::Untagged;
    let tags = [A, untagged, B, A, untagged, B, A, untagged, B, untagged, RecordTag::Control, B];
    (0..).zip(tags).collect()
}

#[test]
fn every_offset_has_its_tag_in_any_codec_and_from_anywhere() {
    for config in [small(250), small(1 << 20)] {
        let log = filled(&data_disk(), config);
        let reader = log.reader();
        for start in [11, 5, 0, 7, 0, 3] {
            let from = usize::try_from(start).unwrap();
            assert_eq!(all_tags(&reader, start), expected()[from..], "{start}");
        }
        assert_eq!(reader.tags(12, 99, &tag_of).unwrap().iter().count(), 0);
        assert!(matches!(reader.tags(13, 99, &tag_of), Err(LogError::OffsetOutOfRange { .. })));
        let few = reader.tags(1, 3, &tag_of).unwrap();
        assert_eq!((few.iter().count(), few.end_offset()), (2, 3));
        assert_eq!((few.first_of(&[66, 99]), few.first_of(&[65])), (Some(2), None));
    }
}

#[test]
fn tags_grow_with_the_active_segment() {
    let mut log = open(&data_disk(), small(1 << 20));
    for i in 0..10 {
        append(&mut log, tagged(Compression::None, &[Some("A"), Some("B")])).unwrap();
        assert_eq!(all_tags(&log.reader(), 0).len(), 2 * (i + 1));
    }
    assert_eq!(all_tags(&log.reader(), 19), [(19, B)]);
    assert_eq!(all_tags(&log.reader(), 2).len(), 18);
}

#[test]
fn a_sealed_segment_that_was_read_through_keeps_its_tags_in_a_file() {
    let disk = data_disk();
    let mut log = filled(&disk, small(1 << 20));
    log.roll(0).unwrap();
    let name = "00000000000000000000.tags".to_owned();
    all_tags(&log.reader(), 4);
    assert!(!names(&disk).contains(&name), "not read from its start");
    all_tags(&log.reader(), 0);
    assert!(names(&disk).contains(&name));
    log.close_clean(0).unwrap();
    let disk = disk.kill();
    let log = open_as(&disk, small(1 << 20), clean()).0;
    let never = |_: &Record<'_>| panic!("the file says it");
    let tags: Tags = log.reader().tags(0, 99, &never).unwrap();
    assert_eq!(tags.iter().collect::<Vec<_>>(), expected());
    let path = Path::new(DIR).join(name);
    let mut content = disk.content(&path).unwrap();
    content[50] ^= 1;
    disk.overwrite(&path, &content);
    let log = open_as(&disk.kill(), small(1 << 20), OpenHint::default()).0;
    assert_eq!(all_tags(&log.reader(), 0), expected(), "spoilt, and made anew");
}

#[test]
fn holes_are_told_from_records() {
    let at = |base_offset| {
        let params = BatchParams { base_offset, leader_epoch: EPOCH, ..BatchParams::default() };
        batch_of(params, &[(1000, "x")]).freeze()
    };
    let mut log = open(&data_disk(), small(1 << 20));
    log.append_as_follower(vec![at(2), at(5), at(5 + (1 << 30))], 0).unwrap();
    let tags = log.reader().tags(0, i64::MAX, &tag_of).unwrap();
    let found: Vec<_> = tags.iter().map(|(_, tag)| tag).collect();
    let (hole, record) = (RecordTag::Hole, RecordTag::Untagged);
    assert_eq!(found, [hole, hole, record, hole, hole, record]);
    assert_eq!(tags.end_offset(), 6, "a gap of a billion is not spelt out");
    assert_eq!(log.reader().tags(6, i64::MAX, &tag_of).unwrap().iter().count(), 0);
}

#[test]
fn without_memory_there_are_no_tags_but_no_error() {
    let budget = Arc::new(TailBudget::new(20));
    let config = LogConfig { tag_budget: Arc::clone(&budget), ..small(1 << 20) };
    let log = filled(&data_disk(), config);
    let tags = log.reader().tags(0, 99, &tag_of).unwrap();
    assert_eq!((tags.iter().count(), tags.end_offset()), (3, 3));
    assert_eq!(budget.used_bytes(), 15);
    assert_eq!(log.reader().tags(3, 99, &tag_of).unwrap().end_offset(), 3);
    drop(log);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn truncation_forgets_tags() {
    let mut log = filled(&data_disk(), small(1 << 20));
    all_tags(&log.reader(), 0);
    log.truncate_to(3, 0).unwrap();
    append(&mut log, tagged(Compression::None, &[Some("B"), Some("B")])).unwrap();
    let untagged = RecordTag::Untagged;
    assert_eq!(all_tags(&log.reader(), 0), [(0, A), (1, untagged), (2, B), (3, B), (4, B)]);
}
