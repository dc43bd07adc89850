use super::*;

fn topic(id: u8, overrides: &[(&str, &str)]) -> TopicRecord {
    TopicRecord {
        id: TopicId([id; 16]),
        internal: false,
        numbers: vec![u32::from(id), u32::from(id) + 100],
        overrides: overrides
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

fn put(image: &mut Image, name: &str, record: TopicRecord) {
    let record = MetadataRecord::Topic { name: name.into(), topic: Some(record) };
    assert!(matches!(image.apply(record), Ok(Change::TopicPut(_))));
}

#[test]
fn a_topic_is_found_by_name_id_and_alias_until_it_goes() {
    let mut image = Image::empty(Values::default());
    put(&mut image, "orders.v1", topic(1, &[("rmq.write.queues", "1")]));
    let before = image.clone();
    let found = image.topic_by_alias("orders_v1").expect("by alias");
    assert_eq!((found.queues.write_queues, found.queues.read_queues), (1, 2));
    assert!(image.topic("orders_v1").is_none());
    assert_eq!(image.topic_by_id(TopicId([1; 16])).expect("by id").name, "orders.v1".into());
    assert_eq!(image.colliding_topic("orders_v1").expect("collides").name, "orders.v1".into());
    assert!(image.colliding_topic("orders.v1").is_none());
    let gone = MetadataRecord::Topic { name: "orders.v1".into(), topic: None };
    assert!(matches!(image.apply(gone), Ok(Change::TopicGone(_))));
    assert!(image.topic_by_alias("orders_v1").is_none());
    assert!(image.topic_by_id(TopicId([1; 16])).is_none());
    assert!(before.topic("orders.v1").is_some(), "an image never changes once published");
}

#[test]
fn a_name_with_underscores_collides_with_dots() {
    let mut image = Image::empty(Values::default());
    put(&mut image, "a_b", topic(1, &[]));
    assert_eq!(image.colliding_topic("a.b").expect("collides").name, "a_b".into());
    assert!(image.colliding_topic("a_b").is_none());
}

#[test]
fn dynamic_values_reach_every_topic() {
    let mut image = Image::empty(Values::default());
    put(&mut image, "t", topic(1, &[]));
    let set = |value: Option<&str>| MetadataRecord::Config {
        scope: ConfigScope::Broker,
        name: String::new(),
        values: value.map(|value| Overrides::from([("log.retention.ms".into(), value.into())])),
    };
    assert!(matches!(image.apply(set(Some("5"))), Ok(Change::AllTopics)));
    assert_eq!(image.topic("t").expect("kept").config.retention_ms, 5);
    assert!(matches!(image.apply(set(None)), Ok(Change::AllTopics)));
    assert_eq!(image.topic("t").expect("kept").config.retention_ms, 604_800_000);
}

#[test]
fn an_image_is_made_again_by_its_own_records() {
    let mut image = Image::empty(Values::default());
    put(&mut image, "t", topic(1, &[("retention.ms", "9")]));
    for record in [
        MetadataRecord::Cluster { id: TopicId([9; 16]) },
        MetadataRecord::DeletedTopic { id: TopicId([2; 16]), name: Some("old".into()) },
        MetadataRecord::Kv { namespace: "n".into(), key: "k".into(), value: Some("v".into()) },
        MetadataRecord::NextProducerId(2000),
        MetadataRecord::NextPartitionNumber(102),
        MetadataRecord::SubscriptionGroup {
            name: "g".into(),
            group: Some(SubscriptionGroup::with_defaults("g".into())),
        },
    ] {
        image.apply(record).expect("applies");
    }
    let mut again = Image::empty(Values::default());
    for record in image.records() {
        again.apply(record).expect("applies");
    }
    assert_eq!(again.records(), image.records());
    assert_eq!(again.kv("n", "k").map(String::as_str), Some("v"));
}
