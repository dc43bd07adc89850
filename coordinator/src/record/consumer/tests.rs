use crate::record::tests::{TOPIC_ID, decode, golden};
use crate::record::{Record, TooLong};

use super::*;

fn record(fact: ConsumerFact) -> Record {
    Record::Consumer { group: "group".into(), fact }
}

fn owned(of: &[(i32, i32)]) -> OwnedPartitions {
    OwnedPartitions::from([(TOPIC_ID, of.iter().copied().collect())])
}

fn bytes(length: u8) -> Bytes {
    (1..=length).collect()
}

fn members() -> [MemberMetadata; 2] {
    let plain = MemberMetadata {
        client_id: "c1".into(),
        client_host: "/127.0.0.1".into(),
        topics: ["t".into(), "u".into()].into(),
        rebalance_timeout_ms: 300_000,
        ..MemberMetadata::default()
    };
    let protocol =
        |name: &str, length| StoredProtocol { name: name.into(), metadata: bytes(length) };
    let classic = MemberMetadata {
        instance: Some("i1".into()),
        rack: Some("r1".into()),
        client_id: "c1".into(),
        client_host: "/::1".into(),
        topics: BTreeSet::new(),
        regex: "a.*".into(),
        rebalance_timeout_ms: 60_000,
        assignor: Some("range".into()),
        classic: Some(ClassicMetadata {
            session_timeout_ms: 45_000,
            protocols: vec![protocol("range", 3), protocol("sticky", 200)],
        }),
    };
    [plain, classic]
}

fn current() -> CurrentAssignment {
    CurrentAssignment {
        epoch: 9,
        previous_epoch: 8,
        state: MemberState::UnrevokedPartitions,
        assigned: owned(&[(0, 3), (7, 9)]),
        revoking: owned(&[(8, 2)]),
    }
}

#[test]
fn what_is_written_of_consumer_groups_equals_what_kafka_writes() {
    use ConsumerFact::{Current, Epoch, Member, Regex, Target, TargetEpoch};
    let id = || Arc::from("m1");
    let assigned_ms = 1_700_000_000_000;
    let [plain, classic] = members();
    let nothing = CurrentAssignment {
        epoch: 1,
        previous_epoch: 0,
        state: MemberState::UnreleasedPartitions,
        ..CurrentAssignment::default()
    };
    let topics = ["a".into(), "ab".into()].into();
    let resolved = ResolvedRegex { topics, version: 7, resolved_ms: assigned_ms };
    let rows = [
        ("epoch", Epoch(Some(EpochValue { epoch: 9, metadata_hash: 0x0102_0304_0506_0708 }))),
        ("epoch.plain", Epoch(Some(EpochValue { epoch: 1, metadata_hash: 0 }))),
        ("epoch.gone", Epoch(None)),
        ("member", Member(id(), Some(plain))),
        ("member.classic", Member(id(), Some(classic))),
        ("member.gone", Member(id(), None)),
        ("targets", TargetEpoch(Some(TargetEpochValue { epoch: 9, assigned_ms }))),
        ("targets.plain", TargetEpoch(Some(TargetEpochValue { epoch: 9, assigned_ms: 0 }))),
        ("targets.gone", TargetEpoch(None)),
        ("target", Target(id(), Some(Assignment::from([(TOPIC_ID, [0, 7].into())])))),
        ("target.empty", Target(id(), Some(Assignment::new()))),
        ("target.gone", Target(id(), None)),
        ("current", Current(id(), Some(current()))),
        ("current.empty", Current(id(), Some(nothing))),
        ("current.gone", Current(id(), None)),
        ("regex", Regex("a.*".into(), Some(resolved))),
        ("regex.gone", Regex("a.*".into(), None)),
    ];
    let golden = golden();
    for (name, fact) in rows {
        let written = &golden[&*format!("consumer.{name}")];
        assert_eq!(fact.is_tombstone(), name.ends_with(".gone"));
        let record = record(fact);
        assert_eq!(&record.encode().expect("storable"), written, "{name}");
        assert_eq!(decode(written), Ok(Some(record)), "{name}");
    }
}

#[test]
fn partitions_without_epochs_of_their_own_have_the_members() {
    let before = CurrentAssignment {
        assigned: owned(&[(0, 9), (7, 9)]),
        revoking: owned(&[(8, 9)]),
        ..current()
    };
    let expected = record(ConsumerFact::Current("m1".into(), Some(before)));
    assert_eq!(decode(&golden()["consumer.current.old"]), Ok(Some(expected)));
}

#[test]
fn other_versions_and_long_names_are_refused() {
    let golden = golden();
    let target = &golden["consumer.target"];
    let mut value = target.value.clone().expect("a value").to_vec();
    value[1] = 1;
    let later = Record::decode(&target.key, Some(&value.into()));
    assert_eq!(later, Err(RecordError::ValueVersion { key: 7, value: 1 }));
    let long: Arc<str> = "x".repeat(crate::limits::STRING_BYTES_MAX + 1).into();
    let refused = record(ConsumerFact::Regex(long, None)).encode();
    assert_eq!(refused, Err(TooLong("regular expression")));
}
