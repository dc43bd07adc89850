use crate::backend::{Backend, PopBackend, PopFresh, PopOffsets, PopQueue, PopTake};
use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn the_time_changes_and_with_it_the_handle() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 1);
    backend.write_tagged("t", 0, &[("", "m"); 2]);
    let queue = PopQueue { group: "g", topic: &topic, partition: 0 };
    backend.pop_begin(queue, 0).await.expect("begun");
    let now = backend.now_ms();
    let fresh = Some(PopFresh { from: 0, next: 2, offsets: vec![0, 1] });
    let take = PopTake { fresh, popped_ms: now, until_ms: now + 1000, ..PopTake::default() };
    assert_eq!(backend.pop_take(queue, take).await, Ok(true));
    backend.advance_ms(500);
    let client = Client::new(backend.clone());
    let change = async |offset: &str, handle: &str| {
        let fields = [
            ("consumerGroup", "g"),
            ("topic", "t"),
            ("queueId", "0"),
            ("offset", offset),
            ("extraInfo", handle),
            ("invisibleTime", "2000"),
        ];
        let answer = client.call(200_053, &fields, &[]).await;
        let field = |name| answer.ext_fields.get(name).map_or(-1, |it| it.parse().expect("number"));
        (answer.code, [field("popTime"), field("invisibleTime"), field("reviveQid")])
    };
    let handle = format!("0 {now} 1000 3 0 broker-a 0 0");
    assert_eq!(change("0", &handle).await, (0, [now + 500, 2000, 3]));
    let plan = async || backend.pop_plan(queue, 9, None).await.expect("a plan").expect("a window");
    backend.advance_ms(1999);
    assert_eq!(plan().await.again, [(1, 1)]);
    assert_eq!(backend.pop_settle(queue, PopOffsets::one(0), now).await, Ok(0), "the old handle");
    backend.advance_ms(1);
    assert_eq!(plan().await.again, [(0, 1), (1, 1)]);
    let ordered = format!("0 {now} 1000 999 0 broker-a 0 1");
    assert_eq!(change("1", &ordered).await, (0, [now, 4500, 999]), "in order it stays");
    assert_eq!(backend.pop_settle(queue, PopOffsets::one(1), now).await, Ok(1));
    assert_eq!(change("2", &handle).await.0, 208);
    assert_eq!(change("0", "0").await.0, 1);
}
