use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn a_master_without_slaves() {
    let answer = Client::new(FakeBackend::new()).call(907, &[], &[]).await;
    let body = String::from_utf8_lossy(&answer.body);
    assert!(body.contains("\"inSyncSlaveNums\":0,\"master\":true"), "{body}");
}
