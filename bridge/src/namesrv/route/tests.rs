use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};
use crate::remoting::{RemotingCommand, SerializeType};
use crate::session::Door;

const FAQ: &str = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

fn text(answer: &RemotingCommand) -> &str {
    std::str::from_utf8(&answer.body).expect("text")
}

async fn route(
    client: &Client,
    topic: &str,
    version: i32,
    fields: &[(&str, &str)],
) -> RemotingCommand {
    let mut request =
        RemotingCommand::request(105, 1, SerializeType::Json).with_field("topic", topic);
    request.version = version;
    for (name, value) in fields {
        request.ext_fields.push(name, value);
    }
    client.send(request).await.expect("an answer")
}

#[tokio::test]
async fn a_route_is_one_broker_with_all_queues() {
    let backend = FakeBackend::new();
    backend.change_topic("t1", |topic| {
        (topic.partitions, topic.read_queues, topic.write_queues, topic.perm) = (5, 5, 3, 4);
    });
    let client = Client::new(backend).at(Door::NameServer);
    let answer = route(&client, "t1", 513, &[]).await;
    assert_eq!(
        text(&answer),
        "{\"brokerDatas\":[{\"brokerAddrs\":{\"0\":\"127.0.0.1:10911\"},\
         \"brokerName\":\"broker-a\",\"cluster\":\"DefaultCluster\",\
         \"enableActingMaster\":false}],\"filterServerTable\":{},\
         \"queueDatas\":[{\"brokerName\":\"broker-a\",\"perm\":4,\"readQueueNums\":5,\
         \"topicSysFlag\":0,\"writeQueueNums\":3}]}"
    );
}

/// Pitfall 11: clients of one group must see one list of queues, whatever their version.
#[tokio::test]
async fn every_version_sees_the_same_queues() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 7);
    let client = Client::new(backend).at(Door::NameServer);
    let newest = text(&route(&client, "t1", 513, &[]).await).to_owned();
    for version in [0, 233, 293, 400, 401, 409, 500] {
        let answer = route(&client, "t1", version, &[]).await;
        assert_eq!(text(&answer).replace("{0:", "{\"0\":"), newest, "{version}");
    }
}

#[tokio::test]
async fn old_clients_get_bare_numbers_as_keys() {
    let client = Client::new(FakeBackend::new()).at(Door::NameServer);
    let standard = [("acceptStandardJsonOnly", "true")];
    for (version, fields, key) in [
        (513, &[][..], "{\"0\":"),
        (401, &[], "{\"0\":"),
        (400, &[], "{0:"),
        (0, &[], "{0:"),
        (0, &standard, "{\"0\":"),
    ] {
        let answer = route(&client, "TBW102", version, fields).await;
        assert!(text(&answer).contains(&format!("\"brokerAddrs\":{key}")), "{version}");
    }
}

#[tokio::test]
async fn topics_that_have_no_route() {
    let backend = FakeBackend::new();
    backend.change_topic("__consumer_offsets", |topic| topic.internal = true);
    backend.add_topic("or.ders", 1);
    backend.configure(|config| config.auto_create_topic = false);
    let client = Client::new(backend).at(Door::NameServer);
    for topic in ["nowhere", "", "TBW102", "__consumer_offsets", "__rmq.n.x"] {
        let answer = route(&client, topic, 513, &[]).await;
        let remark = format!("No topic route info in name server for the topic: {topic}{FAQ}");
        assert_eq!((answer.code, answer.remark), (17, Some(remark)));
    }
    assert_eq!(route(&client, "or_ders", 513, &[]).await.code, 0, "by its alias");
}

/// As mqadmin consumerProgress asks for a group of Kafka's.
#[tokio::test]
async fn a_group_with_positions_is_found_by_the_route_of_its_retry_topic() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t1", 1);
    backend.commit_offset("kafkas", &topic, 0, 5).await.expect("committed");
    let client = Client::new(backend).at(Door::NameServer);
    let answer = route(&client, "%RETRY%kafkas", 513, &[]).await;
    assert!(text(&answer).contains("\"perm\":4,\"readQueueNums\":1"), "{answer:?}");
    assert_eq!(route(&client, "%RETRY%nobody", 513, &[]).await.code, 17);
    let list = client.call(206, &[], b"").await;
    assert_eq!(text(&list), "{\"topicList\":[\"%RETRY%kafkas\",\"TBW102\",\"t1\"]}");
}

#[tokio::test]
async fn the_list_shows_what_has_a_route() {
    let backend = FakeBackend::new();
    backend.change_topic("__consumer_offsets", |topic| topic.internal = true);
    backend.change_topic("__rmq.retry.g", |topic| topic.internal = true);
    backend.add_topic("or.ders", 1);
    backend.add_topic(&"x".repeat(200), 1);
    backend.add_topic("t1", 1);
    let client = Client::new(backend.clone()).at(Door::NameServer);
    let list = client.call(206, &[], b"").await;
    assert_eq!(text(&list), "{\"topicList\":[\"%RETRY%g\",\"TBW102\",\"or_ders\",\"t1\"]}");
    backend.configure(|config| config.auto_create_topic = false);
    let list = client.call(206, &[], b"").await;
    assert_eq!(text(&list), "{\"topicList\":[\"%RETRY%g\",\"or_ders\",\"t1\"]}");
}

#[tokio::test]
async fn the_cluster_is_one_broker() {
    let client = Client::new(FakeBackend::new()).at(Door::NameServer);
    let info = client.call(106, &[], b"").await;
    assert_eq!(
        text(&info),
        "{\"brokerAddrTable\":{\"broker-a\":{\"brokerAddrs\":{0:\"127.0.0.1:10911\"},\
         \"brokerName\":\"broker-a\",\"cluster\":\"DefaultCluster\",\
         \"enableActingMaster\":false}},\"clusterAddrTable\":{\"DefaultCluster\":[\"broker-a\"]}}"
    );
}

#[tokio::test]
async fn small_configuration() {
    let client = Client::new(FakeBackend::new()).at(Door::NameServer);
    let of = |key| [("namespace", "n"), ("key", key)];
    let put = [&of("k")[..], &[("value", "v 1")]].concat();
    assert_eq!(client.call(100, &put, b"").await.code, 0);
    let got = client.call(101, &of("k"), b"").await;
    assert_eq!((got.code, got.ext_fields.get("value")), (0, Some("v 1")));
    for delete in [(102, &of("k")[..]), (102, &of("k")), (100, &of("k"))] {
        assert_eq!(client.call(delete.0, delete.1, b"").await.code, 0);
        let got = client.call(101, &of("k"), b"").await;
        let remark = "No config item, Namespace: n Key: k";
        assert_eq!((got.code, got.remark.as_deref()), (22, Some(remark)));
    }
}

/// As in the original, whose brokers tell their topics to a name server that is another process.
#[tokio::test]
async fn what_is_not_published_is_there_for_the_broker_alone() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    backend.add_topic("t2", 1);
    backend.unpublish("t1");
    let broker = Client::new(backend);
    let client = broker.at(Door::NameServer);
    assert_eq!(route(&client, "t1", 513, &[]).await.code, 17);
    assert_eq!(route(&client, "t2", 513, &[]).await.code, 0);
    for (code, fields) in [(206, [("", "")]), (224, [("cluster", "DefaultCluster")])] {
        let list = client.call(code, &fields, b"").await;
        assert!(text(&list).contains("\"t2\"") && !text(&list).contains("\"t1\""), "{code}");
    }
    assert_eq!(broker.call(351, &[("topic", "t1")], b"").await.code, 0);
}

#[tokio::test]
async fn the_clusters_name_shows_the_way_to_its_broker() {
    let client = Client::new(FakeBackend::new()).at(Door::NameServer);
    let answer = route(&client, "DefaultCluster", 513, &[]).await;
    let route = text(&answer);
    assert_eq!(answer.code, 0, "{:?}", answer.remark);
    for part in ["\"brokerName\":\"broker-a\"", "\"perm\":4", "\"writeQueueNums\":1"] {
        assert!(route.contains(part), "{route}");
    }
}
