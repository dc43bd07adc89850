//! What the peer's cases do not show: names and topics that are this node's own.

use super::*;
use crate::controller::names::{METADATA_TOPIC, OFFSETS_TOPIC};
use crate::kafka::codec::messages::create_partitions_request::CreatePartitionsTopic;
use crate::kafka::codec::messages::create_topics_request::CreatableTopic;
use crate::kafka::codec::messages::delete_topics_request::DeleteTopicState;
use crate::kafka::codec::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use crate::kafka::codec::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteTopicsRequest, DeleteTopicsResponse, DescribeConfigsRequest,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};
use crate::kafka::errors::ErrorCode;

async fn create(served: &Served, name: &str, partitions: i32) -> (i16, String) {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: -1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
    let response: CreateTopicsResponse = served.ask(7, &request).await;
    let topic = response.topics.first().expect("a result");
    (topic.error_code, topic.error_message.as_deref().unwrap_or_default().to_owned())
}

async fn delete(served: &Served, version: i16, name: &str) -> i16 {
    let topics = vec![DeleteTopicState { name: Some(name.into()), ..DeleteTopicState::default() }];
    let request = if version < 6 {
        DeleteTopicsRequest {
            topic_names: vec![name.into()],
            timeout_ms: 1000,
            ..DeleteTopicsRequest::default()
        }
    } else {
        DeleteTopicsRequest { topics, timeout_ms: 1000, ..DeleteTopicsRequest::default() }
    };
    let response: DeleteTopicsResponse = served.ask(version, &request).await;
    response.responses.first().expect("a result").error_code
}

#[tokio::test]
async fn names_that_are_not_a_clients_are_refused() {
    let served = Served::start(&[]).await;
    let (code, text) = create(&served, "__rmq.retry.g", 1).await;
    assert_eq!(code, ErrorCode::InvalidTopicException.code(), "{text}");
    for name in [METADATA_TOPIC, "__cluster_metadata"] {
        let (code, text) = create(&served, name, 1).await;
        assert_eq!(code, ErrorCode::InvalidRequest.code());
        assert_eq!(text, format!("Creation of internal topic {name} is prohibited."));
    }
    assert_eq!(served.node.controller.image().topics().count(), 0, "nothing was created");
}

#[tokio::test]
async fn the_topic_of_the_coordinators_stays_as_it_is() {
    let served = Served::start(&["offsets.topic.num.partitions=3"]).await;
    served.node.open_coordinators().await.expect("coordinators");
    assert_eq!(delete(&served, 6, OFFSETS_TOPIC).await, ErrorCode::InvalidRequest.code());
    let topic = CreatePartitionsTopic {
        name: OFFSETS_TOPIC.into(),
        count: 4,
        ..CreatePartitionsTopic::default()
    };
    let request = CreatePartitionsRequest {
        topics: vec![topic],
        timeout_ms: 1000,
        ..CreatePartitionsRequest::default()
    };
    let response: CreatePartitionsResponse = served.ask(3, &request).await;
    let result = response.results.first().expect("a result");
    assert_eq!(result.error_code, ErrorCode::InvalidRequest.code());
    let image = served.node.controller.image();
    let topic = image.topic(OFFSETS_TOPIC).expect("still there");
    assert_eq!(topic.partition_count(), 3);
}

#[tokio::test]
async fn topics_stay_where_deletion_is_disabled() {
    let served = Served::start(&["delete.topic.enable=false"]).await;
    assert_eq!(create(&served, "t", 1).await.0, ErrorCode::None.code());
    // Kafka 4.3.1 answers so too.
    for (version, wanted) in [
        (1, ErrorCode::InvalidRequest),
        (2, ErrorCode::InvalidRequest),
        (3, ErrorCode::TopicDeletionDisabled),
        (6, ErrorCode::TopicDeletionDisabled),
    ] {
        assert_eq!(delete(&served, version, "t").await, wanted.code(), "v{version}");
    }
    assert!(served.node.controller.image().topic("t").is_some());
}

#[tokio::test]
async fn a_topic_is_gone_in_the_answer_and_can_be_created_again() {
    let served = Served::start(&[]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        assert_eq!(create(&served, "t", 2).await.0, ErrorCode::None.code());
        ids.push(served.node.controller.image().topic("t").expect("created").id);
        assert_eq!(delete(&served, 5, "t").await, ErrorCode::None.code());
        assert!(served.node.controller.image().topic("t").is_none());
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has its own id");
}

fn set_retention(name: &str, value: &str) -> IncrementalAlterConfigsRequest {
    let config = AlterableConfig {
        name: "retention.ms".into(),
        config_operation: 0,
        value: Some(value.into()),
    };
    let resource = AlterConfigsResource {
        resource_type: 2,
        resource_name: name.into(),
        configs: vec![config],
    };
    IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false }
}

#[tokio::test]
async fn a_changed_setting_acts_at_once_and_outlives_the_topics_growth() {
    let served = Served::start(&[]).await;
    create(&served, "t", 1).await;
    let response: IncrementalAlterConfigsResponse =
        served.ask(1, &set_retention("t", "5000")).await;
    assert_eq!(response.responses.first().expect("a result").error_code, 0);
    let id = served.node.controller.image().topic("t").expect("there").id;
    served.node.controller.create_partitions(id, 2).await.expect("grown");
    let topic = served.node.controller.image().topic("t").expect("there").clone();
    assert_eq!((topic.config.retention_ms, topic.partition_count()), (5000, 2));
}

#[tokio::test]
async fn what_is_no_list_is_not_taken_from_whatever_the_resource_is_called() {
    let served = Served::start(&[]).await;
    let mut request = set_retention("", "1000");
    for (kind, name, key, code) in [
        (2, "a b", "retention.ms", ErrorCode::InvalidConfig),
        (2, "", "retention.ms", ErrorCode::InvalidConfig),
        (2, "a b", "cleanup.policy", ErrorCode::InvalidTopicException),
        (2, "", "cleanup.policy", ErrorCode::InvalidRequest),
        (32, "", "consumer.session.timeout.ms", ErrorCode::InvalidConfig),
        (16, "", "metrics", ErrorCode::InvalidConfig),
    ] {
        let resource = request.resources.first_mut().expect("one");
        (resource.resource_type, resource.resource_name) = (kind, name.into());
        let config = resource.configs.first_mut().expect("one");
        (config.name, config.config_operation) = (key.into(), 3);
        let response: IncrementalAlterConfigsResponse = served.ask(1, &request).await;
        let result = response.responses.first().expect("a result");
        assert_eq!(result.error_code, code.code(), "{kind} {name:?} {key}");
    }
}

#[tokio::test]
async fn long_names_and_values_come_back_in_texts_that_fit() {
    let served = Served::start(&[]).await;
    create(&served, "t", 1).await;
    let request = set_retention("t", &"9".repeat(30_000));
    let response: IncrementalAlterConfigsResponse = served.ask(1, &request).await;
    let result = response.responses.first().expect("a result");
    assert_eq!(result.error_code, ErrorCode::InvalidConfig.code());
    assert!(result.error_message.as_ref().is_some_and(|text| text.len() <= 4096));
    let (code, text) = create(&served, &"n".repeat(30_000), 1).await;
    assert_eq!(code, ErrorCode::InvalidTopicException.code());
    assert!(text.len() <= 4096);
    let none = DescribeConfigsRequest::default();
    let response: crate::kafka::codec::messages::DescribeConfigsResponse =
        served.ask(4, &none).await;
    assert!(response.results.is_empty());
}
