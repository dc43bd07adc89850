use super::*;
use duolog_log_core::record::error::{BatchCount, RejectCause, RejectedRecord};

#[test]
fn codes_print_as_kafka_names_them() {
    let check = |code: ErrorCode, number: i16, name: &str| {
        assert_eq!((code.code(), code.to_string().as_str()), (number, name));
    };
    check(ErrorCode::UnknownServerError, -1, "UNKNOWN_SERVER_ERROR");
    check(ErrorCode::None, 0, "NONE");
    check(ErrorCode::InvalidTopicException, 17, "INVALID_TOPIC_EXCEPTION");
    check(ErrorCode::OutOfOrderSequenceNumber, 45, "OUT_OF_ORDER_SEQUENCE_NUMBER");
    check(ErrorCode::ShareSessionLimitReached, 133, "SHARE_SESSION_LIMIT_REACHED");
    assert!(ErrorCode::UnknownServerError.is_error() && !ErrorCode::None.is_error());
}

#[test]
fn refused_records_tell_what_a_client_can_do() {
    let check = |error: RecordError, code| assert_eq!(ErrorCode::from(&error), code, "{error}");
    check(RecordError::CrcMismatch { stored: 1, computed: 2 }, ErrorCode::CorruptMessage);
    check(RecordError::BatchCount { found: BatchCount::MoreThanOne }, ErrorCode::InvalidRecord);
    check(RecordError::UnsupportedMagic { position: 0, magic: 1 }, ErrorCode::InvalidRecord);
    check(RecordError::UnsupportedMagic { position: 0, magic: 3 }, ErrorCode::CorruptMessage);
    let torn = RecordError::Truncated { position: 0, expected: 70, actual: 68 };
    check(torn, ErrorCode::InvalidRecord);
    check(RecordError::BatchTooLarge { size: 2, maximum: 1 }, ErrorCode::MessageTooLarge);
    let rejected = |kind| {
        let listed = vec![RejectedRecord { index: 0, cause: RejectCause::MissingKey }];
        RecordError::RejectedRecords(RejectedRecords { listed, total: 1, kind })
    };
    check(rejected(RejectKind::Record), ErrorCode::InvalidRecord);
    check(rejected(RejectKind::Timestamp), ErrorCode::InvalidTimestamp);
}
