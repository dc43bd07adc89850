use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Records written by Kafka; see the README beside them.
const GOLDEN: &str = include_str!("../../../tests/golden/coordinator/records.txt");

fn unhex(text: &str) -> Bytes {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(digit).collect()
}

pub(super) fn golden() -> BTreeMap<&'static str, RecordBytes> {
    let record = |line: &'static str| {
        let [name, key, value] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three fields: {line}");
        };
        let value = (value != "-").then(|| unhex(value));
        (name, RecordBytes { key: unhex(key), value })
    };
    GOLDEN.lines().map(record).collect()
}

pub(super) fn decode(record: &RecordBytes) -> Result<Option<Record>, RecordError> {
    Record::decode(&record.key, record.value.as_ref())
}

const COMMIT_MS: i64 = 1_700_000_000_000;
const EXPIRE_MS: i64 = 1_700_000_009_999;
pub(super) const TOPIC_ID: TopicId =
    TopicId([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);

fn value(offset: i64, leader_epoch: i32, metadata: &str) -> OffsetValue {
    OffsetValue {
        offset,
        leader_epoch,
        metadata: metadata.into(),
        commit_ms: COMMIT_MS,
        expire_ms: None,
        topic_id: TopicId::ZERO,
    }
}

fn offset(value: Option<OffsetValue>) -> Record {
    Record::Offset { group: "group".into(), topic: "topic".into(), partition: 7, value }
}

fn group(value: Option<GroupValue>) -> Record {
    Record::Group { group: "group".into(), value }
}

/// The group of the golden records, without what its version does not have.
fn group_value(version: i16) -> GroupValue {
    let bytes = |length: u8| (1..=length).collect::<Bytes>();
    let member = |n: u8, host: &str, rebalance, session, subscription, assignment| MemberValue {
        member_id: format!("m{n}").into(),
        group_instance_id: (n == 2 && version >= 3).then(|| "i2".into()),
        client_id: format!("c{n}").into(),
        client_host: host.into(),
        rebalance_timeout_ms: if version >= 1 { rebalance } else { -1 },
        session_timeout_ms: session,
        subscription: bytes(subscription),
        assignment: bytes(assignment),
    };
    GroupValue {
        protocol_type: "consumer".into(),
        generation: 5,
        protocol: Some("range".into()),
        leader: Some("m1".into()),
        state_ms: if version >= 2 { COMMIT_MS } else { -1 },
        members: vec![
            member(1, "/127.0.0.1", 300_000, 45_000, 2, 3),
            member(2, "/::1", 60_000, 6_000, 200, 0),
        ],
    }
}

#[test]
fn what_is_written_equals_what_kafka_writes() {
    let golden = golden();
    let expiring = OffsetValue { expire_ms: Some(EXPIRE_MS), ..value(42, 3, "ä€😀") };
    let empty = GroupValue {
        protocol_type: "consumer".into(),
        generation: 6,
        state_ms: COMMIT_MS,
        ..GroupValue::default()
    };
    let rows = [
        ("offset", offset(Some(OffsetValue { topic_id: TOPIC_ID, ..value(42, 3, "note") }))),
        ("offset.plain", offset(Some(value(0, -1, "")))),
        ("offset.expiring", offset(Some(OffsetValue { topic_id: TOPIC_ID, ..expiring.clone() }))),
        ("offset.long", offset(Some(value(i64::MAX, 0, &"m".repeat(200))))),
        ("offset.gone", offset(None)),
        ("group", group(Some(group_value(3)))),
        ("group.empty", group(Some(empty))),
        ("group.gone", group(None)),
    ];
    for (name, record) in &rows {
        let written = &golden[&*format!("helper.{name}")];
        assert_eq!(&record.encode().expect("storable"), written, "{name}");
        if *name != "offset.expiring" {
            assert_eq!(decode(written), Ok(Some(record.clone())), "{name}");
        }
    }
    let read = decode(&golden["helper.offset.expiring"]);
    let without = OffsetValue { leader_epoch: -1, ..expiring };
    assert_eq!(read, Ok(Some(offset(Some(without)))), "version 1 has neither epoch nor topic id");
    let helpers = golden.keys().filter(|name| name.starts_with("helper.")).count();
    assert_eq!(helpers, rows.len(), "every golden record is looked at");
}

#[test]
fn every_version_is_read() {
    let golden = golden();
    for version in 0..=4 {
        let expected = OffsetValue {
            leader_epoch: if version >= 3 { 3 } else { -1 },
            expire_ms: (version == 1).then_some(EXPIRE_MS),
            topic_id: if version >= 4 { TOPIC_ID } else { TopicId::ZERO },
            ..value(42, -1, "note")
        };
        let read = decode(&golden[&*format!("offset.v{version}")]);
        assert_eq!(read, Ok(Some(offset(Some(expected)))), "offset v{version}");
        let read = decode(&golden[&*format!("group.v{version}")]);
        assert_eq!(read, Ok(Some(group(Some(group_value(version))))), "group v{version}");
        let read = decode(&golden[&*format!("group.v{version}.empty")]);
        let nobody = GroupValue { state_ms: -1, ..GroupValue::default() };
        assert_eq!(read, Ok(Some(group(Some(nobody)))), "empty group v{version}");
    }
    let plain = Ok(Some(offset(Some(value(42, -1, "note")))));
    assert_eq!(decode(&golden["offset.v1.never"]), plain, "−1 is no expiry time");
    assert_eq!(decode(&golden["offset.legacy"]), plain);
}

#[test]
fn types_that_are_none_of_ours_are_left_in_the_log() {
    assert_eq!(decode(&golden()["other.share-group"]), Ok(None));
    for version in [-1_i16, 4, 9, 17, 23, 24, i16::MAX, i16::MIN] {
        let key = Bytes::copy_from_slice(&version.to_be_bytes());
        assert_eq!(Record::decode(&key, None), Ok(None));
    }
}

#[test]
fn a_family_is_stored_under_a_key_version_far_from_kafkas() {
    let value = FamilyValue { family: Family::RocketMq, since_ms: COMMIT_MS };
    let record = Record::Family { group: "group".into(), value: Some(value) };
    let stored = record.encode().expect("storable");
    assert_eq!(stored.key, &b"\x44\x4c\0\x05group"[..]);
    assert_eq!(stored.value.as_deref(), Some(&b"\0\0\x01\0\0\x01\x8b\xcf\xe5\x68\0"[..]));
    assert_eq!(decode(&stored), Ok(Some(record)));
    let gone = Record::Family { group: "group".into(), value: None };
    assert_eq!(decode(&gone.encode().expect("storable")), Ok(Some(gone)));
}

#[test]
fn what_cannot_be_read_is_told() {
    let key = offset(None).encode().expect("storable").key;
    let group_key = group(None).encode().expect("storable").key;
    let family_key = Bytes::from_static(b"\x44\x4c\0\x01g");
    let rows: [(&Bytes, &'static [u8], RecordError); 11] = [
        (&key, b"", RecordError::Truncated("value version")),
        (&key, b"\0\x05", RecordError::ValueVersion { key: 1, value: 5 }),
        (&key, b"\xff\xff", RecordError::ValueVersion { key: 1, value: -1 }),
        (&key, b"\0\0\0\0\0\0\0\0\0\x01\xff\xff", RecordError::Null("metadata")),
        (&key, b"\0\0\0\0\0\0\0\0\0\x01\0\x02\xff\xff", RecordError::NotUtf8("metadata")),
        (&key, b"\0\0\0\0\0\0\0\0\0\x01\x7f\xffab", RecordError::Truncated("metadata")),
        (&group_key, b"\0\x05", RecordError::ValueVersion { key: 2, value: 5 }),
        (
            &group_key,
            b"\0\0\0\0\0\0\0\x01\xff\xff\xff\xff\x7f\xff\xff\xff",
            RecordError::Truncated("members"),
        ),
        (
            &group_key,
            b"\0\0\0\0\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff",
            RecordError::Null("members"),
        ),
        (&family_key, b"\0\x01", RecordError::ValueVersion { key: FAMILY_KEY_VERSION, value: 1 }),
        (&family_key, b"\0\0\x09", RecordError::UnknownFamily(9)),
    ];
    for (key, value, error) in rows {
        assert_eq!(Record::decode(key, Some(&Bytes::from_static(value))), Err(error), "{value:?}");
    }
    let no_text = Bytes::from_static(b"\0\x02\xff\xff");
    assert_eq!(Record::decode(&no_text, None), Err(RecordError::Null("group")));
    assert_eq!(Record::decode(&Bytes::new(), None), Err(RecordError::Truncated("key version")));
}

#[test]
fn bytes_after_the_last_field_are_ignored_as_kafka_does() {
    for (name, record) in golden() {
        let longer = |bytes: &Bytes| Bytes::from([&bytes[..], b"more"].concat());
        let value = record.value.as_ref().map(longer);
        assert_eq!(Record::decode(&longer(&record.key), value.as_ref()), decode(&record), "{name}");
    }
}

#[test]
fn strings_that_do_not_fit_their_length_are_not_stored() {
    let long: Arc<str> = "x".repeat(crate::limits::STRING_BYTES_MAX + 1).into();
    let record = Record::Group { group: long.clone(), value: None };
    assert_eq!(record.encode(), Err(TooLong("group")));
    let value = GroupValue { leader: Some(long), ..GroupValue::default() };
    assert_eq!(group(Some(value)).encode(), Err(TooLong("leader")));
    let fits: Arc<str> = "x".repeat(crate::limits::STRING_BYTES_MAX).into();
    let record = Record::Group { group: fits, value: None };
    assert_eq!(decode(&record.encode().expect("storable")), Ok(Some(record)));
}

fn text() -> impl Strategy<Value = Arc<str>> {
    prop_oneof!["[a-z]{0,8}", "\\PC{0,40}"].prop_map(Arc::from)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn any_offset() -> impl Strategy<Value = OffsetValue> {
    let topic_id = any::<[u8; 16]>().prop_map(TopicId);
    let expire = prop::option::of(0..i64::MAX);
    (any::<i64>(), any::<i32>(), text(), any::<i64>(), expire, topic_id).prop_map(
        |(offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id)| OffsetValue {
            offset,
            // Version 1 has neither.
            leader_epoch: if expire_ms.is_some() { -1 } else { leader_epoch },
            metadata,
            commit_ms,
            expire_ms,
            topic_id: if expire_ms.is_some() { TopicId::ZERO } else { topic_id },
        },
    )
}

fn any_member() -> impl Strategy<Value = MemberValue> {
    let names = (text(), prop::option::of(text()), text(), text());
    (names, any::<(i32, i32)>(), (bytes(), bytes())).prop_map(
        |((member_id, group_instance_id, client_id, client_host), timeouts, data)| MemberValue {
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms: timeouts.0,
            session_timeout_ms: timeouts.1,
            subscription: data.0,
            assignment: data.1,
        },
    )
}

fn any_record() -> impl Strategy<Value = Record> {
    let offset = (text(), text(), any::<i32>(), prop::option::of(any_offset())).prop_map(
        |(group, topic, partition, value)| Record::Offset { group, topic, partition, value },
    );
    let names = (text(), prop::option::of(text()), prop::option::of(text()));
    let group_value = (names, any::<(i32, i64)>(), prop::collection::vec(any_member(), 0..5))
        .prop_map(|((protocol_type, protocol, leader), (generation, state_ms), members)| {
            GroupValue { protocol_type, generation, protocol, leader, state_ms, members }
        });
    let group = (text(), prop::option::of(group_value))
        .prop_map(|(group, value)| Record::Group { group, value });
    let family = (text(), prop::option::of(any::<i64>())).prop_map(|(group, since)| {
        let value = since.map(|since_ms| FamilyValue { family: Family::RocketMq, since_ms });
        Record::Family { group, value }
    });
    prop_oneof![offset, group, family]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_written_is_read(record in any_record()) {
        let stored = record.encode().expect("storable");
        prop_assert_eq!(decode(&stored), Ok(Some(record)));
    }

    #[test]
    fn no_bytes_panic(
        kind in prop::sample::select(vec![0_i16, 1, 2, 3, 5, 6, 7, 8, 9, 16, FAMILY_KEY_VERSION]),
        version in 0..6_i16,
        key in bytes(),
        value in bytes(),
    ) {
        let prefixed = |version: i16, rest: &Bytes| {
            Bytes::from([&version.to_be_bytes()[..], rest].concat())
        };
        let well_formed = Bytes::from([&kind.to_be_bytes()[..], b"\0\x01g\0\x01t\0\0\0\0"].concat());
        let _ = Record::decode(&prefixed(kind, &key), None);
        let _ = Record::decode(&well_formed, Some(&prefixed(version, &value)));
    }

    #[test]
    fn a_cut_or_changed_record_does_not_panic(
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
    ) {
        for record in golden().into_values() {
            let Some(value) = record.value else { continue };
            let mut changed = value.to_vec();
            let at = at.index(changed.len());
            let _ = Record::decode(&record.key, Some(&value.slice(..at)));
            changed[at] = to;
            let _ = Record::decode(&record.key, Some(&changed.into()));
        }
    }
}
