use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn a_group_is_kept_from_a_topic_until_it_may_read_it_again() {
    let backend = FakeBackend::new();
    backend.add_topic("t", 1);
    let client = Client::new(backend);
    let change = async |readable: Option<&str>| {
        let mut fields = vec![("group", "g"), ("topic", "t")];
        fields.extend(readable.map(|readable| ("readable", readable)));
        let answer = client.call(353, &fields, &[]).await;
        assert_eq!(answer.code, 0);
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    let pull = async || {
        let fields = [
            ("consumerGroup", "g"),
            ("topic", "t"),
            ("queueId", "0"),
            ("queueOffset", "0"),
            ("maxMsgNums", "1"),
            ("sysFlag", "4"),
            ("commitOffset", "0"),
            ("suspendTimeoutMillis", "0"),
            ("subscription", "*"),
            ("subVersion", "0"),
        ];
        let answer = client.call(11, &fields, &[]).await;
        (answer.code, answer.remark, answer.ext_fields.get("forbiddenType").map(str::to_owned))
    };
    assert_eq!(change(None).await, r#"{"group":"g","readable":true,"topic":"t"}"#);
    assert_eq!(pull().await.0, 19);
    assert_eq!(change(Some("false")).await, r#"{"group":"g","readable":false,"topic":"t"}"#);
    let remark = "the consumer group[g] is forbidden for topic[t]";
    assert_eq!(pull().await, (16, Some(remark.to_owned()), Some("5".to_owned())));
    assert_eq!(change(Some("true")).await, r#"{"group":"g","readable":true,"topic":"t"}"#);
    assert_eq!(pull().await.0, 19);
}
