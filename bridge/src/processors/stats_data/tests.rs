use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn what_was_stored_and_handed_out_is_told_by_spans() {
    let backend = FakeBackend::new();
    backend.add_topic("t", 1);
    for count in [1, 2, 3] {
        backend.write_tagged("t", 0, &vec![("", "x"); count]);
        backend.advance_ms(30 * 60 * 1000);
    }
    backend.write_tagged("t", 0, &[("", "x"); 6]);
    let client = Client::new(backend.clone());
    let ask = async |name: &str, key: &str| {
        let fields = [("statsName", name), ("statsKey", key)];
        let answer = client.call(315, &fields, &[]).await;
        (answer.code, answer.remark, String::from_utf8_lossy(&answer.body).into_owned())
    };
    let item = |sum: i32, tps: &str| format!("{{\"avgpt\":0.0,\"sum\":{sum},\"tps\":{tps}}}");
    let body = |items: [(i32, &str); 3]| {
        let [day, hour, minute] = items.map(|(sum, tps)| item(sum, tps));
        format!("{{\"statsDay\":{day},\"statsHour\":{hour},\"statsMinute\":{minute}}}")
    };
    let hour = format!("{:?}", 11.0 * 1000.0 / 3_600_000.0);
    let day = format!("{:?}", 12.0 * 1000.0 / 86_400_000.0);
    let expected = body([(12, &day), (11, &hour), (6, "0.1")]);
    assert_eq!(ask("TOPIC_PUT_NUMS", "t").await, (0, None, expected));
    let absent = |name: &str, key: &str| {
        (1, Some(format!("The stats <{name}> <{key}> not exist")), String::new())
    };
    assert_eq!(ask("GROUP_GET_NUMS", "t@g").await, absent("GROUP_GET_NUMS", "t@g"));
    assert_eq!(ask("TOPIC_PUT_NUMS", "u").await, absent("TOPIC_PUT_NUMS", "u"));
    let fields = [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "0"),
        ("queueOffset", "0"),
        ("maxMsgNums", "32"),
        ("sysFlag", "4"),
        ("commitOffset", "0"),
        ("suspendTimeoutMillis", "0"),
        ("subscription", "*"),
        ("subVersion", "0"),
    ];
    assert_eq!(client.call(11, &fields, &[]).await.code, 0);
    let (code, _, told) = ask("GROUP_GET_NUMS", "t@g").await;
    assert!(code == 0 && told.matches("\"sum\":12").count() == 3, "{told}");
    // An hour later neither minute nor hour has any.
    backend.advance_ms(2 * 60 * 60 * 1000);
    let (_, _, told) = ask("GROUP_GET_NUMS", "t@g").await;
    assert!(told.matches("\"sum\":12").count() == 1, "{told}");
}
