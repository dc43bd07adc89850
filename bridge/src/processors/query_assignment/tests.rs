use std::sync::Arc;

use super::*;
use crate::backend::{
    ClientFacts, ConsumeFromWhere, ConsumeType, ConsumerHeartbeat, Subscription, SubscriptionGroup,
};
use crate::fake::{Client, FakeBackend};
use crate::remoting::RemotingCommand;
use crate::session::SessionId;

/// As each client of the original would divide them.
#[test]
fn strategies_divide_all_queues_among_all_members() {
    for (queues, members, average, circle) in [
        (16, 1, vec![(0..16).collect::<Vec<i32>>()], vec![(0..16).collect::<Vec<i32>>()]),
        (
            16,
            3,
            vec![(0..6).collect(), (6..11).collect(), (11..16).collect()],
            vec![vec![0, 3, 6, 9, 12, 15], vec![1, 4, 7, 10, 13], vec![2, 5, 8, 11, 14]],
        ),
        (2, 3, vec![vec![0], vec![1], vec![]], vec![vec![0], vec![1], vec![]]),
        (0, 2, vec![vec![], vec![]], vec![vec![], vec![]]),
    ] {
        for (strategy, expected) in
            [(Strategy::Average, average), (Strategy::AverageByCircle, circle)]
        {
            let shares = (0..members).map(|member| strategy.allocate(queues, members, member));
            assert_eq!(shares.collect::<Vec<_>>(), expected, "{strategy:?} {queues} {members}");
        }
    }
}

async fn join(backend: &FakeBackend, client_id: &str) {
    let subscription = Subscription {
        topic: "t1".into(),
        expression: "*".into(),
        expression_type: "TAG".into(),
        tags: Vec::new(),
        tag_hashes: Vec::new(),
        version: 1,
        class_filter_mode: false,
    };
    let heartbeat = ConsumerHeartbeat {
        group: Arc::from("g"),
        client: ClientFacts {
            client_id: Arc::from(client_id),
            language: 0,
            version: 513,
            address: "127.0.0.1:50000".parse().expect("an address"),
            session: SessionId(1),
        },
        consume_type: ConsumeType::Passively,
        message_model: MessageModel::Clustering,
        consume_from_where: ConsumeFromWhere::LastOffset,
        subscriptions: Some(vec![Arc::new(subscription)]),
        notify: true,
    };
    backend.consumer_heartbeat(heartbeat).await.expect("registered");
}

async fn assignment(client: &Client, id: &str, strategy: &str, model: &str) -> String {
    let body = format!(
        "{{\"topic\":\"t1\",\"consumerGroup\":\"g\",\"clientId\":\"{id}\",\
         \"strategyName\":\"{strategy}\",\"messageModel\":\"{model}\"}}"
    );
    let answer = client.call(400, &[], body.as_bytes()).await;
    assert_eq!(answer.code, 0);
    String::from_utf8(answer.body.to_vec()).expect("text")
}

/// The queue ids of an answer; `None` if it has no list.
async fn queues(client: &Client, id: &str, strategy: &str, model: &str) -> Option<Vec<i32>> {
    let text = assignment(client, id, strategy, model).await;
    let rows = text.strip_prefix("{\"messageQueueAssignments\":[")?;
    let ids = rows.split("\"queueId\":").skip(1);
    Some(ids.map(|rest| rest.split(',').next().unwrap().parse().unwrap()).collect())
}

#[tokio::test]
async fn each_member_gets_its_share() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 5);
    let client = Client::new(backend.clone());
    assert_eq!(queues(&client, "a", "AVG", "CLUSTERING").await, None, "no such group");
    for id in ["b", "a"] {
        join(&backend, id).await;
    }
    for (id, strategy, model, expected) in [
        ("a", "AVG", "CLUSTERING", Some(vec![0, 1, 2])),
        ("b", "AVG", "CLUSTERING", Some(vec![3, 4])),
        ("a", "AVG_BY_CIRCLE", "CLUSTERING", Some(vec![0, 2, 4])),
        ("b", "AVG_BY_CIRCLE", "CLUSTERING", Some(vec![1, 3])),
        ("c", "AVG", "CLUSTERING", Some(vec![])),
        ("a", "CONSISTENT_HASH", "CLUSTERING", None),
        ("c", "AVG", "BROADCASTING", Some(vec![0, 1, 2, 3, 4])),
    ] {
        assert_eq!(queues(&client, id, strategy, model).await, expected, "{id} {strategy}");
    }
    backend.change_topic("t1", |topic| topic.perm = 2);
    assert_eq!(queues(&client, "a", "AVG", "CLUSTERING").await, Some(vec![]), "not readable");
}

#[tokio::test]
async fn a_mode_is_kept_for_a_group_on_a_topic() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let config = SubscriptionGroup::with_defaults(Arc::from("g"));
    backend.put_subscription_group(config).await.expect("stored");
    join(&backend, "a").await;
    let client = Client::new(backend);
    for (topic, group, mode, code) in [
        ("t1", "g", "PULL", 0),
        ("t1", "g", "POP", 0),
        ("t1", "g", "ODD", 29),
        ("nowhere", "g", "PULL", 17),
        ("t1", "a b", "PULL", 26),
        ("%RETRY%g", "g", "POP", 16),
    ] {
        let answer = set_mode(&client, (topic, group), mode, 0).await;
        assert_eq!(answer.code, code, "{topic} {group} {mode}: {:?}", answer.remark);
    }
    let all_of_it = r#"{"messageQueueAssignments":[{"messageQueue":{"brokerName":"broker-a","queueId":-1,"topic":"t1"},"mode":"POP"}]}"#;
    let body = assignment(&client, "a", "AVG", "CLUSTERING").await;
    assert_eq!(body, all_of_it);
    assert_eq!(set_mode(&client, ("t1", "g"), "PULL", 0).await.code, 0);
    let pulled = all_of_it.replace("-1", "0").replace("POP", "PULL");
    assert_eq!(assignment(&client, "a", "AVG", "CLUSTERING").await, pulled);
}

#[tokio::test]
async fn popping_members_share_the_queues_of_those_after_them() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 5);
    for id in ["a", "b", "c", "d"] {
        join(&backend, id).await;
    }
    let client = Client::new(backend.clone());
    for (share, id, expected) in [
        (0, "a", vec![-1]),
        (3, "b", vec![-1]),
        (99, "nobody", vec![-1]),
        (1, "a", vec![0, 1, 2]),
        (1, "d", vec![0, 1, 4]),
        (2, "c", vec![0, 1, 3, 4]),
        (1, "nobody", vec![]),
    ] {
        assert_eq!(set_mode(&client, ("t1", "g"), "POP", share).await.code, 0);
        let queues = queues(&client, id, "AVG", "CLUSTERING").await;
        assert_eq!(queues, Some(expected), "{share} {id}");
    }
    backend.change_topic("t1", |topic| topic.read_queues = 3);
    for (id, queue) in [("a", 0), ("c", 2), ("d", 0)] {
        let queues = queues(&client, id, "AVG", "CLUSTERING").await;
        assert_eq!(queues, Some(vec![queue]), "more members than queues: {id}");
    }
    backend.change_topic("t1", |topic| topic.perm = 2);
    assert_eq!(queues(&client, "a", "AVG", "CLUSTERING").await, Some(vec![]), "not readable");
}

async fn set_mode(
    client: &Client,
    (topic, group): (&str, &str),
    mode: &str,
    share: i32,
) -> RemotingCommand {
    let body = format!(
        "{{\"topic\":\"{topic}\",\"consumerGroup\":\"{group}\",\"mode\":\"{mode}\",\
         \"popShareQueueNum\":{share}}}"
    );
    client.call(401, &[], body.as_bytes()).await
}
