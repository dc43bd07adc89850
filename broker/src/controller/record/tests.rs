use proptest::prelude::*;

use super::*;

fn samples() -> Vec<MetadataRecord> {
    let overrides = Overrides::from([("retention.ms".to_owned(), "5".to_owned())]);
    let topic = TopicRecord {
        id: TopicId([7; 16]),
        internal: true,
        numbers: vec![0, 1, 8_388_607],
        overrides: overrides.clone(),
    };
    let mut group = SubscriptionGroup::with_defaults("g".into());
    group.attributes.insert("a".to_owned(), "é".to_owned());
    let places = Places {
        dirs: vec![TopicId([3; 16]), TopicId([4; 16])],
        moves: BTreeMap::from([(1, TopicId([3; 16]))]),
    };
    vec![
        MetadataRecord::Cluster { id: TopicId([1; 16]) },
        MetadataRecord::Topic { name: "t".into(), topic: Some(topic) },
        MetadataRecord::Topic { name: "t".into(), topic: None },
        MetadataRecord::DeletedTopic { id: TopicId([7; 16]), name: Some("t".into()) },
        MetadataRecord::DeletedTopic { id: TopicId([7; 16]), name: None },
        MetadataRecord::Config {
            scope: ConfigScope::Broker,
            name: String::new(),
            values: Some(overrides),
        },
        MetadataRecord::Config { scope: ConfigScope::Group, name: "g".to_owned(), values: None },
        MetadataRecord::SubscriptionGroup { name: "g".into(), group: Some(group) },
        MetadataRecord::SubscriptionGroup { name: "g".into(), group: None },
        MetadataRecord::Kv { namespace: "n".into(), key: "k".into(), value: Some("v".into()) },
        MetadataRecord::Kv { namespace: "n".into(), key: "k".into(), value: None },
        MetadataRecord::NextProducerId(i64::MAX),
        MetadataRecord::NextPartitionNumber(u32::MAX),
        MetadataRecord::LeaderEpoch(7),
        MetadataRecord::Places { id: TopicId([7; 16]), places: Some(places) },
        MetadataRecord::Places { id: TopicId([7; 16]), places: None },
        MetadataRecord::FeatureLevel { name: "group.version".into(), level: 0, epoch: 3 },
    ]
}

#[test]
fn every_record_reads_back() {
    for record in samples() {
        let (key, value) = record.encode().expect("storable");
        assert_eq!(MetadataRecord::decode(&key, value.as_deref()), Ok(record));
    }
}

#[test]
fn a_record_cut_anywhere_is_refused() {
    for record in samples() {
        let (key, value) = record.encode().expect("storable");
        for end in 0..key.len() {
            assert!(MetadataRecord::decode(&key[..end], value.as_deref()).is_err(), "{record:?}");
        }
        if let Some(value) = value {
            for end in 0..value.len() {
                assert!(MetadataRecord::decode(&key, Some(&value[..end])).is_err(), "{record:?}");
            }
            let longer = [&value[..], &[0]].concat();
            assert_eq!(
                MetadataRecord::decode(&key, Some(&longer)),
                Err(MetadataRecordError::TrailingBytes(1))
            );
        }
    }
}

#[test]
fn what_a_text_cannot_hold_is_refused_and_not_cut() {
    let kv = |length: usize| MetadataRecord::Kv {
        namespace: "n".into(),
        key: "k".into(),
        value: Some("é".repeat(length / 2) + &"v".repeat(length % 2)),
    };
    let longest = kv(65_535);
    let (key, value) = longest.encode().expect("storable");
    assert_eq!(MetadataRecord::decode(&key, value.as_deref()), Ok(longest));
    assert_eq!(kv(65_536).encode(), Err(TextTooLong { bytes: 65_536 }));
    let key = MetadataRecord::Kv { namespace: "n".repeat(70_000), key: "k".into(), value: None };
    assert_eq!(key.encode(), Err(TextTooLong { bytes: 70_000 }));
}

#[test]
fn a_newer_version_is_refused() {
    assert_eq!(MetadataRecord::decode(&[0, 99], None), Err(MetadataRecordError::UnknownType(99)));
    assert_eq!(
        MetadataRecord::decode(&[0, 6], Some(&[0, 1])),
        Err(MetadataRecordError::UnknownVersion { kind: 6, version: 1 })
    );
}

proptest! {
    #[test]
    fn no_bytes_panic(key in any::<Vec<u8>>(), value in any::<Option<Vec<u8>>>()) {
        let _ = MetadataRecord::decode(&key, value.as_deref());
    }

    #[test]
    fn no_value_of_a_known_type_panics(kind in 0_u8..11, rest in any::<Vec<u8>>(), value in any::<Vec<u8>>()) {
        let key = [&[0, kind], &rest[..]].concat();
        let value = [&[0, 0], &value[..]].concat();
        let _ = MetadataRecord::decode(&key, Some(&value));
    }
}
