use crate::fake::{Client, FakeBackend};
use crate::session::Door;

#[tokio::test]
async fn routes_show_what_was_asked_for_until_the_topic_itself_changes() {
    let backend = FakeBackend::new();
    backend.add_topic("t", 1);
    let client = Client::new(backend.clone()).at(Door::NameServer);
    let perm = async || {
        let answer = client.call(105, &[("topic", "t")], &[]).await;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let begin = body.find("\"perm\":").expect("a permission") + 7;
        body[begin..].chars().next().expect("a digit")
    };
    let ask = async |code: i32, broker: &str, field: &str| {
        let answer = client.call(code, &[("brokerName", broker)], &[]).await;
        assert_eq!(answer.code, 0);
        answer.ext_fields.get(field).map(str::to_owned)
    };
    assert_eq!(ask(205, "broker-b", "wipeTopicCount").await.as_deref(), Some("0"));
    assert_eq!(perm().await, '6');
    // The topic and the template of new ones.
    assert_eq!(ask(205, "broker-a", "wipeTopicCount").await.as_deref(), Some("2"));
    assert_eq!(perm().await, '4');
    assert_eq!(ask(327, "broker-a", "addTopicCount").await.as_deref(), Some("2"));
    assert_eq!(perm().await, '6');
    assert_eq!(ask(205, "broker-a", "wipeTopicCount").await.as_deref(), Some("2"));
    backend.change_topic("t", |topic| topic.perm = 2);
    assert_eq!(perm().await, '2');
}
