use super::*;

#[test]
fn every_line_of_the_tables_is_read_once() {
    for table in [
        include_str!("../kafka.tsv"),
        include_str!("../rocketmq.tsv"),
        include_str!("../topic.tsv"),
        include_str!("../group.tsv"),
    ] {
        let lines: Vec<_> = table.lines().filter(|line| !line.starts_with('#')).collect();
        let keys: Vec<_> = parse_table(table).collect();
        assert_eq!(keys.len(), lines.len());
    }
    for keys in [broker_keys(), topic_keys(), group_keys()] {
        assert!(keys.windows(2).all(|pair| pair[0].name < pair[1].name), "sorted, no doubles");
    }
}

#[test]
fn every_default_passes_its_own_check() {
    for key in broker_keys().iter().chain(topic_keys()).chain(group_keys()) {
        if let Some(default) = key.default {
            assert_eq!(key.check(default), Ok(()), "{}", key.name);
        }
    }
}

#[test]
fn a_topics_and_a_groups_defaults_name_known_broker_keys() {
    for key in topic_keys().iter().chain(group_keys()) {
        for synonym in &key.synonyms {
            assert!(broker_key(synonym).is_some(), "{synonym}");
        }
    }
}

#[test]
fn values_are_checked_for_type_range_and_effect() {
    let refused = |name: &str, value: &str| {
        let key = broker_key(name).or_else(|| topic_key(name)).expect("a known key");
        key.check(value).expect_err(value)
    };
    assert_eq!(refused("num.partitions", "many"), "Not a number of type INT");
    assert_eq!(refused("num.partitions", "0"), "Value must be at least 1");
    assert_eq!(refused("rocketmq.listenPort", "65536"), "Value must be no more than 65535");
    assert_eq!(refused("auto.create.topics.enable", "yes"), {
        "Expected value to be either true or false"
    });
    assert_eq!(refused("cleanup.policy", "delete,shrink"), {
        "String must be one of: compact, delete"
    });
    assert_eq!(refused("rocketmq.brokerName", ""), "String must be non-empty");
    assert!(refused("rocketmq.aclEnable", "true").contains("its default false"));
    assert_eq!(refused("compression.gzip.level", "0"), {
        "Value must be between 1 and 9 or equal to -1"
    });
    assert!(refused("compression.gzip.level", "5").contains("its default -1"));
}

#[test]
fn a_refusal_names_what_is_wrong_as_kafka_does() {
    let refused = |name: &str, value: &str| {
        topic_key(name).expect("a known key").check_named(value).expect_err(value)
    };
    assert_eq!(refused("min.cleanable.dirty.ratio", "2"), {
        "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"
    });
    assert_eq!(refused("min.cleanable.dirty.ratio", "half"), {
        "Invalid value half for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE"
    });
    assert_eq!(refused("cleanup.policy", "delete,shrink"), {
        "Invalid value shrink for configuration cleanup.policy: String must be one of: compact, delete"
    });
}

#[test]
fn a_misspelt_key_finds_its_nearest() {
    assert_eq!(nearest(broker_keys(), "num.partition"), Some("num.partitions"));
    assert_eq!(nearest(broker_keys(), "rocketmq.brokername"), Some("rocketmq.brokerName"));
    assert_eq!(nearest(broker_keys(), "zzz"), None);
}
