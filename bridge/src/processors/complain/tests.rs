use crate::fake::{Client, FakeBackend};

fn is_said(client: &Client, name: &str, subject: &str) -> bool {
    !client.dispatcher.shared().complaints.is_due(name, subject, 0)
}

#[tokio::test]
async fn a_code_that_is_not_served_is_said_once_for_each_client() {
    let client = Client::new(FakeBackend::new());
    let body = br#"{"clientId":"c","consumerGroup":"g","mqSet":[]}"#;
    for _ in 0..2 {
        let answer = client.call(41, &[], body).await;
        assert_eq!((answer.code, &*answer.remark.unwrap()), (3, " request type 41 not supported"));
    }
    let address = client.session.peer().ip().to_string();
    assert!(is_said(&client, &address, "LOCK_BATCH_MQ"));
    assert!(!is_said(&client, &address, "POP_MESSAGE"));
    for code in [900_001, 900_002] {
        client.call(code, &[], b"").await;
    }
    assert!(is_said(&client, &address, "UNKNOWN"));
}

#[test]
fn the_group_of_a_lock_is_in_its_body() {
    use crate::remoting::{RemotingCommand, SerializeType};
    let request = |code: i32, body: &'static [u8]| {
        let request = RemotingCommand::request(code, 1, SerializeType::Json).with_body(body);
        super::locking(&request).map(String::from)
    };
    assert_eq!(request(41, br#"{"consumerGroup":"g"}"#).as_deref(), Some("g"));
    assert_eq!(request(41, b"{"), None);
    assert_eq!(request(12, br#"{"consumerGroup":"g"}"#), None);
}
