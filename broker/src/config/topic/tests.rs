use super::*;

fn values(assignments: &[&str]) -> Values {
    let mut values = Values::default();
    for assignment in assignments {
        values.set_from_flag(assignment).expect(assignment);
    }
    values
}

fn overrides(pairs: &[(&str, &str)]) -> Overrides {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn an_override_wins_over_the_nodes_default() {
    let values = values(&["log.retention.hours=1", "log.segment.bytes=2097152"]);
    let config = TopicConfig::resolve(&values, &Overrides::new()).expect("valid");
    assert_eq!((config.retention_ms, config.segment_bytes), (3_600_000, 2_097_152));
    assert_eq!(config.cleanup, Cleanup { delete: true, compact: false });
    assert_eq!(config.rmq_write_queues, None);
    let own = overrides(&[("retention.ms", "-1"), ("cleanup.policy", "compact,delete")]);
    let config = TopicConfig::resolve(&values, &own).expect("valid");
    assert_eq!((config.retention_ms, config.segment_bytes), (-1, 2_097_152));
    assert_eq!(config.cleanup, Cleanup { delete: true, compact: true });
}

#[test]
fn the_first_broker_key_in_kafkas_order_gives_the_default() {
    let values = values(&["log.retention.hours=1", "log.retention.minutes=1"]);
    let config = TopicConfig::resolve(&values, &Overrides::new()).expect("valid");
    assert_eq!(config.retention_ms, 60_000);
}

#[test]
fn an_override_is_refused_with_kafkas_words() {
    assert_eq!(check_override("flush.messages", "0").expect_err("below one"), {
        "Invalid value 0 for configuration flush.messages: Value must be at least 1"
    });
    let text = check_override("retention.mss", "1").expect_err("unknown");
    assert_eq!(text, "Unknown topic config name: retention.mss");
    assert!(check_override("preallocate", "true").is_err(), "not acted on yet");
    assert_eq!(check_override("preallocate", "false"), Ok(()));
}

/// What RocketMQ calls an attribute has a key of its own, or goes into the list of the others.
#[test]
fn attributes_are_settings_and_back() {
    for (attributes, expected) in [
        (&[("message.type", "FIFO")][..], &[("message.type", "FIFO")][..]),
        (
            &[("message.type", "MIXED"), ("rmq.key.index", "rmq"), ("rmq.key.source", "none")],
            &[("message.type", "MIXED"), ("rmq.key.index", "rmq"), ("rmq.key.source", "none")],
        ),
        (
            &[("queue.type", "SimpleCQ"), ("reserve.time", "-1")],
            &[("rmq.attributes", "queue.type=SimpleCQ,reserve.time=-1")],
        ),
    ] {
        let attributes = overrides(attributes);
        assert_eq!(attribute_overrides(&attributes), overrides(expected));
        let own = attribute_overrides(&attributes);
        let config = TopicConfig::resolve(&Values::default(), &own).expect("valid");
        let shown = config.attributes();
        assert!(attributes.iter().all(|pair| shown.contains_key(pair.0)), "{shown:?}");
    }
    assert!(check_override("rmq.key.source", "tags").is_err());
}

/// Key of a topic, a value other than its default, what becomes of it.
const ROWS: [(&str, &str, &str); 27] = [
    ("cleanup.policy", "compact", "cleanup: Cleanup { delete: false, compact: true },"),
    ("compression.type", "gzip", "compression: Some(Gzip),"),
    ("delete.retention.ms", "7", "delete_retention_ms: 7,"),
    ("file.delete.delay.ms", "7", "file_delete_delay_ms: 7,"),
    ("flush.messages", "7", "flush_messages: 7,"),
    ("flush.ms", "7", "flush_ms: 7,"),
    ("index.interval.bytes", "7", "index_interval_bytes: 7,"),
    ("max.compaction.lag.ms", "7", "max_compaction_lag_ms: 7,"),
    ("max.message.bytes", "70", "max_message_bytes: 70,"),
    ("message.timestamp.after.max.ms", "7", "timestamp_after_max_ms: 7,"),
    ("message.timestamp.before.max.ms", "7", "timestamp_before_max_ms: 7,"),
    ("message.timestamp.type", "LogAppendTime", "timestamp_type: LogAppendTime,"),
    ("message.type", "FIFO", "message_type: Some(\"FIFO\"),"),
    ("min.cleanable.dirty.ratio", "0.7", "min_cleanable_dirty_ratio: 0.7,"),
    ("min.compaction.lag.ms", "7", "min_compaction_lag_ms: 7,"),
    ("min.insync.replicas", "2", "min_insync_replicas: 2,"),
    ("retention.bytes", "7000", "retention_bytes: 7000,"),
    ("retention.ms", "7", "retention_ms: 7,"),
    ("rmq.key.index", "rmq", "rmq_key_index: Rmq,"),
    ("rmq.key.source", "none", "rmq_key_source: Nothing,"),
    ("rmq.order", "true", "rmq_order: true,"),
    ("rmq.perm", "4", "rmq_perm: 4,"),
    ("rmq.read.queues", "3", "rmq_read_queues: Some(3),"),
    ("rmq.sys.flag", "1", "rmq_sys_flag: 1,"),
    ("rmq.write.queues", "3", "rmq_write_queues: Some(3),"),
    ("segment.bytes", "2097152", "segment_bytes: 2097152,"),
    ("segment.index.bytes", "70", "segment_index_bytes: 70,"),
];

/// Keys that are written in another unit than the topic's.
const UNITS: [(&str, i64); 3] = [
    ("log.retention.minutes", 60_000),
    ("log.retention.hours", 3_600_000),
    ("log.roll.hours", 3_600_000),
];

fn resolved(values: &Values, own: &Overrides) -> String {
    format!("{:?}", TopicConfig::resolve(values, own).expect("valid"))
}

#[test]
fn every_key_of_a_topic_and_every_default_of_the_node_reaches_it() {
    let mut rows = ROWS.to_vec();
    rows.push(("segment.ms", "7", "segment_ms: 7,"));
    let plain = resolved(&Values::default(), &Overrides::new());
    let mut seen = Vec::new();
    for (name, value, shown) in rows {
        assert!(!plain.contains(shown), "{name}: {value} is its default");
        let own = resolved(&Values::default(), &overrides(&[(name, value)]));
        assert!(own.contains(shown), "{name}={value}: {own}");
        seen.push(name);
        for synonym in &key::topic_key(name).expect("known").synonyms {
            let unit = UNITS.iter().find(|(name, _)| name == synonym).map(|(_, unit)| unit);
            let shown = match unit {
                None => shown.to_owned(),
                Some(unit) => shown.replace(" 7,", &format!(" {},", 7 * unit)),
            };
            let set = values(&[&format!("{synonym}={value}")]);
            let inherited = resolved(&set, &Overrides::new());
            assert!(inherited.contains(&shown), "{synonym}={value}: {inherited}");
        }
    }
    let attributes = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    let own = TopicConfig::resolve(&Values::default(), &attribute_overrides(&attributes));
    assert!(own.expect("valid").attributes().contains_key("k"), "rmq.attributes");
    seen.push("rmq.attributes");
    seen.sort_unstable();
    let acting: Vec<_> =
        key::topic_keys().iter().filter(|key| key.acts).map(|key| key.name).collect();
    assert_eq!(seen, acting);
}
