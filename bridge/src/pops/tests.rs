use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use duolog_log_core::ids::TopicId;
use tokio::time::Instant;

use super::{Pops, TURN_TIME};
use crate::limits::{HELD_POP_WAITS_MAX, HELD_POPS_OF_QUEUE_MAX};

const TOPIC: TopicId = TopicId([3; 16]);

fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn one_pop_of_a_group_at_a_time_has_a_queue() {
    let pops = Pops::default();
    let first = poll(pin!(pops.turn("g", TOPIC, 0))).expect("free");
    let mut second = Box::pin(pops.turn("g", TOPIC, 0));
    assert!(poll(second.as_mut()).is_none());
    assert!(poll(pin!(pops.turn("g", TOPIC, 1))).is_some(), "another queue");
    assert!(poll(pin!(pops.turn("h", TOPIC, 0))).is_some(), "another group");
    {
        let mut given_up = Box::pin(pops.turn("g", TOPIC, 0));
        assert!(poll(given_up.as_mut()).is_none());
    }
    drop(first);
    let turn = poll(second.as_mut()).expect("free again");
    assert_eq!(pops.turns.lock().len(), 1);
    drop((turn, second));
    assert!(pops.turns.lock().is_empty(), "nothing is kept of who is gone");
}

#[tokio::test(start_paused = true)]
async fn who_does_nothing_with_a_turn_holds_nobody_up_for_long() {
    let pops = Pops::default();
    let turn = || pops.turn("g", TOPIC, 0);
    let mut seconds = Vec::new();
    let stuck = turn().await;
    for _ in 0..2 {
        let began = Instant::now();
        drop(turn().await);
        seconds.push(began.elapsed().as_millis() / 1_000);
    }
    assert_eq!(seconds, [1, 0], "whoever is stuck is passed by once");
    let held = turn().await;
    // Its client takes no answers: it is given its turn and knows nothing of it.
    let mut given = Box::pin(turn());
    assert!(poll(given.as_mut()).is_none());
    drop(held);
    let began = Instant::now();
    drop(turn().await);
    assert_eq!(began.elapsed().as_millis() / 1_000, 1);
    drop(given.await);
    drop(stuck);
    assert!(pops.turns.lock().is_empty(), "nothing is kept of who is gone");
}

#[tokio::test(start_paused = true)]
async fn a_long_line_passes_nobody_by() {
    let pops = Pops::default();
    let mut turn = pops.turn("g", TOPIC, 0).await;
    let free = || pops.turns.lock().values().map(|turns| Arc::clone(&turns.free)).next();
    let first = free().expect("a turn");
    let mut line: VecDeque<_> = (0..3).map(|_| Box::pin(pops.turn("g", TOPIC, 0))).collect();
    while let Some(mut next) = line.pop_front() {
        assert!(poll(next.as_mut()).is_none());
        assert!(line.iter_mut().all(|waiting| poll(waiting.as_mut()).is_none()));
        tokio::time::advance(TURN_TIME * 3 / 5).await;
        drop(turn);
        turn = next.await;
    }
    assert!(
        Arc::ptr_eq(&first, &free().expect("a turn")),
        "the last waited for longer than a turn"
    );
}

#[test]
fn those_who_wait_are_counted_woken_and_forgotten() {
    let pops = Pops::default();
    let mut hold = pops.hold("g", TOPIC, -1, 4).expect("room");
    let other = pops.hold("h", TOPIC, -1, 4).expect("room");
    let mut not = pin!(other.ready());
    {
        let mut ready = pin!(hold.ready());
        assert!(poll(ready.as_mut()).is_none() && poll(not.as_mut()).is_none());
        assert_eq!((pops.count("g", TOPIC, -1), pops.count("g", TOPIC, 0)), (1, 0));
        pops.ready("g", TOPIC, 2);
        assert!(poll(ready.as_mut()).is_some() && poll(not.as_mut()).is_none());
    }
    assert_eq!(hold.hear(), [2]);
    assert!(poll(pin!(hold.ready())).is_none(), "it is said once");
}

#[test]
fn whoever_waits_hears_of_each_queue_that_was_named_since() {
    let pops = Pops::default();
    let mut first = pops.hold("g", TOPIC, -1, 4).expect("room");
    for queue in [3, 1, 3] {
        pops.ready("g", TOPIC, queue);
    }
    let mut second = pops.hold("g", TOPIC, -1, 4).expect("room");
    assert_eq!((first.hear(), second.hear()), (vec![1, 3], vec![]));
    pops.ready("g", TOPIC, 1);
    assert_eq!((first.hear(), second.hear()), (vec![1], vec![1]));
}

#[test]
fn too_many_are_refused_and_room_comes_back() {
    let pops = Pops::default();
    assert!(pops.hold("g", TOPIC, 0, HELD_POP_WAITS_MAX + 1).is_none());
    let holds: Vec<_> = std::iter::from_fn(|| pops.hold("g", TOPIC, 0, 1)).collect();
    assert_eq!(holds.len(), HELD_POPS_OF_QUEUE_MAX + 1);
    assert!(pops.hold("g", TOPIC, 1, 1).is_some(), "another queue");
    drop(holds);
    assert!(pops.hold("g", TOPIC, 0, HELD_POP_WAITS_MAX).is_some());
    assert!(pops.state.lock().groups.is_empty());
}
