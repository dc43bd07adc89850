use proptest::prelude::*;

use super::*;
use crate::record::Compression;

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

fn compressed(compression: Compression, records: &[(i64, &str)]) -> AppendBatch {
    let params = BatchParams { compression, ..BatchParams::default() };
    AppendBatch { bytes: batch_of(params, records), origin: AppendOrigin::Client }
}

fn at(reader: &LogReader, timestamp: i64) -> Option<(i64, i64)> {
    let found = reader.offset_for_timestamp(timestamp, i64::MAX).unwrap();
    found.map(|found| (found.offset, found.timestamp))
}

fn newest(reader: &LogReader) -> Option<(i64, i64)> {
    let found = reader.max_timestamp(i64::MAX).unwrap();
    found.map(|found| (found.offset, found.timestamp))
}

/// Case B21: the first record at or after the asked time, never the one before it.
fn check_b21(log: &Log) {
    let reader = log.reader();
    let expected = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (8, 3)];
    for (time, offset) in expected {
        assert_eq!(at(&reader, time), Some((offset, 2 * offset + 2)), "{time}");
    }
    assert_eq!(at(&reader, 9), None);
    assert_eq!(at(&reader, i64::MIN), Some((0, 2)));
    assert_eq!(at(&reader, i64::MAX), None);
}

#[test]
fn b21_the_first_record_at_or_after_a_time_in_batches_of_one() {
    let mut log = open(&data_disk(), small(1 << 20));
    for time in [2, 4, 6, 8] {
        append(&mut log, timed(&[(time, "x")])).unwrap();
    }
    check_b21(&log);
    log.roll(0).unwrap();
    check_b21(&log);
}

#[test]
fn b21_the_first_record_at_or_after_a_time_in_one_batch_of_any_codec() {
    for codec in CODECS {
        let mut log = open(&data_disk(), small(1 << 20));
        let records = [(2, "a"), (4, "b"), (6, "c"), (8, "d")];
        append(&mut log, compressed(codec, &records)).unwrap();
        check_b21(&log);
    }
}

#[test]
fn b24_the_first_record_with_the_greatest_time() {
    for codec in [Compression::None, Compression::Lz4] {
        let mut log = open(&data_disk(), small(1 << 20));
        assert_eq!(newest(&log.reader()), None, "empty");
        append(&mut log, compressed(codec, &[(5, "a"), (9, "b"), (7, "c")])).unwrap();
        append(&mut log, compressed(codec, &[(9, "d"), (1, "e")])).unwrap();
        assert_eq!(newest(&log.reader()), Some((1, 9)));
        assert_eq!(log.reader().max_timestamp(1).unwrap(), None, "it lies beyond the end");
        // After records are deleted the answer is computed over what remains.
        log.set_log_start_offset(2).unwrap();
        assert_eq!(newest(&log.reader()), Some((3, 9)));
        log.set_log_start_offset(4).unwrap();
        assert_eq!(newest(&log.reader()), Some((4, 1)));
        log.set_log_start_offset(5).unwrap();
        assert_eq!(newest(&log.reader()), None);
    }
}

/// What is open or not replicated yet makes no search read through the segment: one batch is read, and its find dropped.
#[test]
fn a_greatest_time_beyond_the_end_is_none_and_costs_one_batch() {
    let disk = data_disk();
    let mut log = open(&disk, small(1 << 20));
    for time in 1..=50 {
        append(&mut log, timed(&[(time, "x")])).unwrap();
    }
    // Whoever reads through them all meets one that is damaged.
    let path = Path::new(DIR).join("00000000000000000000.log");
    let mut content = disk.content(&path).unwrap();
    let batch_bytes = content.len() / 50;
    content[2 * batch_bytes + 16] ^= 0xFF;
    disk.overwrite(&path, &content);
    assert_eq!(log.reader().max_timestamp(49).unwrap(), None);
    assert_eq!(newest(&log.reader()), Some((49, 50)));
}

#[test]
fn behind_a_deleted_record_the_greatest_of_the_rest_is_found() {
    let mut log = open(&data_disk(), small(1 << 20));
    append(&mut log, timed(&[(99, "x"), (1, "x")])).unwrap();
    for time in 51..=90 {
        append(&mut log, timed(&[(time, "x")])).unwrap();
    }
    append(&mut log, timed(&[(90, "x")])).unwrap();
    log.set_log_start_offset(1).unwrap();
    assert_eq!(newest(&log.reader()), Some((41, 90)));
    assert_eq!(log.reader().max_timestamp(41).unwrap(), None);
    log.roll(0).unwrap();
    append(&mut log, timed(&[(90, "x"), (7, "x")])).unwrap();
    assert_eq!(newest(&log.reader()), Some((41, 90)), "the first of them");
}

#[test]
fn records_without_a_time_are_never_found() {
    let mut log = open(&data_disk(), small(1 << 20));
    append(&mut log, timed(&[(-1, "a"), (-1, "b")])).unwrap();
    assert_eq!((at(&log.reader(), 0), newest(&log.reader())), (None, None));
    log.roll(0).unwrap();
    append(&mut log, timed(&[(3, "c")])).unwrap();
    assert_eq!((at(&log.reader(), 0), newest(&log.reader())), (Some((2, 3)), Some((2, 3))));
}

#[test]
fn append_time_batches_answer_with_their_first_record() {
    let mut log = open(&data_disk(), small(1 << 20));
    for time in [10, 20] {
        let params = BatchParams { append_time: Some(time), ..BatchParams::default() };
        let bytes = batch_of(params, &[(1, "a"), (2, "b")]);
        append(&mut log, AppendBatch { bytes, origin: AppendOrigin::Client }).unwrap();
    }
    assert_eq!(at(&log.reader(), 11), Some((2, 20)));
    assert_eq!(newest(&log.reader()), Some((2, 20)));
}

#[test]
fn the_answer_names_the_epoch_that_wrote_the_record() {
    // Case B68.
    let mut log = open(&data_disk(), small(1 << 20));
    for epoch in [2, 3] {
        let batch = timed(&[(i64::from(epoch) * 10, "x")]);
        log.append_as_leader(vec![batch], LeaderEpoch(epoch), 0).remove(0).unwrap();
    }
    let epoch = |time| log.reader().offset_for_timestamp(time, 99).unwrap().unwrap().leader_epoch;
    assert_eq!((epoch(20), epoch(21)), (2, 3));
    assert_eq!(log.reader().max_timestamp(99).unwrap().unwrap().leader_epoch, 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Searches agree with a list, over segments, index entries and deleted records.
    #[test]
    fn searches_agree_with_a_plain_list(
        batches in prop::collection::vec(prop::collection::vec(-1_i64..40, 1..5), 1..40),
        start in 0_i64..30,
        end in 0_i64..120,
        codec in 0_usize..5,
    ) {
        let disk = data_disk();
        let config = LogConfig { index_interval_bytes: 150, ..small(700) };
        let mut log = open(&disk, config.clone());
        let mut times = Vec::new();
        for batch in &batches {
            let records: Vec<_> = batch.iter().map(|time| (*time, "value")).collect();
            append(&mut log, compressed(CODECS[codec], &records)).unwrap();
            times.extend_from_slice(batch);
        }
        let start = start.min(log.log_end_offset());
        log.set_log_start_offset(start).unwrap();
        log.close_clean(0).unwrap();
        let hint = OpenHint { log_start_offset: Some(start), ..clean() };
        let log = open_as(&disk.kill(), config, hint).0;
        let (reader, from) = (log.reader(), usize::try_from(start).unwrap());
        let readable: Vec<(i64, i64)> = times
            .iter()
            .zip(0..)
            .skip(from)
            .map(|(time, offset)| (offset, *time))
            .collect();
        for time in 0..42 {
            let found = readable.iter().find(|(_, at)| *at >= time).copied();
            let expected = found.filter(|(offset, _)| *offset < end);
            let found = reader.offset_for_timestamp(time, end).unwrap();
            prop_assert_eq!(found.map(|f| (f.offset, f.timestamp)), expected, "time {}", time);
        }
        let greatest = readable.iter().map(|(_, time)| *time).max().filter(|time| *time >= 0);
        let found = readable.iter().find(|(_, time)| Some(*time) == greatest).copied();
        let expected = found.filter(|(offset, _)| *offset < end);
        let found = reader.max_timestamp(end).unwrap();
        prop_assert_eq!(found.map(|f| (f.offset, f.timestamp)), expected);
    }
}
