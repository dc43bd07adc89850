use super::*;

#[test]
fn what_a_node_refuses_has_a_code() {
    let (topic, group) = (|| "t".to_owned(), || "g".to_owned());
    let reason = || "r".to_owned();
    for (error, code) in [
        (BackendError::UnknownTopic { topic: topic() }, 17),
        (BackendError::UnknownPartition { topic: topic(), partition: 9 }, 29),
        (BackendError::NotLeader { topic: topic(), partition: 0 }, 14),
        (BackendError::InvalidTopic { reason: reason() }, 29),
        (
            BackendError::OffsetOutOfRange {
                offset: 1,
                log_start_offset: 2,
                last_stable_offset: 3,
            },
            21,
        ),
        (BackendError::RecordTooLarge { bytes: 2, bytes_max: 1 }, 13),
        (BackendError::CorruptBatch { offset: 1, reason: reason() }, 1),
        (BackendError::NotWritable { reason: reason() }, 14),
        (BackendError::NotEnoughReplicas, 1),
        (BackendError::Busy, 2),
        (BackendError::CoordinatorNotReady { group: group() }, 1),
        (BackendError::GroupKindConflict { group: group(), kind: "classic" }, 26),
        (BackendError::LimitReached { reason: reason() }, 1),
    ] {
        assert_eq!(ResponseCode::from(&error).0, code, "{error}");
    }
}
