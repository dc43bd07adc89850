use crate::fake::{Client, FakeBackend};

async fn told(client: &Client, code: i32, group: &str) -> (i32, Option<String>, String) {
    let answer = client.call(code, &[("producerGroup", group)], &[]).await;
    (answer.code, answer.remark, String::from_utf8_lossy(&answer.body).into_owned())
}

#[tokio::test]
async fn producers_are_told_while_they_are_connected() {
    let client = Client::new(FakeBackend::new());
    let admin = client.at(client.session.door());
    let beat = br#"{"clientID":"c1","producerDataSet":[{"groupName":"p"},{"groupName":"q"}]}"#;
    assert_eq!(client.call(34, &[], beat).await.code, 0);
    let one = "{\"clientAddr\":\"127.0.0.1:50000\",\"clientId\":\"c1\",\"language\":\"JAVA\",\"version\":513}";
    let expected = format!("{{\"connectionSet\":[{one}]}}");
    assert_eq!(told(&admin, 204, "p").await, (0, None, expected));
    let one = "[{\"clientId\":\"c1\",\"language\":\"JAVA\",\"lastUpdateTimestamp\":1700000000000,\"remoteIP\":\"/127.0.0.1:50000\",\"version\":513}]";
    let expected = format!("{{\"data\":{{\"p\":{one},\"q\":{one}}}}}");
    assert_eq!(told(&admin, 328, "").await, (0, None, expected));
    let bye = [("clientID", "c1"), ("producerGroup", "p")];
    assert_eq!(client.call(35, &bye, &[]).await.code, 0);
    let absent =
        |group: &str| (1, Some(format!("the producer group[{group}] not exist")), String::new());
    assert_eq!(told(&admin, 204, "p").await, absent("p"));
    client.dispatcher.close(&client.session);
    assert_eq!(told(&admin, 204, "q").await, absent("q"));
}
