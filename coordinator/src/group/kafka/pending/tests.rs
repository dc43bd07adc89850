//! Which position counts when transactions and plain commits meet.

use duolog_log_core::ids::TopicId;

use super::*;

fn position(group: &str, offset: i64) -> Record {
    let value = OffsetValue {
        offset,
        leader_epoch: -1,
        metadata: "".into(),
        commit_ms: 0,
        expire_ms: None,
        topic_id: TopicId::ZERO,
    };
    Record::Offset { group: group.into(), topic: "t".into(), partition: 0, value: Some(value) }
}

const COMMIT: TransactionOutcome = TransactionOutcome::Commit;

#[test]
fn what_is_later_in_the_log_wins() {
    let mut pending = PendingPositions::default();
    pending.keep(1, position("g", 5), Offset(0));
    pending.keep(2, position("g", 6), Offset(1));
    assert_eq!(pending.end(2, COMMIT).records, [position("g", 6)]);
    assert!(pending.has_group("g"), "the other transaction is open");
    assert_eq!(pending.end(1, COMMIT).records, [], "it stands before what counts already");
    assert_eq!(pending, PendingPositions::default());

    pending.keep(1, position("g", 5), Offset(2));
    pending.keep(2, position("g", 6), Offset(3));
    assert_eq!(pending.end(1, COMMIT).records, [position("g", 5)]);
    assert_eq!(pending.end(2, COMMIT).records, [position("g", 6)]);

    pending.keep(1, position("g", 7), Offset(4));
    pending.keep(1, position("h", 7), Offset(5));
    pending.superseded(&position("g", 3));
    assert!(pending.has("g", &"t".into(), 0), "not stable before the transaction has ended");
    let ended = pending.end(1, COMMIT);
    assert_eq!(ended.records, [position("h", 7)]);
    assert_eq!(ended.groups, ["g".into(), "h".into()].into());
}

#[test]
fn what_is_aborted_or_forgotten_is_gone() {
    let mut pending = PendingPositions::default();
    assert_eq!(pending.keep(1, position("g", 5), Offset(0)), Some("g".into()));
    assert_eq!(pending.of_group("g").count(), 1);
    assert_eq!(pending.of_group("h").count(), 0);
    let ended = Ended { records: vec![], groups: ["g".into()].into() };
    assert_eq!(pending.end(1, TransactionOutcome::Abort), ended);
    assert_eq!(pending.end(1, COMMIT), Ended::default(), "a marker written again");
    pending.keep(1, position("g", 5), Offset(1));
    let Record::Offset { group, topic, partition, .. } = position("g", 0) else { unreachable!() };
    pending.superseded(&Record::Offset { group, topic, partition, value: None });
    assert!(!pending.has_group("g"));
    assert_eq!(pending.end(1, COMMIT), Ended::default());
    assert_eq!(pending, PendingPositions::default());
}
