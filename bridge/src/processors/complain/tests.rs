use crate::fake::{Client, FakeBackend};

fn is_said(client: &Client, name: &str, subject: &str) -> bool {
    !client.dispatcher.shared().complaints.is_due(name, subject, 0)
}

#[tokio::test]
async fn a_code_that_is_not_served_is_said_once_for_each_client() {
    let client = Client::new(FakeBackend::new());
    for _ in 0..2 {
        let answer = client.call(200_070, &[("consumerGroup", "g")], b"").await;
        let remark = answer.remark.unwrap();
        assert_eq!((answer.code, &*remark), (3, " request type 200070 not supported"));
    }
    let address = client.session.peer().ip().to_string();
    assert!(is_said(&client, &address, "POP_LITE_MESSAGE"));
    assert!(!is_said(&client, &address, "LITE_SUBSCRIPTION_CTL"));
    for code in [900_001, 900_002] {
        client.call(code, &[], b"").await;
    }
    assert!(is_said(&client, &address, "UNKNOWN"));
}
