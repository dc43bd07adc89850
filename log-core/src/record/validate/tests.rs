use proptest::prelude::*;

use super::*;
use crate::ids::{ProducerEpoch, ProducerId, TopicPartition};
use crate::record::batch::{ATTRIBUTES_AT, CRC_AT, stamp};
use crate::record::{
    BatchBuilder, BatchKind, BatchParams, Compressor, NewRecord, ProducerSequence,
};

const NOW: i64 = 1_700_000_000_000;

fn rules() -> ProduceRules {
    ProduceRules {
        batch_bytes_max: 1 << 20,
        decompressed_bytes_max: 4 << 20,
        timestamps: TimestampRule::CreateTime {
            now: NOW,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
        },
        keys: KeyRule::Optional,
        zstd: ZstdRule::Accepted,
    }
}

fn batch_with(params: BatchParams, timestamps: &[i64]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(params);
    for &timestamp in timestamps {
        let value = Some(b"some value".as_slice());
        builder.append(&NewRecord { timestamp, value, ..NewRecord::default() }).unwrap();
    }
    builder.finish(&mut Compressor::new()).unwrap().to_vec()
}

fn batch(compression: Compression, timestamps: &[i64]) -> Vec<u8> {
    batch_with(BatchParams { compression, ..BatchParams::default() }, timestamps)
}

fn check(bytes: &[u8]) -> Result<Validated, RecordError> {
    validate(bytes, &rules(), &mut Decompressor::new())
}

/// Writes `field` at byte `at` and makes the CRC fit again.
fn patched(bytes: &[u8], at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + field.len()].copy_from_slice(field);
    let crc = crc32c::crc32c(&bytes[ATTRIBUTES_AT..]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn supported() -> Vec<Compression> {
    let all = Compression::ALL.into_iter();
    all.filter(|c| cfg!(feature = "zstd") || *c != Compression::Zstd).collect()
}

#[test]
fn a_good_batch_tells_what_the_log_wants_to_know() {
    for compression in supported() {
        let times = [NOW, NOW + 9, NOW - 5, NOW + 9];
        let bytes = batch(compression, &times);
        let validated = check(&bytes).unwrap();
        assert_eq!(validated.max_timestamp, NOW + 9, "{compression}");
        assert_eq!(validated.max_timestamp_offset_delta, Some(1), "{compression}");
        assert_eq!(validated.record_count, 4);
        assert_eq!(validated.timestamp_type, TimestampType::CreateTime);
        assert_eq!(validated.header.size_in_bytes(), bytes.len());
        assert_eq!(validated.records_bytes, batch(Compression::None, &times).len() - 61);
    }
}

#[test]
fn records_without_a_time_are_taken() {
    let validated = check(&batch(Compression::None, &[-1, -1])).unwrap();
    assert_eq!((validated.max_timestamp, validated.max_timestamp_offset_delta), (-1, None));
}

/// B10: two batches, none, a torn one, bytes behind.
#[test]
fn a_partition_gets_exactly_one_batch() {
    let zero = RecordError::BatchCount { found: BatchCount::Zero };
    let more = RecordError::BatchCount { found: BatchCount::MoreThanOne };
    let plain = batch(Compression::None, &[NOW; 2]);
    let gzip = batch(Compression::Gzip, &[NOW; 3]);
    assert_eq!(check(&[]), Err(zero.clone()));
    for end in 1..gzip.len() {
        assert_eq!(check(&gzip[..end]), Err(zero.clone()), "at {end}");
    }
    assert_eq!(check(&[gzip.clone(), gzip.clone()].concat()), Err(more.clone()));
    assert_eq!(check(&[plain.clone(), gzip].concat()), Err(more));
    let behind = InvalidBatch::BytesAfterBatch(5);
    assert_eq!(check(&[plain.as_slice(), &[0; 5]].concat()), Err(behind.into()));
}

/// B10: record count 0, count 3 but two records present, lastOffsetDelta 5 with 3 records.
#[test]
fn counts_that_contradict_each_other_are_refused() {
    for compression in supported() {
        let bytes = batch(compression, &[NOW; 3]);
        let with = |last: i32, count: i32| {
            check(&patched(&patched(&bytes, 23, &last.to_be_bytes()), 57, &count.to_be_bytes()))
        };
        let range = |last_offset_delta, record_count| {
            Err(InvalidBatch::OffsetRange { last_offset_delta, record_count }.into())
        };
        assert_eq!(with(2, 0), Err(InvalidBatch::RecordCount(0).into()));
        assert_eq!(with(2, -1), Err(InvalidBatch::RecordCount(-1).into()));
        assert_eq!(with(5, 3), range(5, 3));
        assert_eq!(with(-1, 3), range(-1, 3));
        assert_eq!(with(i32::MIN, 3), range(i32::MIN, 3));
        assert_eq!(with(i32::MAX, i32::MIN), Err(InvalidBatch::RecordCount(i32::MIN).into()));
        let missing = InvalidBatch::MissingRecords { declared: 4, present: 3 };
        assert_eq!(with(3, 4), Err(missing.into()));
        assert!(matches!(
            with(1, 2),
            Err(RecordError::InvalidBatch(InvalidBatch::TrailingBytes(_)))
        ));
        assert_eq!(with(2, 3).map(|validated| validated.record_count), Ok(3));
    }
}

#[test]
fn header_fields_that_are_not_a_clients_are_refused() {
    let bytes = batch(Compression::None, &[NOW]);
    let offset = patched(&bytes, 0, &777_i64.to_be_bytes());
    assert_eq!(check(&offset), Err(InvalidBatch::BaseOffset(777).into()));
    let old = patched(&bytes, 16, &[1]);
    assert_eq!(check(&old), Err(RecordError::UnsupportedMagic { position: 0, magic: 1 }));
    for id in 5..8 {
        let unknown = patched(&bytes, 22, &[id]);
        assert_eq!(check(&unknown), Err(RecordError::UnsupportedCompression { id }));
    }
    for kind in [BatchKind::Control, BatchKind::TransactionalControl] {
        let control = batch_with(BatchParams { kind, ..BatchParams::default() }, &[NOW]);
        assert_eq!(check(&control), Err(InvalidBatch::Control.into()));
    }
}

#[test]
fn an_idempotent_producer_needs_a_sequence() {
    let with = |base_sequence| {
        let producer =
            ProducerSequence { id: ProducerId(5), epoch: ProducerEpoch(0), base_sequence };
        let params = BatchParams { producer: Some(producer), ..BatchParams::default() };
        check(&batch_with(params, &[NOW]))
    };
    let expected = InvalidBatch::Sequence { producer_id: 5, base_sequence: -1 };
    assert_eq!(with(-1), Err(expected.into()));
    assert!(with(0).is_ok());
}

#[test]
fn a_crc_that_does_not_fit_is_corruption() {
    let mut bytes = batch(Compression::None, &[NOW]);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert!(matches!(check(&bytes), Err(RecordError::CrcMismatch { .. })));
}

#[test]
fn sizes_are_bounded_before_and_after_decompression() {
    let bytes = batch(Compression::Gzip, &[NOW; 500]);
    let size = bytes.len();
    let mut decompressor = Decompressor::new();
    let exact = ProduceRules { batch_bytes_max: size, ..rules() };
    assert!(validate(&bytes, &exact, &mut decompressor).is_ok());
    let short = ProduceRules { batch_bytes_max: size - 1, ..rules() };
    let expected = RecordError::BatchTooLarge { size, maximum: size - 1 };
    assert_eq!(validate(&bytes, &short, &mut decompressor), Err(expected));
    let tight = ProduceRules { decompressed_bytes_max: 1000, ..rules() };
    let expected = RecordError::DecompressedTooLarge { limit: 1000 };
    assert_eq!(validate(&bytes, &tight, &mut decompressor), Err(expected));
}

#[test]
fn zstd_is_refused_for_old_requests() {
    let bytes = patched(&batch(Compression::None, &[NOW]), 22, &[4]);
    let old = ProduceRules { zstd: ZstdRule::Refused, ..rules() };
    let expected = RecordError::UnsupportedCompression { id: 4 };
    assert_eq!(validate(&bytes, &old, &mut Decompressor::new()), Err(expected));
}

#[test]
fn data_that_is_not_what_the_codec_writes_is_refused() {
    for id in 1..=4 {
        let bytes = patched(&batch(Compression::None, &[NOW]), 22, &[id]);
        let result = check(&bytes);
        let invalid = matches!(result, Err(RecordError::InvalidCompressedData { .. }));
        let unsupported = result == Err(RecordError::UnsupportedCompression { id });
        assert!(invalid || (unsupported && !cfg!(feature = "zstd")), "{id}: {result:?}");
    }
}

#[test]
fn offset_deltas_count_from_zero() {
    for compression in supported() {
        let mut builder = BatchBuilder::new(BatchParams { compression, ..BatchParams::default() });
        for delta in [0, 2, 3] {
            builder.append_at(delta, &NewRecord::default()).unwrap();
        }
        let bytes = builder.finish(&mut Compressor::new()).unwrap();
        let bytes = patched(&bytes, 23, &2_i32.to_be_bytes());
        let expected = InvalidBatch::OffsetDelta { index: 1, offset_delta: 2 };
        assert_eq!(check(&bytes), Err(expected.into()), "{compression}");
    }
}

#[test]
fn a_compacted_topic_takes_no_record_without_key() {
    let rules = ProduceRules { keys: KeyRule::Required, ..rules() };
    let bytes = batch(Compression::None, &[NOW; 150]);
    let error = validate(&bytes, &rules, &mut Decompressor::new()).unwrap_err();
    let RecordError::RejectedRecords(rejected) = error else { panic!("{error}") };
    assert_eq!((rejected.kind, rejected.total), (RejectKind::Record, 150));
    assert_eq!(rejected.listed.len(), RejectedRecords::LISTED_MAX);
    let first = RejectedRecord { index: 0, cause: RejectCause::MissingKey };
    assert_eq!(rejected.listed[0], first);
}

/// The texts of Kafka 4.3.1, as it answered them.
#[test]
fn refusals_are_told_in_the_words_of_kafka() {
    let partition = TopicPartition::new("c", 0);
    let far = NOW + 7_200_000;
    let rules = ProduceRules { keys: KeyRule::Required, ..rules() };
    let message = |timestamps: &[i64]| {
        let bytes = batch(Compression::None, timestamps);
        let error = validate(&bytes, &rules, &mut Decompressor::new()).unwrap_err();
        let RecordError::RejectedRecords(rejected) = error else { panic!("{error}") };
        rejected.message(&partition)
    };
    let record = "RecordError(batchIndex=0, message='Compacted topic cannot accept message \
                  without key in topic partition c-0')";
    let text = message(&[NOW; 5]);
    assert_eq!(
        text,
        format!(
            "One or more records have been rejected due to 5 record errors in total, and only \
             showing the first three errors at most: [{record}, {}, {}]",
            record.replace("=0,", "=1,"),
            record.replace("=0,", "=2,"),
        )
    );
    let cause = RejectCause::TimestampOutOfRange { timestamp: far, earliest: 1, latest: 2 };
    assert_eq!(
        RejectedRecord { index: 1, cause }.message(&partition),
        format!(
            "Timestamp {far} of message with offset 1 is out of range. The timestamp should be \
             within [1, 2]"
        )
    );
    let listed = vec![RejectedRecord { index: 0, cause }];
    let rejected = RejectedRecords { listed, total: 1, kind: RejectKind::Timestamp };
    let expected = "One or more records have been rejected due to invalid timestamp";
    assert_eq!(rejected.message(&partition), expected);
}

fn rejected_times(bytes: &[u8], before_max_ms: i64, after_max_ms: i64) -> Vec<i32> {
    let timestamps = TimestampRule::CreateTime { now: NOW, before_max_ms, after_max_ms };
    let rules = ProduceRules { timestamps, ..rules() };
    match validate(bytes, &rules, &mut Decompressor::new()) {
        Ok(_) => Vec::new(),
        Err(RecordError::RejectedRecords(rejected)) => {
            assert_eq!(rejected.kind, RejectKind::Timestamp);
            rejected.listed.iter().map(|record| record.index).collect()
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn times_are_bounded_on_both_sides_inclusive() {
    let bytes = batch(Compression::None, &[NOW - 11, NOW - 10, -1, NOW, NOW + 20, NOW + 21]);
    assert_eq!(rejected_times(&bytes, 10, 20), [0, 5]);
    assert_eq!(rejected_times(&bytes, i64::MAX, i64::MAX), []);
    let far = batch(Compression::None, &[0, i64::MAX, i64::MIN]);
    assert_eq!(rejected_times(&far, i64::MAX, 3_600_000), [1, 2]);
    assert_eq!(rejected_times(&far, 1, i64::MAX), [0, 2]);
}

#[test]
fn under_log_append_time_the_log_gives_the_time() {
    let timestamps = TimestampRule::LogAppendTime { now: NOW };
    let rules = ProduceRules { timestamps, ..rules() };
    let mut bytes = batch(Compression::None, &[5, i64::MAX]);
    let validated = validate(&bytes, &rules, &mut Decompressor::new()).unwrap();
    assert_eq!(validated.timestamp_type, TimestampType::LogAppendTime);
    assert_eq!(validated.max_timestamp, NOW);
    assert_eq!(validated.max_timestamp_offset_delta, Some(0));
    assert_eq!(stamp(&mut bytes, validated.timestamp_type, validated.max_timestamp), Ok(true));
    let batch = Batch::parse(&bytes).unwrap();
    assert_eq!(batch.verify_crc(), Ok(()));
    assert!(batch.records().unwrap().all(|record| record.unwrap().timestamp == NOW));
}

#[test]
fn a_producer_does_not_claim_the_time_of_the_log() {
    let params = BatchParams { append_time: Some(NOW), ..BatchParams::default() };
    let error = check(&batch_with(params, &[NOW, NOW])).unwrap_err();
    let RecordError::RejectedRecords(rejected) = error else { panic!("{error}") };
    assert_eq!((rejected.kind, rejected.total), (RejectKind::Timestamp, 2));
    assert_eq!(rejected.listed[1].cause, RejectCause::TimestampType);
}

#[test]
fn a_false_greatest_time_in_the_header_is_put_right() {
    let good = batch(Compression::None, &[NOW, NOW + 1]);
    let mut bytes = patched(&good, 35, &(NOW + 999).to_be_bytes());
    let validated = check(&bytes).unwrap();
    assert_eq!(stamp(&mut bytes, validated.timestamp_type, validated.max_timestamp), Ok(true));
    assert_eq!(bytes, good);
}

proptest! {
    #[test]
    fn damage_is_refused_and_never_panics(
        compression in prop::sample::select(supported()),
        at in 0_usize..500,
        flip in 1_u8..,
        fix_crc in any::<bool>(),
    ) {
        let good = batch(compression, &[NOW; 40]);
        let at = at % good.len();
        let damaged = [good[at] ^ flip];
        if fix_crc {
            let _ = check(&patched(&good, at, &damaged));
        } else {
            let mut bytes = good;
            bytes[at] = damaged[0];
            // Only the leader epoch is nobody's business.
            prop_assert_eq!(check(&bytes).is_ok(), (12..16).contains(&at));
        }
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(check(&bytes).is_err());
    }
}
