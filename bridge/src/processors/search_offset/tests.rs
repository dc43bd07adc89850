use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};

async fn search(client: &Client, time_ms: i64, boundary: &str) -> String {
    let time = time_ms.to_string();
    let mut fields = vec![("topic", "t1"), ("queueId", "0"), ("timestamp", &*time)];
    if !boundary.is_empty() {
        fields.push(("boundaryType", boundary));
    }
    let answer = client.call(29, &fields, b"").await;
    assert_eq!(answer.code, 0, "{:?}", answer.remark);
    answer.ext_fields.get("offset").expect("an offset").to_owned()
}

/// Case B115, for what Kafka producers wrote: the append time counts.
#[tokio::test]
async fn by_append_time() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let start = backend.now_ms();
    for bodies in [&["a", "b"][..], &["c"], &["d", "e"]] {
        let messages: Vec<_> = bodies.iter().map(|body| ("", *body)).collect();
        backend.write_tagged("t1", 0, &messages);
        backend.advance_ms(50);
    }
    let client = Client::new(backend.clone());
    for (time, lower, upper) in [
        (-1_000_000, "0", "0"),
        (0, "0", "1"),
        (1, "2", "1"),
        (50, "2", "2"),
        (51, "3", "2"),
        (100, "3", "4"),
        (101, "5", "4"),
        (1_000_000, "5", "4"),
    ] {
        assert_eq!(search(&client, start + time, "").await, lower, "{time}");
        assert_eq!(search(&client, start + time, "lower").await, lower, "{time}");
        assert_eq!(search(&client, start + time, "middle").await, lower, "{time}");
        assert_eq!(search(&client, start + time, "UPPER").await, upper, "{time}");
    }
    backend.set_log_start("t1", 0, 2);
    assert_eq!(search(&client, 0, "").await, "2");
    assert_eq!(search(&client, 0, "upper").await, "2");
    backend.set_log_start("t1", 0, 5);
    for boundary in ["lower", "upper"] {
        assert_eq!(search(&client, start, boundary).await, "5", "all expired: the end, never 0");
    }
}

/// Messages of one gathered batch keep the times at which each was stored.
#[tokio::test]
async fn by_the_messages_own_times() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let start = backend.now_ms();
    let client = Client::new(backend.clone());
    let mut records = Vec::new();
    for (at, body) in [(0, "a"), (3, "b"), (3, "c")] {
        let origin = crate::translate::origin::Origin {
            flag: 0,
            sys_flag: 0,
            born_host: client.session.peer(),
            store_timestamp_ms: start + at,
            reconsume_times: 0,
            born_timestamp_ms: None,
        }
        .encode();
        let headers =
            [duolog_log_core::record::Header { key: b"__rmq", value: Some(origin.as_slice()) }];
        let value = Some(body.as_bytes());
        let record = duolog_log_core::record::NewRecord {
            timestamp: 0,
            key: None,
            value,
            headers: &headers,
        };
        records.push((0, crate::fake::payload(&record)));
    }
    backend.advance_ms(5);
    backend.write("t1", 0, records);
    for (time, lower, upper) in
        [(-1, "0", "0"), (0, "0", "0"), (1, "1", "0"), (3, "1", "2"), (4, "3", "2"), (5, "3", "2")]
    {
        assert_eq!(search(&client, start + time, "lower").await, lower, "{time}");
        assert_eq!(search(&client, start + time, "upper").await, upper, "{time}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_at_0() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    assert_eq!(search(&client, 5, "").await, "0");
    backend.add_topic("t1", 1);
    assert_eq!(search(&client, 5, "").await, "0");
    let answer = client.call(29, &[("topic", "t1"), ("queueId", "0")], b"").await;
    assert_eq!(answer.remark.as_deref(), Some("the custom field <timestamp> is null"));
}
