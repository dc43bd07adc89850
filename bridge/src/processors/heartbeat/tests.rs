use super::*;
use crate::backend::{ConsumeType, MessageModel, SubscriptionGroup};
use crate::fake::{Client, FakeBackend};
use crate::remoting::RemotingCommand;

const HEARTBEAT: i32 = 34;
const UNREGISTER: i32 = 35;

/// One group of a push consumer as the Java client sends it.
fn consumer(group: &str, topic: &str, expression: &str, version: i64) -> String {
    let tags = if expression == "*" { String::new() } else { format!("\"{expression}\"") };
    format!(
        "{{\"consumeFromWhere\":\"CONSUME_FROM_FIRST_OFFSET\",\
         \"consumeType\":\"CONSUME_PASSIVELY\",\"groupName\":\"{group}\",\
         \"messageModel\":\"CLUSTERING\",\"subscriptionDataSet\":[{{\"classFilterMode\":false,\
         \"codeSet\":[],\"expressionType\":\"TAG\",\"subString\":\"{expression}\",\
         \"subVersion\":{version},\"tagsSet\":[{tags}],\"topic\":\"{topic}\"}}],\
         \"unitMode\":false}}"
    )
}

fn data(fingerprint: i32, without_sub: bool, consumers: &[String]) -> String {
    format!(
        "{{\"clientID\":\"c1\",\"consumerDataSet\":[{}],\"heartbeatFingerprint\":{fingerprint},\
         \"producerDataSet\":[{{\"groupName\":\"p1\"}}],\"withoutSub\":{without_sub}}}",
        consumers.join(",")
    )
}

async fn beat(client: &Client, body: &str) -> RemotingCommand {
    client.call(HEARTBEAT, &[], body.as_bytes()).await
}

fn is_changed(answer: &RemotingCommand) -> &str {
    assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
    assert_eq!(answer.ext_fields.get("IS_SUPPORT_HEART_BEAT_V2"), Some("true"));
    answer.ext_fields.get("IS_SUB_CHANGE").expect("a field")
}

#[tokio::test]
async fn a_member_is_registered_with_its_subscription() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let answer = beat(&client, &data(0, false, &[consumer("g", "t1", "TagA", 5)])).await;
    assert_eq!(is_changed(&answer), "true");
    let group = backend.group("g").expect("a group");
    assert_eq!(group.consume_type, ConsumeType::Passively);
    assert_eq!(group.message_model, MessageModel::Clustering);
    let member = &group.members[0].client;
    assert_eq!((&*member.client_id, member.version), ("c1", 513));
    assert_eq!((member.session, member.address), (client.session.id(), client.session.peer()));
    let subscription = &group.subscriptions["t1"];
    assert_eq!((&*subscription.expression, subscription.version), ("TagA", 5));
    assert_eq!(subscription.tag_hashes, [java_hash("TagA")], "made of the text");
    client.dispatcher.close(&client.session);
    assert!(backend.group("g").is_none());
}

#[tokio::test]
async fn producers_are_known_until_they_say_good_bye_or_their_connection_ends() {
    let backend = FakeBackend::new();
    let members = async |backend: &FakeBackend| {
        let members = backend.producer_group("p1").await.expect("a group");
        members.iter().map(|member| member.client.client_id.to_string()).collect::<Vec<_>>()
    };
    let client = Client::new(backend.clone());
    assert_eq!(is_changed(&beat(&client, &data(0, false, &[])).await), "true");
    assert_eq!(members(&backend).await, ["c1"]);
    let fields = [("clientID", "c1"), ("producerGroup", "p1")];
    assert_eq!(client.call(UNREGISTER, &fields, b"").await.code, 0);
    assert_eq!(members(&backend).await, [""; 0]);
    beat(&client, &data(0, false, &[])).await;
    client.dispatcher.close(&client.session);
    assert_eq!(backend.closed_sessions(), [client.session.id()]);
    assert_eq!(members(&backend).await, [""; 0]);
}

#[tokio::test]
async fn a_new_group_gets_its_configuration_and_retry_topic() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let mut config = SubscriptionGroup::with_defaults("three".into());
    config.retry_queues = 3;
    backend.put_subscription_group(config).await.expect("stored");
    beat(&client, &data(0, false, &[consumer("g", "t", "*", 1), consumer("three", "t", "*", 1)]))
        .await;
    assert!(backend.subscription_group("g").is_some());
    for (topic, queues) in [("%RETRY%g", 1), ("%RETRY%three", 3)] {
        let topic = client.dispatcher.shared().topic(topic).expect("a topic");
        assert_eq!((topic.read_queues, topic.write_queues, topic.perm), (queues, queues, 6));
    }
}

#[tokio::test]
async fn groups_with_illegal_names_are_passed_over() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let answer =
        beat(&client, &data(0, false, &[consumer("a b", "t", "*", 1), consumer("g", "t", "*", 1)]))
            .await;
    assert_eq!(answer.code, 0);
    assert!(backend.group("a b").is_none() && backend.group("g").is_some());
}

#[tokio::test]
async fn a_refused_group_ends_nothing_for_the_others() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let topics: Vec<_> =
        (0..SUBSCRIPTIONS_MAX).map(|number| format!("{{\"topic\":\"t{number}\"}}")).collect();
    let flooding = |group: &str| {
        let set = "\"subscriptionDataSet\":[";
        consumer(group, "t", "*", 1).replace(set, &format!("{set}{},", topics.join(",")))
    };
    let groups = [flooding("big"), consumer("g", "t", "*", 1), flooding("large")];
    let answer = beat(&client, &data(0, false, &groups)).await;
    let remark = "group big subscribes to more than 10000 topics";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)), "the first refusal");
    assert!(backend.group("g").is_some() && backend.group("big").is_none());
    assert_eq!(backend.producer_group("p1").await.expect("a group").len(), 1);

    let leaving = [("clientID", "c1"), ("producerGroup", "p1"), ("consumerGroup", "g")];
    backend.refuse_producers();
    assert_eq!(client.call(UNREGISTER, &leaving, b"").await.code, 1);
    assert!(backend.group("g").is_none());
    let answer = beat(&client, &data(0, false, &groups[1..2])).await;
    assert_eq!(answer.code, 1);
    assert!(backend.group("g").is_some());
}

#[tokio::test]
async fn a_fingerprint_spares_the_subscriptions_once_they_are_known() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let consumers = [consumer("g", "t1", "*", 5)];
    for (fingerprint, without_sub, changed) in [
        // The subscription is not known here, as after a restart.
        (42, true, "true"),
        (42, false, "false"),
        (42, true, "false"),
        (43, true, "true"),
        (43, true, "false"),
        (0, false, "true"),
        (43, true, "true"),
    ] {
        let answer = beat(&client, &data(fingerprint, without_sub, &consumers)).await;
        assert_eq!(is_changed(&answer), changed, "{fingerprint} {without_sub}");
    }
    assert_eq!(backend.group("g").expect("a group").subscriptions.len(), 1);
}

#[tokio::test]
async fn what_is_no_heartbeat_is_refused() {
    let client = Client::new(FakeBackend::new());
    for body in ["", "{{{", "[]", "null", "{\"clientID\":1"] {
        let answer = beat(&client, body).await;
        assert_eq!(answer.code, 1, "{body}");
        assert!(answer.remark.is_some(), "{body}");
    }
}

#[tokio::test]
async fn the_members_are_listed_and_leave() {
    let backend = FakeBackend::new();
    let first = Client::new(backend.clone());
    let second = first.at(crate::session::Door::Broker);
    let body = data(0, false, &[consumer("g", "t1", "*", 5)]);
    beat(&first, &body).await;
    beat(&second, &body.replace("\"c1\"", "\"c0\"")).await;
    let members = async || first.call(38, &[("consumerGroup", "g")], b"").await;
    assert_eq!(&members().await.body[..], b"{\"consumerIdList\":[\"c0\",\"c1\"]}");
    first.call(35, &[("clientID", "c1"), ("consumerGroup", "g")], b"").await;
    assert_eq!(&members().await.body[..], b"{\"consumerIdList\":[\"c0\"]}");
    second.dispatcher.close(&second.session);
    let answer = members().await;
    let remark = "no consumer for this group, g";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
    assert!(answer.body.is_empty());
}

#[tokio::test]
async fn a_flood_is_refused_in_words_and_costs_a_bounded_memory() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let refused = async |body: String, words: &str| {
        let answer = beat(&client, &body).await;
        let remark = answer.remark.unwrap_or_default();
        assert!(answer.code == 1 && remark.contains(words), "{} {remark}", answer.code);
    };
    let body = |client: &str, consumers: &str| {
        format!("{{\"clientID\":\"{client}\",\"consumerDataSet\":[{consumers}]}}")
    };
    let group = consumer("g", "t", "*", 1);
    refused(body(&"c".repeat(CLIENT_ID_BYTES_MAX + 1), &group), "the client id has 1025 bytes")
        .await;
    let groups: Vec<_> =
        (0..=HEARTBEAT_GROUPS_MAX).map(|n| format!("{{\"groupName\":\"g{n}\"}}")).collect();
    refused(body("c", &groups.join(",")), "names 1001 groups").await;
    let long = format!("{{\"groupName\":\"{}\"}}", "g".repeat(HEARTBEAT_BYTES_MAX));
    refused(body("c", &long), "more than 1048576").await;
    assert!(backend.group("g").is_none(), "refused as a whole");
    for number in 0..CONNECTION_CLIENTS_MAX {
        assert_eq!(beat(&client, &body(&format!("c{number}"), &group)).await.code, 0);
    }
    refused(body("one more", &group), "speaks for more than 64 clients").await;
    assert_eq!(beat(&client, &body("c7", &group)).await.code, 0, "known already");
    assert_eq!(backend.group("g").expect("a group").members.len(), CONNECTION_CLIENTS_MAX);
}
