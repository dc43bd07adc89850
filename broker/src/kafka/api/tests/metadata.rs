//! Metadata by name and by id.

use duolog_log_core::ids::TopicId;

use crate::kafka::codec::messages::metadata_request::MetadataRequestTopic;
use crate::kafka::codec::messages::{MetadataRequest, MetadataResponse};
use crate::testing::served::TestNode;

#[tokio::test(flavor = "multi_thread")]
async fn metadata_creates_what_it_may() {
    let node = TestNode::start(&["num.partitions=3"]).await;
    let mut client = node.connect().await;
    let ask = |name: &str, create| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(name.into()),
            ..MetadataRequestTopic::default()
        }]),
        allow_auto_topic_creation: create,
        ..MetadataRequest::default()
    };
    for (name, create, code, partitions) in
        [("t", false, 3, 0), ("a/b", true, 17, 0), ("t", true, 0, 3), ("t", false, 0, 3)]
    {
        let response: MetadataResponse = client.call(9, &ask(name, create)).await;
        let topic = &response.topics[0];
        assert_eq!((topic.error_code, topic.partitions.len()), (code, partitions), "{name}");
    }
    let all: MetadataResponse =
        client.call(12, &MetadataRequest { topics: None, ..MetadataRequest::default() }).await;
    assert_eq!((all.topics.len(), all.brokers.len()), (1, 1));
    assert_eq!(all.brokers[0].port, i32::from(node.kafka.port()));
    assert_eq!(all.cluster_id, Some(node.node.cluster_id()));
    // By id, with the name null or, as the Java client leaves it, empty.
    let topic_id = all.topics[0].topic_id;
    for (name, topic_id, code, partitions) in [
        (None, topic_id, 0, 3),
        (Some("".into()), topic_id, 0, 3),
        (None, TopicId([9; 16]), 100, 0),
    ] {
        let topics = Some(vec![MetadataRequestTopic { name, topic_id }]);
        let request = MetadataRequest { topics, ..MetadataRequest::default() };
        let response: MetadataResponse = client.call(12, &request).await;
        let topic = &response.topics[0];
        assert_eq!((topic.error_code, topic.partitions.len()), (code, partitions));
        assert_eq!(topic.topic_id, topic_id);
    }
    // Beside an id names do not count: none is created.
    let beside = |name: &str, topic_id| MetadataRequestTopic { name: Some(name.into()), topic_id };
    let topics = Some(vec![beside("new", TopicId::ZERO), beside("other", topic_id)]);
    let mixed = MetadataRequest { topics, ..MetadataRequest::default() };
    let response: MetadataResponse = client.call(12, &mixed).await;
    let names: Vec<_> = response.topics.iter().map(|topic| topic.name.as_deref()).collect();
    assert_eq!(names, [Some("t")]);
    // Before version 12 ids are not asked for.
    for version in [10, 11] {
        let response: MetadataResponse = client.call(version, &mixed).await;
        let codes: Vec<_> = response.topics.iter().map(|topic| topic.error_code).collect();
        assert_eq!((codes, response.brokers.len()), (vec![42, 42], 0), "v{version}");
    }
    // Named a hundred times, answered once, as Kafka does.
    let name = || MetadataRequestTopic { name: Some("t".into()), ..Default::default() };
    let topics = (0..100).map(|_| name()).collect();
    let request = MetadataRequest { topics: Some(topics), ..MetadataRequest::default() };
    let response: MetadataResponse = client.call(9, &request).await;
    assert_eq!(response.topics.len(), 1);
    node.stop().await;
}
