use super::*;

fn overrides(pairs: &[(&str, &str)]) -> Overrides {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn changed(
    change: fn(&Values, &Overrides, &[KeyChange]) -> Result<Overrides, ChangeError>,
    held: &[(&str, &str)],
    changes: &[(&str, Change)],
) -> Result<Overrides, ChangeError> {
    let values = Values::default();
    let changes: Vec<_> =
        changes.iter().map(|(name, change)| ((*name).to_owned(), change.clone())).collect();
    change(&values, &overrides(held), &changes)
}

fn set(value: &str) -> Change {
    Change::Set(value.to_owned())
}

fn append(value: &str) -> Change {
    Change::Append(value.to_owned())
}

fn subtract(value: &str) -> Change {
    Change::Subtract(value.to_owned())
}

#[test]
fn a_topics_values_are_set_and_deleted() {
    let held = [("retention.ms", "5"), ("segment.ms", "7")];
    let found = changed(topic, &held, &[("retention.ms", Change::Delete), ("flush.ms", set("9"))]);
    assert_eq!(found, Ok(overrides(&[("segment.ms", "7"), ("flush.ms", "9")])));
    assert_eq!(changed(topic, &[], &[("no.such", Change::Delete)]), Ok(Overrides::new()));
    let refused = changed(topic, &held, &[("flush.ms", set("9")), ("segment.ms", set("0"))]);
    assert!(refused.is_err(), "all or nothing");
}

#[test]
fn lists_grow_and_shrink_from_what_is_held_or_else_the_default() {
    let check = |held: Option<&str>, change, wanted: &str| {
        let mut after = Overrides::new();
        after.extend(held.map(|held| ("l".to_owned(), held.to_owned())));
        let default = Some("a,b".to_owned());
        apply(&mut after, "l", &change, default);
        assert_eq!(after.get("l").map(String::as_str), Some(wanted));
    };
    check(None, append("c"), "a,b,c");
    check(None, append("b, a"), "a,b");
    check(Some("x"), append("b,a"), "x,b,a");
    check(None, subtract("a"), "b");
    check(Some("x"), subtract("x,y"), "");
}

#[test]
fn a_topics_refusals_have_kafkas_words() {
    let refused = |name, change| match changed(topic, &[], &[(name, change)]) {
        Err(ChangeError::InvalidConfig(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("no.such", set("1")), "Unknown topic config name: no.such");
    assert_eq!(refused("retention.ms", append("1")), {
        "Can't APPEND to key retention.ms because its type is not LIST."
    });
    assert_eq!(refused("no.such", subtract("1")), {
        "Can't SUBTRACT to key no.such because its type is not LIST."
    });
    let both = [("cleanup.policy", set("shred")), ("retention.ms", append("1"))];
    assert_eq!(changed(topic, &[], &both), {
        let text = "Can't APPEND to key retention.ms because its type is not LIST.";
        Err(ChangeError::InvalidConfig(text.to_owned()))
    });
    assert_eq!(refused("segment.ms", set("0")), {
        "Invalid value 0 for configuration segment.ms: Value must be at least 1"
    });
    assert_eq!(refused("cleanup.policy", append("shred")), {
        "Invalid value shred for configuration cleanup.policy: \
         String must be one of: compact, delete"
    });
}

#[test]
fn the_node_takes_defaults_of_topics_while_it_runs_and_nothing_else() {
    let found = changed(broker, &[], &[("log.retention.ms", set("60000"))]);
    assert_eq!(found, Ok(overrides(&[("log.retention.ms", "60000")])));
    let refused = |name, value| changed(broker, &[], &[(name, set(value))]).expect_err(name);
    assert_eq!(refused("num.partitions", "3"), {
        ChangeError::InvalidRequest(
            "Cannot update these configs dynamically: [num.partitions]".into(),
        )
    });
    assert_eq!(refused("message.max.bytes", "x"), {
        let text = "Invalid value x for configuration message.max.bytes: Not a number of type INT";
        ChangeError::InvalidRequest(text.into())
    });
    assert_eq!(refused("no.such", "3"), {
        ChangeError::InvalidConfig("Unknown broker config name: no.such".into())
    });
    let text = refused("log.roll.jitter.ms", "5").to_string();
    assert!(text.contains("does not act on it yet"), "{text}");
}

/// Values that a key's own rule refuses, and why.
const REFUSED: &[(&str, &str, &str)] = &[
    ("log.retention.ms", "abc", "Not a number of type LONG"),
    ("log.segment.bytes", "1", "Value must be at least 1048576"),
    ("message.max.bytes", "-1", "Value must be at least 0"),
    ("max.connections", "-1", "Value must be at least 0"),
    ("max.connection.creation.rate", "-1", "Value must be at least 0"),
    ("producer.id.expiration.ms", "0", "Value must be at least 1"),
    ("min.insync.replicas", "0", "Value must be at least 1"),
    ("group.consumer.assignment.interval.ms", "-1", "Value must be at least 0"),
    ("log.message.timestamp.type", "x", "String must be one of: CreateTime, LogAppendTime"),
    (
        "compression.type",
        "foo",
        "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    (
        "transaction.partition.verification.enable",
        "maybe",
        "Expected value to be either true or false",
    ),
];

/// As a Kafka 4.3.1 answered `kafka-configs` with the same.
#[test]
fn a_nodes_refusals_have_kafkas_words() {
    let wrapped = |text: &str| {
        format!(
            "Invalid value org.apache.kafka.common.config.ConfigException: {text} for configuration \
             Invalid dynamic configuration"
        )
    };
    let refused = |name, value| match changed(broker, &[], &[(name, set(value))]) {
        Err(ChangeError::InvalidRequest(text)) => text,
        other => panic!("{name}={value}: {other:?}"),
    };
    for name in ["log.retention.hours", "num.partitions"] {
        let text = format!("Cannot update these configs dynamically: [{name}]");
        assert_eq!(refused(name, "5"), text);
    }
    for &(name, value, reason) in REFUSED {
        let text = format!("Invalid value {value} for configuration {name}: {reason}");
        assert_eq!(refused(name, value), text);
    }
    for (name, value, text) in [
        (
            "log.retention.ms",
            "0",
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        ("log.roll.ms", "0", "requirement failed: log.roll.ms must be greater than or equal to 1"),
        (
            "log.cleaner.dedupe.buffer.size",
            "1",
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        ("log.cleaner.threads", "0", "/ by zero"),
        (
            "group.consumer.assignment.interval.ms",
            "99999999",
            "group.consumer.assignment.interval.ms must be less than or equal to \
             group.consumer.max.assignment.interval.ms",
        ),
        (
            "max.connections.per.ip.overrides",
            "bad",
            "Error parsing configuration property 'max.connections.per.ip.overrides': \
             begin 0, end -1, length 3",
        ),
    ] {
        assert_eq!(refused(name, value), text);
    }
    let more = "Log cleaner threads cannot be increased to more than double the current value 1";
    assert_eq!(refused("log.cleaner.threads", "10"), wrapped(more));
    let none = "Invalid max.connection.creation.rate 0";
    assert_eq!(refused("max.connection.creation.rate", "0"), wrapped(none));
    for (name, value) in [
        ("log.retention.ms", "-2"),
        ("log.retention.bytes", "-5"),
        ("log.flush.interval.ms", "-5"),
        ("log.cleaner.threads", "2"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "127.0.0.1:5,[::1]:6"),
    ] {
        let after = changed(broker, &[], &[(name, set(value))]);
        assert_eq!(after, Ok(overrides(&[(name, value)])));
    }
    assert_eq!(changed(broker, &[], &[("never.set", Change::Delete)]), Ok(Overrides::new()));
}
