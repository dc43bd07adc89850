use std::task::{Context, Waker};

use crate::backend::{PopBackend, PopFresh, PopQueue, PopTake};
use crate::dispatch::{Answer, BoxFuture};
use crate::fake::{Client, FakeBackend};
use crate::remoting::{RemotingCommand, SerializeType};

fn begin(client: &Client, poll_time: &str) -> BoxFuture<Option<Answer>> {
    let mut request = RemotingCommand::request(200_054, 7, SerializeType::Json);
    for (name, value) in [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "-1"),
        ("pollTime", poll_time),
        ("bornTime", "0"),
    ] {
        request.ext_fields.push(name, value);
    }
    client.begin(request)
}

async fn has_message(answer: BoxFuture<Option<Answer>>) -> String {
    let answer = answer.await.expect("an answer").into_command();
    assert_eq!((answer.code, answer.ext_fields.get("pollingFull")), (0, Some("false")));
    answer.ext_fields.get("hasMsg").expect("a field").to_owned()
}

#[tokio::test(start_paused = true)]
async fn it_says_whether_there_is_something_to_pop_and_takes_nothing() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 2);
    let client = Client::new(backend.clone());
    assert_eq!(has_message(begin(&client, "0")).await, "false");
    assert_eq!(has_message(begin(&client, "1000")).await, "false", "after a second");
    let mut held = begin(&client, "1000");
    assert!(held.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    backend.write_tagged("t", 1, &[("", "m")]);
    for answer in [held, begin(&client, "0"), begin(&client, "0")] {
        assert_eq!(has_message(answer).await, "true");
    }
    let queue = PopQueue { group: "g", topic: &topic, partition: 1 };
    backend.pop_begin(queue, 0).await.expect("begun");
    let fresh = Some(PopFresh { from: 0, next: 1, offsets: vec![0] });
    let until_ms = crate::backend::Backend::now_ms(&backend) + 100;
    let take = PopTake { fresh, until_ms, ..PopTake::default() };
    assert_eq!(backend.pop_take(queue, take).await, Ok(true));
    assert_eq!(has_message(begin(&client, "0")).await, "false", "somebody has it");
    backend.advance_ms(100);
    assert_eq!(has_message(begin(&client, "0")).await, "true", "it is there again");
}
