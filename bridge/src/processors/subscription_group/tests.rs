use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn a_configuration_is_stored_and_read() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let config = br#"{"groupName":"g","consumeEnable":false,"retryMaxTimes":5,"retryQueueNums":2}"#;
    assert_eq!(client.call(200, &[], config).await.code, 0);
    let stored = backend.subscription_group("g").expect("a group");
    assert!(!stored.consume_enable);
    assert_eq!((stored.retry_times_max, stored.retry_queues), (5, 2));
    let retry = client.dispatcher.shared().topic("%RETRY%g").expect("a retry topic");
    assert_eq!(retry.read_queues, 2);
    let answer = client.call(352, &[("group", "g")], b"").await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    for part in ["\"groupName\":\"g\"", "\"consumeEnable\":false", "\"retryMaxTimes\":5"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn what_is_no_configuration_is_refused() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for (body, code) in [
        (&br#"{"groupName":"a b"}"#[..], 29),
        (br#"{"groupName":""}"#, 29),
        (b"{{{", 1),
        (b"[]", 29),
        (br#"{"groupName":"c","attributes":{"+what":"1"}}"#, 1),
    ] {
        let answer = client.call(200, &[], body).await;
        assert_eq!(answer.code, code, "{:?}", answer.remark);
        assert!(answer.remark.is_some());
    }
    assert_eq!(client.call(200, &[], b"").await.code, 0, "nothing to do, as in the original");
    assert!(backend.subscription_group("a b").is_none() && backend.topics().is_empty());
}

#[tokio::test]
async fn asking_makes_a_group_where_groups_are_made() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    assert_eq!(client.call(352, &[("group", "fresh")], b"").await.code, 0);
    assert!(backend.subscription_group("fresh").is_some());
    backend.configure(|config| config.auto_create_subscription_group = false);
    let answer = client.call(352, &[("group", "other")], b"").await;
    let remark = "No group in this broker";
    assert_eq!((answer.code, answer.remark.as_deref()), (26, Some(remark)));
}
