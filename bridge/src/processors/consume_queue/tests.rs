use super::*;
use crate::fake::{Client, FakeBackend};
use crate::translate::properties::java_hash;

#[tokio::test]
async fn entries_are_made_of_the_messages() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 1);
    backend.write_tagged("t", 0, &[("TagA", "a"), ("", "bb"), ("TagA", "c")]);
    let client = Client::new(backend.clone());
    let ask = async |index: &str, count: &str| {
        let fields = [
            ("topic", "t"),
            ("queueId", "0"),
            ("index", index),
            ("count", count),
            ("consumerGroup", "g"),
        ];
        let answer = client.call(321, &fields, &[]).await;
        assert_eq!(answer.code, 0);
        (answer.remark, String::from_utf8_lossy(&answer.body).into_owned())
    };
    let number = backend.partition(&topic, 0).await.expect("a queue").number;
    let entry = |offset: i64, bytes: i32, code: i32| {
        let address = PseudoAddress::new(number, offset).expect("small").physical();
        format!(
            "{{\"eval\":false,\"physicOffset\":{address},\"physicSize\":{bytes},\"tagsCode\":{code}}}"
        )
    };
    let (remark, body) = ask("0", "2").await;
    let size = |text: &str| {
        let begin = text.find("physicSize\":").expect("a size") + 12;
        text[begin..].split(',').next().and_then(|size| size.parse().ok()).expect("a number")
    };
    let first: i32 = size(&body);
    let second: i32 = size(body.rsplit("physicOffset").next().expect("an entry"));
    assert!(first > 100 && second > 80 && second < first, "{body}");
    let expected = format!(
        "{{\"filterData\":\"g@t is not online!\",\"maxQueueIndex\":3,\"minQueueIndex\":0,\
         \"queueData\":[{},{}]}}",
        entry(0, first, java_hash("TagA")),
        entry(1, second, 0)
    );
    assert_eq!((remark, body), (None, expected));
    let (remark, _) = ask("3", "1").await;
    assert_eq!(remark.as_deref(), Some("Index 3 of 0@t is not exist!"));
    let answer = client
        .call(321, &[("topic", "t"), ("queueId", "7"), ("index", "0"), ("count", "1")], &[])
        .await;
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some("7@t is not exist!")));
}
