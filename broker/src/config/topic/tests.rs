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
    assert!(check_override("compression.type", "gzip").is_err(), "not acted on yet");
    assert_eq!(check_override("compression.type", "producer"), Ok(()));
}

/// What RocketMQ calls an attribute has a key of its own, or goes into the list of the others.
#[test]
fn attributes_are_settings_and_back() {
    for (attributes, expected) in [
        (&[("message.type", "FIFO")][..], &[("message.type", "FIFO")][..]),
        (
            &[("message.type", "MIXED"), ("rmq.key.source", "none")],
            &[("message.type", "MIXED"), ("rmq.key.source", "none")],
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
