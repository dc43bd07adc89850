//! Batch sends.

use super::*;

/// Case B83: with and without the last separator.
#[tokio::test]
async fn a_batch_is_stored_whole() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    let client = Client::new(backend.clone());
    let batch = [
        message(b"b0", b"UNIQ_KEY\x01u0\x02TAGS\x01TagA"),
        message(b"b1", b"UNIQ_KEY\x01u1\x02TAGS\x01TagA\x02"),
        message(b"b2", b""),
    ]
    .concat();
    for (code, batch_flag, offset) in
        [(BATCH, "true", "0"), (V2, "true", "3"), (BATCH, "false", "6")]
    {
        let answer = send_to(&client, code, &[("e", "2"), ("m", batch_flag)], &batch).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
        assert_eq!(field(&answer, "queueOffset"), Some(offset));
        assert_eq!(field(&answer, "transactionId"), Some("0A"), "the batch's own");
        let ids: Vec<_> = field(&answer, "msgId").expect("ids").split(',').collect();
        assert_eq!(ids.len(), 3);
        let first: i64 = offset.parse().expect("a number");
        for (id, offset) in ids.iter().zip(first..) {
            let id = MessageId::parse(id).expect("an id");
            assert_eq!((id.address.partition_number(), id.address.offset()), (2, offset));
        }
    }
    let tag = pair("TAGS", "TagA");
    let stored = stored(&backend, "t1").await;
    assert_eq!(stored.len(), 9);
    assert_eq!(
        stored[..3],
        [
            (2, "b0".into(), vec![pair("UNIQ_KEY", "u0"), tag.clone()]),
            (2, "b1".into(), vec![pair("UNIQ_KEY", "u1"), tag]),
            (2, "b2".into(), vec![]),
        ]
    );
}

/// Case B87: all or none, and the connection goes on.
#[tokio::test]
async fn a_malformed_batch_is_refused_whole() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    let client = Client::new(backend.clone());
    let good = message(b"good", b"");
    let with_length = |length: i32| {
        let mut bad = good.clone();
        bad[..4].copy_from_slice(&length.to_be_bytes());
        [good.clone(), bad].concat()
    };
    let delayed = message(b"x", b"DELAY\x013\x02");
    let large = message(&vec![0; 4 * 1024 * 1024], b"");
    for (flags, body) in [
        ("0", with_length(9999)),
        ("0", with_length(0)),
        ("0", with_length(-1)),
        ("0", with_length(21)),
        ("0", [good.clone(), vec![1]].concat()),
        ("0", [good.clone(), delayed].concat()),
        ("0", [good.clone(), large].concat()),
        ("0", Vec::new()),
        ("1", good.clone()),
    ] {
        let answer = send_to(&client, BATCH, &[("f", flags), ("m", "true")], &body).await;
        assert_eq!(answer.code, 13, "{:?}", answer.remark);
        assert!(answer.remark.is_some());
    }
    assert_eq!(bodies(&backend, "t1").await, []);
    assert_eq!(send_to(&client, BATCH, &[("m", "true")], &good).await.code, 0);
}

#[tokio::test]
async fn a_batch_to_a_retry_topic_is_refused() {
    let client = Client::new(FakeBackend::new());
    let changes = [("b", "%RETRY%g"), ("m", "true")];
    let answer = send_to(&client, BATCH, &changes, &message(b"x", b"")).await;
    let remark = "batch request does not support retry group %RETRY%g";
    assert_eq!((answer.code, answer.remark.as_deref()), (13, Some(remark)));
}
