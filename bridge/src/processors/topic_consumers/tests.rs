use std::sync::Arc;

use crate::backend::{Backend, Subscription, SubscriptionGroup};
use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn by_subscription_and_by_position() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t.1", 1);
    backend.add_topic("other", 1);
    let subscription = |topic: &str| Subscription {
        topic: topic.into(),
        expression: "*".into(),
        expression_type: "TAG".into(),
        tags: Vec::new(),
        tag_hashes: Vec::new(),
        version: 1,
        class_filter_mode: false,
    };
    for (group, topic) in [("live", "t_1"), ("elsewhere", "other")] {
        let config = SubscriptionGroup::with_defaults(Arc::from(group));
        backend.put_subscription_group(config).await.expect("stored");
        backend.register(group, subscription(topic)).await;
    }
    backend.commit_offset("kafka", &topic, 0, 3).await.expect("committed");
    let client = Client::new(backend);
    for (name, expected) in [
        ("t_1", "{\"groupList\":[\"kafka\",\"live\"]}"),
        ("other", "{\"groupList\":[\"elsewhere\"]}"),
        ("nowhere", "{\"groupList\":[]}"),
    ] {
        let answer = client.call(300, &[("topic", name)], b"").await;
        assert_eq!(String::from_utf8_lossy(&answer.body), expected, "{name}");
    }
    let topics = client.call(343, &[("group", "kafka")], b"").await;
    let expected = "{\"brokerAddr\":\"127.0.0.1:10911\",\"topicList\":[\"t_1\"]}";
    assert_eq!(String::from_utf8_lossy(&topics.body), expected);
}
