use crate::backend::{Backend, Subscription};
use crate::fake::{Client, FakeBackend};

fn subscription() -> Subscription {
    Subscription {
        topic: "t1".into(),
        expression: "*".into(),
        expression_type: "TAG".into(),
        tags: Vec::new(),
        tag_hashes: Vec::new(),
        version: 1,
        class_filter_mode: false,
    }
}

#[tokio::test]
async fn a_group_goes_with_its_positions_if_asked_for() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t1", 1);
    let client = Client::new(backend.clone());
    let create = b"{\"groupName\":\"g\"}";
    assert_eq!(client.call(200, &[], create).await.code, 0);
    backend.commit_offset("g", &topic, 0, 3).await.expect("committed");
    let listed = client.call(201, &[], b"").await;
    assert_eq!(listed.ext_fields.get("totalGroupNum"), Some("1"));
    assert!(String::from_utf8_lossy(&listed.body).contains("\"groupName\":\"g\""));
    let delete = async |clean: &str| {
        let fields = [("groupName", "g"), ("cleanOffset", clean)];
        client.call(207, &fields, b"").await.code
    };
    assert_eq!(delete("false").await, 0);
    assert_eq!(backend.subscription_group("g"), None);
    assert_eq!(backend.committed("g", "t1", 0), Some(3));
    backend.register("g", subscription()).await;
    assert_eq!(delete("true").await, 1, "its members are live");
    assert_eq!(backend.committed("g", "t1", 0), Some(3), "a refused request changes nothing");
    backend.consumer_leave("g", "c").await.expect("gone");
    assert_eq!(delete("true").await, 0);
    assert_eq!(backend.committed("g", "t1", 0), None);
    assert_eq!(delete("true").await, 0, "it is gone already");
}
