use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::backend::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionGroup};
use crate::golden::rows;
use crate::remoting::LanguageCode;
use crate::translate::properties::java_hash;

fn golden(file: &str, name: &str) -> String {
    let row = rows(file).into_iter().find(|row| row[0] == name).unwrap();
    row[1].clone()
}

const VERSIONS: [&str; 3] = ["4.4.0", "4.9.8", "5.5.0"];

fn client(version: &str, name: &str) -> String {
    golden(&format!("{version}/client-bodies.tsv"), name)
}

fn assert_server(name: &str, body: &Bytes) {
    let expected = golden("5.5.0/server-bodies.tsv", name);
    assert_eq!(std::str::from_utf8(body).unwrap(), expected, "{name}");
}

fn subscription(expression: &str, tags: &[&str]) -> SubscriptionData {
    SubscriptionData {
        topic: "orders".to_owned(),
        sub_string: expression.to_owned(),
        expression_type: "TAG".to_owned(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        codes: tags.iter().map(|tag| java_hash(tag)).collect(),
        sub_version: 1_700_000_000_000,
        class_filter_mode: false,
    }
}

fn heartbeat() -> HeartbeatData {
    HeartbeatData {
        client_id: "127.0.0.1@1#2".to_owned(),
        producers: vec!["group-p".to_owned()],
        consumers: vec![ConsumerData {
            group_name: "group-c".to_owned(),
            consume_type: ConsumeType::Passively,
            message_model: MessageModel::Clustering,
            consume_from_where: ConsumeFromWhere::LastOffset,
            subscriptions: vec![subscription("Aa || TagB", &["Aa", "TagB"])],
            unit_mode: false,
        }],
        heartbeat_fingerprint: 0,
        is_without_sub: false,
    }
}

#[test]
fn heartbeats_of_java_clients_are_read() {
    for version in VERSIONS {
        let read = HeartbeatData::decode(client(version, "HeartbeatData").as_bytes());
        assert_eq!(read, Ok(heartbeat()), "{version}");
    }
}

/// The C++ client sends enums as numbers, and little else.
#[test]
fn heartbeats_with_numbers_for_names_are_read() {
    let text = r#"{"clientID":"c","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,
        "groupName":"g","messageModel":0,"subscriptionDataSet":[{"codeSet":["2112"],
        "subString":"Aa","subVersion":"5","tagsSet":["Aa"],"topic":"t"}]}],
        "producerDataSet":null}"#;
    let read = HeartbeatData::decode(text.as_bytes()).unwrap();
    let consumer = &read.consumers[0];
    assert_eq!(consumer.message_model, MessageModel::Broadcasting);
    assert_eq!(consumer.consume_from_where, ConsumeFromWhere::FirstOffset);
    let expected =
        SubscriptionData { topic: "t".to_owned(), sub_version: 5, ..subscription("Aa", &["Aa"]) };
    assert_eq!(consumer.subscriptions, [expected]);
}

#[test]
fn broken_heartbeats_are_refused_by_the_name_of_the_field() {
    for (text, field) in [
        ("{}", "clientID"),
        (r#"{"clientID":"c","consumerDataSet":5}"#, "consumerDataSet"),
        (r#"{"clientID":"c","consumerDataSet":[{"consumeType":"X"}]}"#, "consumeType"),
        (r#"{"clientID":"c","consumerDataSet":[{"messageModel":9}]}"#, "messageModel"),
        (r#"{"clientID":"c","heartbeatFingerprint":"x"}"#, "heartbeatFingerprint"),
    ] {
        let error = HeartbeatData::decode(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(field), "{text}: {error}");
    }
    assert!(HeartbeatData::decode(b"").is_err());
}

#[test]
fn other_bodies_of_java_clients_are_read() {
    for version in VERSIONS {
        let check = client(version, "CheckClientRequestBody");
        let check = CheckClientRequestBody::decode(check.as_bytes()).unwrap();
        assert_eq!((check.client_id.as_str(), check.group.as_str()), ("127.0.0.1@1#2", "group-c"));
        let data = check.subscription_data.unwrap();
        assert_eq!((data.expression_type.as_str(), data.sub_version), ("SQL92", 5));
        assert_eq!(data.sub_string, "a > 5 AND b = 'x'");
        let lock = client(version, "LockBatchRequestBody");
        let lock = LockBatchRequestBody::decode(lock.as_bytes()).unwrap();
        assert_eq!((lock.consumer_group.as_str(), lock.only_this_broker), ("group-c", false));
        assert_eq!(lock.queues, [queue()]);
        let group = client(version, "SubscriptionGroupConfig");
        let group = SubscriptionGroupConfig::decode(group.as_bytes()).unwrap();
        assert_eq!(group.0, SubscriptionGroup::with_defaults(Arc::from("group-c")), "{version}");
    }
}

fn queue() -> MessageQueue {
    MessageQueue { topic: "orders".to_owned(), broker_name: "broker-a".to_owned(), queue_id: 3 }
}

fn broker() -> BrokerData {
    BrokerData {
        cluster: "DefaultCluster".to_owned(),
        broker_name: "broker-a".to_owned(),
        addresses: vec![(0, "127.0.0.1:10911".to_owned())],
    }
}

#[test]
fn cluster_bodies_are_those_of_the_original() {
    let route = TopicRouteData {
        queues: vec![QueueData {
            broker_name: "broker-a".to_owned(),
            read_queue_nums: 4,
            write_queue_nums: 4,
            perm: 6,
            topic_sys_flag: 0,
        }],
        brokers: vec![broker()],
        order_conf: None,
    };
    assert_server("TopicRouteData", &route.encode(JsonStyle::Fastjson));
    let standard = route.encode(JsonStyle::Standard);
    let expected = golden("5.5.0/server-bodies.tsv", "TopicRouteData").replace("{0:", "{\"0\":");
    assert_eq!(std::str::from_utf8(&standard).unwrap(), expected);
    assert_server("ClusterInfo", &ClusterInfo { brokers: vec![broker()] }.encode());
    assert_server("TopicList", &TopicList { topics: vec!["orders".to_owned()] }.encode());
    let table = |name: &str, value: &str| KVTable {
        table: BTreeMap::from([(name.to_owned(), value.to_owned())]),
    };
    assert_server("KVTable", &table("brokerVersionDesc", "V5_5_0").encode());
}

#[test]
fn group_bodies_are_those_of_the_original() {
    let ids = vec!["127.0.0.1@1".to_owned(), "127.0.0.1@2".to_owned()];
    let members = GetConsumerListByGroupResponseBody { consumer_id_list: ids };
    assert_server("GetConsumerListByGroupResponseBody", &members.encode());
    let connection = Connection {
        client_id: "127.0.0.1@1".to_owned(),
        client_addr: "127.0.0.1:50000".to_owned(),
        language: LanguageCode::JAVA,
        version: 513,
    };
    let consumers = ConsumerConnection {
        connections: vec![connection.clone()],
        subscriptions: vec![subscription("*", &[])],
        consume_type: ConsumeType::Passively,
        message_model: MessageModel::Clustering,
        consume_from_where: ConsumeFromWhere::LastOffset,
    };
    assert_server("ConsumerConnection", &consumers.encode());
    let producers = ProducerConnection { connections: vec![connection] };
    assert_server("ProducerConnection", &producers.encode());
    assert_server("GroupList", &GroupList { groups: vec!["group-c".to_owned()] }.encode());
    let locked = LockBatchResponseBody { locked: vec![queue()] };
    assert_server("LockBatchResponseBody", &locked.encode());
    let group = SubscriptionGroup::with_defaults(Arc::from("group-c"));
    assert_server("SubscriptionGroupConfig", &SubscriptionGroupConfig::encode(&group));
}

#[test]
fn tables_by_queue_have_objects_for_keys() {
    let wrapper = OffsetWrapper {
        broker_offset: 10,
        consumer_offset: 7,
        pull_offset: 8,
        last_timestamp: 1_700_000_000_000,
    };
    let stats = ConsumeStats { consume_tps: 0.0, offsets: vec![(queue(), wrapper)] };
    assert_server("ConsumeStats", &stats.encode());
    let offset =
        TopicOffset { min_offset: 1, max_offset: 10, last_update_timestamp: 1_700_000_000_000 };
    let table = TopicStatsTable { topic_put_tps: 0.0, offsets: vec![(queue(), offset)] };
    assert_server("TopicStatsTable", &table.encode());
    let empty = TopicStatsTable { topic_put_tps: 12.5, offsets: Vec::new() };
    assert_server("TopicStatsTable-empty", &empty.encode());
}

#[test]
fn topic_configurations_are_those_of_the_original() {
    let mut config = TopicConfig {
        topic_name: "orders".to_owned(),
        read_queue_nums: 4,
        write_queue_nums: 4,
        perm: 6,
        topic_sys_flag: 0,
        order: false,
        attributes: BTreeMap::new(),
    };
    assert_server("TopicConfig", &config.encode());
    assert_server("TopicConfigAndQueueMapping", &config.encode());
    config.attributes.insert("message.type".to_owned(), "FIFO".to_owned());
    assert_server("TopicConfig-attributes", &config.encode());
}

/// A retry policy that we do not act on comes back as it was given.
#[test]
fn a_retry_policy_is_kept() {
    let text = r#"{"groupName":"g","groupRetryPolicy":{"type":"EXPONENTIAL",
        "exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2}}}"#;
    let group = SubscriptionGroupConfig::decode(text.as_bytes()).unwrap().0;
    let policy = "{\"type\":\"EXPONENTIAL\",\"exponentialRetryPolicy\":{\"initial\":5000,\
                  \"max\":7200000,\"multiplier\":2}}";
    assert_eq!(group.retry_policy, policy);
    let again = SubscriptionGroupConfig::encode(&group);
    assert_eq!(SubscriptionGroupConfig::decode(&again).unwrap().0, group);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _any = HeartbeatData::decode(&bytes);
        let _any = CheckClientRequestBody::decode(&bytes);
        let _any = SubscriptionGroupConfig::decode(&bytes);
        let _any = LockBatchRequestBody::decode(&bytes);
    }

    /// Any cut and any changed byte of a good body is read or refused.
    #[test]
    fn no_damage_panics(place in 0..400_usize, byte in any::<u8>()) {
        let mut text = client("5.5.0", "HeartbeatData").into_bytes();
        let place = place % text.len();
        let _any = HeartbeatData::decode(&text[..place]);
        text[place] = byte;
        let _any = HeartbeatData::decode(&text);
    }
}
