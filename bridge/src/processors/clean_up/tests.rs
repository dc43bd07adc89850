use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn what_is_too_old_goes_now() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for (code, looks) in [(316, 0), (306, 1), (329, 2)] {
        let answer = client.call(code, &[], &[]).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
        assert_eq!(backend.retentions(), looks);
    }
}
