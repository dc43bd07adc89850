use crate::fake::{Client, FakeBackend};
use crate::session::Door;

#[tokio::test]
async fn by_cluster_and_by_flags() {
    let backend = FakeBackend::new();
    for (name, sys_flag) in [("none", 0), ("unit", 1), ("sub", 2), ("both", 3)] {
        backend.change_topic(name, |topic| topic.sys_flag = sys_flag);
    }
    backend.change_topic("__consumer_offsets", |topic| topic.internal = true);
    let client = Client::new(backend).at(Door::NameServer);
    for (code, fields, expected) in [
        (224, &[("cluster", "DefaultCluster")][..], &["both", "none", "sub", "unit"][..]),
        (224, &[("cluster", "other")], &[]),
        (224, &[], &[]),
        (311, &[], &["both", "unit"]),
        (312, &[], &["both", "sub"]),
        (313, &[], &["sub"]),
    ] {
        let answer = client.call(code, fields, b"").await;
        let names: Vec<String> = expected.iter().map(|name| format!("\"{name}\"")).collect();
        let body = format!("{{\"topicList\":[{}]}}", names.join(","));
        assert_eq!(String::from_utf8_lossy(&answer.body), body, "{code} {fields:?}");
    }
}
