use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn every_topic_that_clients_see_is_told() {
    let backend = FakeBackend::new();
    backend.add_topic("t", 2);
    backend.add_topic("__rmq.retry.g", 1);
    backend.change_topic("__consumer_offsets", |topic| topic.internal = true);
    let client = Client::new(backend);
    let answer = client.call(21, &[], &[]).await;
    assert_eq!((answer.code, answer.ext_fields.get("totalTopicNum")), (0, Some("2")));
    let config = |name: &str, queues: i32| {
        format!(
            "\"{name}\":{{\"attributes\":{{}},\"order\":false,\"perm\":6,\"readQueueNums\":{queues},\
             \"topicFilterType\":\"SINGLE_TAG\",\"topicName\":\"{name}\",\"topicSysFlag\":0,\
             \"writeQueueNums\":{queues}}}"
        )
    };
    let version = "{\"counter\":0,\"stateVersion\":0,\"timestamp\":1700000000000}";
    let expected = format!(
        "{{\"dataVersion\":{version},\"mappingDataVersion\":{version},\"topicConfigTable\":{{{},{}}},\
         \"topicQueueMappingDetailMap\":{{}},\"topicQueueMappingInfoMap\":{{}}}}",
        config("%RETRY%g", 1),
        config("t", 2),
    );
    assert_eq!(String::from_utf8_lossy(&answer.body), expected);
}
