use super::*;
use crate::fake::{Client, FakeBackend};

const HEART_BEAT: i32 = 34;
const PULL: i32 = 11;
const COMMIT: i32 = 15;
const RESET: i32 = 222;
const DELETE_TOPIC: i32 = 215;

const BEAT: &str = r#"{"clientID":"c1","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[
    {"topic":"t","subString":"*"}]}]}"#;

/// Two queues of three messages each, a second apart; a live member at the ends.
async fn stage() -> (FakeBackend, Client) {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 2);
    for _ in 0..3 {
        for queue_id in 0..2 {
            backend.write_tagged("t", queue_id, &[("", "x")]);
        }
        backend.advance_ms(1000);
    }
    let client = Client::new(backend.clone());
    assert_eq!(client.call(HEART_BEAT, &[], BEAT.as_bytes()).await.code, 0);
    for queue_id in 0..2 {
        backend.commit_offset("g", &topic, queue_id, 3).await.expect("committed");
    }
    (backend, client)
}

fn pull_fields(offset: &str, suspend: bool) -> RemotingCommand {
    let flag = if suspend { "3" } else { "1" };
    let fields = [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "0"),
        ("queueOffset", offset),
        ("maxMsgNums", "32"),
        ("sysFlag", flag),
        ("commitOffset", offset),
        ("suspendTimeoutMillis", "15000"),
        ("subVersion", "0"),
    ];
    let mut request = RemotingCommand::request(PULL, 2, SerializeType::Json);
    request.ext_fields = fields.into_iter().collect();
    request
}

fn told(answer: &RemotingCommand) -> (i32, Option<&str>, Option<&str>) {
    (answer.code, answer.remark.as_deref(), answer.ext_fields.get("nextBeginOffset"))
}

async fn reset(client: &Client, more: &[(&str, &str)]) -> RemotingCommand {
    let fields =
        [("topic", "t"), ("group", "g"), ("timestamp", "1700000001000"), ("isForce", "true")];
    client.call(RESET, &[&fields, more].concat(), &[]).await
}

#[tokio::test]
async fn positions_go_to_a_time_and_members_hear_of_it_by_their_next_pull() {
    let (backend, client) = stage().await;
    let held = client.begin(pull_fields("3", true));
    let reset = async {
        // The pull is held before the reset, whichever is polled first.
        while client.dispatcher.held_pulls() == 0 {
            tokio::task::yield_now().await;
        }
        reset(&client, &[]).await
    };
    let (held, answer) = tokio::join!(held, reset);
    assert_eq!(answer.code, 0);
    let queue = |id| format!("{{\"brokerName\":\"broker-a\",\"queueId\":{id},\"topic\":\"t\"}}:1");
    let expected = format!("{{\"offsetTable\":{{{},{}}}}}", queue(0), queue(1));
    assert_eq!(String::from_utf8_lossy(&answer.body), expected);
    let held = held.expect("an answer").into_command();
    assert_eq!(told(&held), (21, Some("OFFSET_RESET"), Some("1")));
    assert_eq!(backend.committed("g", "t", 0), Some(1));
    // Queue 1 was not pulled yet: its member's old position does not count.
    let commit = [("consumerGroup", "g"), ("topic", "t"), ("queueId", "1"), ("commitOffset", "3")];
    let answer = client.call(COMMIT, &commit, &[]).await;
    let remark = "Offset has been previously reset";
    assert_eq!((answer.code, answer.remark.as_deref()), (0, Some(remark)));
    assert_eq!(backend.committed("g", "t", 1), Some(1));
    // Told once.
    let next = client.send(pull_fields("1", false)).await.expect("an answer");
    assert_eq!(told(&next), (0, Some("FOUND"), Some("3")));
}

#[tokio::test]
async fn a_pull_that_hears_of_a_reset_commits_nothing() {
    let (backend, client) = stage().await;
    assert_eq!(reset(&client, &[]).await.code, 0);
    let told_so = client.send(pull_fields("3", false)).await.expect("an answer");
    assert_eq!(told(&told_so), (21, Some("OFFSET_RESET"), Some("1")));
    assert_eq!(backend.committed("g", "t", 0), Some(1));
}

const POP: i32 = 200_050;

async fn pop(client: &Client, poll_time: &str) -> (i32, String) {
    let fields = [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "0"),
        ("maxMsgNums", "32"),
        ("invisibleTime", "60000"),
        ("pollTime", poll_time),
        ("bornTime", "0"),
        ("initMode", "0"),
        ("exp", "*"),
    ];
    let answer = client.call(POP, &fields, &[]).await;
    let offsets = answer.ext_fields.get("msgOffsetInfo").unwrap_or_default();
    (answer.code, offsets.to_owned())
}

#[tokio::test]
async fn a_pop_goes_on_where_it_is_told_whatever_is_in_hand() {
    let (backend, client) = stage().await;
    let shared = client.dispatcher.shared();
    let topic = shared.topic("t").expect("a topic").id;
    for _ in 0..2 {
        assert_eq!(reset(&client, &[]).await.code, 0);
        assert_eq!(shared.resets.waiting("g", topic, 0), Some(1));
        // The second time the position is the one that it was.
        assert_eq!(pop(&client, "0").await, (0, "0 0 1,2".to_owned()));
        assert_eq!(
            (shared.resets.waiting("g", topic, 0), backend.committed("g", "t", 0)),
            (None, Some(1))
        );
        assert_eq!(pop(&client, "0").await.0, 210, "once");
    }
    assert_eq!(shared.resets.waiting("g", topic, 1), Some(1), "nobody popped it");
}

#[tokio::test(start_paused = true)]
async fn a_held_pop_hears_of_a_reset_at_once() {
    let (_backend, client) = stage().await;
    let shared = client.dispatcher.shared();
    let topic = shared.topic("t").expect("a topic").id;
    let reset = async {
        while shared.pops.count("g", topic, 0) == 0 {
            tokio::task::yield_now().await;
        }
        reset(&client, &[]).await
    };
    let began = tokio::time::Instant::now();
    let (held, answer) = tokio::join!(pop(&client, "15000"), reset);
    assert_eq!((answer.code, held), (0, (0, "0 0 1,2".to_owned())));
    assert!(began.elapsed().as_secs() < 15);
}

#[tokio::test]
async fn resets_of_what_is_gone_take_no_room() {
    let (backend, client) = stage().await;
    let shared = client.dispatcher.shared();
    let topic = shared.topic("t").expect("a topic").id;
    for gone in 0..OFFSET_RESETS_MAX {
        let queue_id = i32::try_from(gone).expect("few");
        let group = if gone % 2 == 0 { "g" } else { "gone" };
        assert!(shared.resets.assign(group, TopicId([9; 16]), queue_id, 1));
    }
    assert_eq!(reset(&client, &[]).await.code, 0);
    for queue_id in 2..i32::try_from(OFFSET_RESETS_MAX).expect("few") {
        assert!(shared.resets.assign("g", topic, queue_id, 1));
    }
    backend.add_topic("u", 1);
    let more = client
        .call(
            RESET,
            &[("topic", "u"), ("group", "g"), ("timestamp", "0"), ("isForce", "true")],
            &[],
        )
        .await;
    let remark = format!("{OFFSET_RESETS_MAX} resets wait for their groups' members");
    assert_eq!((more.code, more.remark), (1, Some(remark)));
    assert_eq!(client.call(DELETE_TOPIC, &[("topic", "t")], &[]).await.code, 0);
    assert_eq!(shared.resets.waiting("g", topic, 0), None);
}

#[tokio::test]
async fn one_queue_goes_to_an_offset_that_it_has() {
    let (backend, client) = stage().await;
    let answer = reset(&client, &[("queueId", "1"), ("offset", "2")]).await;
    assert_eq!(answer.code, 0);
    let of = |queue| backend.committed("g", "t", queue);
    assert_eq!((of(0), of(1)), (Some(3), Some(2)));
    let answer = reset(&client, &[("queueId", "1"), ("offset", "4")]).await;
    let remark = "Target offset 4 not in consume queue range [0-3]";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
    assert_eq!(reset(&client, &[("queueId", "1"), ("offset", "-1")]).await.code, 0);
    assert_eq!(of(1), Some(1), "by time");
    assert_eq!(reset(&client, &[("queueId", "7")]).await.code, 29);
    assert_eq!(reset(&client, &[("timestamp", "-1")]).await.code, 0);
    assert_eq!((of(0), of(1)), (Some(3), Some(3)), "to the end");
}

#[tokio::test]
async fn what_is_not_there_is_named_in_the_originals_words() {
    let (_backend, client) = stage().await;
    let answer = reset(&client, &[("topic", "u")]).await;
    assert_eq!((answer.code, answer.remark.as_deref()), (17, Some("Topic u does not exist")));
    let answer = reset(&client, &[("group", "h")]).await;
    assert_eq!((answer.code, answer.remark.as_deref()), (26, Some("Group h does not exist")));
}

#[tokio::test]
async fn without_the_servers_side_members_are_told_at_once() {
    let (backend, mut client) = stage().await;
    backend.configure(|config| config.server_side_reset = false);
    let answer = reset(&client, &[]).await;
    assert_eq!(answer.code, 0);
    let told = loop {
        let told = client.inbox.recv().await.expect("a notice");
        if told.code == RESET_CONSUMER_CLIENT_OFFSET {
            break told;
        }
    };
    assert_eq!(told.body, answer.body);
    assert!(told.is_one_way());
    assert_eq!(told.ext_fields.get("group"), Some("g"));
    assert_eq!(backend.committed("g", "t", 0), Some(3), "the member commits it");
    // Not forced: never forward.
    let answer = reset(&client, &[("isForce", "false"), ("timestamp", "-1")]).await;
    assert!(String::from_utf8_lossy(&answer.body).contains("\"topic\":\"t\"}:3"));
    client.dispatcher.close(&client.session);
    let other = client.at(crate::session::Door::Broker);
    let answer = reset(&other, &[]).await;
    assert_eq!(answer.code, 206);
    let answer = reset(&other, &[("group", "h")]).await;
    let remark = "THe consumer group <h> not exist";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
}
