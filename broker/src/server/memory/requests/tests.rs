use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

const KIB: usize = 1024;

fn memory() -> RequestMemory {
    RequestMemory::new(64 * KIB as u64)
}

fn exactly(bytes: usize) -> Wish {
    let bytes = bytes as u64;
    Wish { least: bytes, enough: bytes, most: bytes }
}

fn grown(memory: &RequestMemory, bytes: usize) -> Room {
    let mut room = memory.begin();
    assert!(grows(&mut room, bytes), "there is room for {bytes}");
    room
}

/// Whether it grows at once.
fn grows(room: &mut Room, bytes: usize) -> bool {
    pin!(room.grow_to(exactly(bytes))).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn room_is_taken_for_what_came_and_given_back() {
    let memory = memory();
    let mut first = grown(&memory, 10 * KIB);
    let second = grown(&memory, 50 * KIB);
    assert_eq!(memory.used(), 60 * KIB as u64);
    first.finish();
    assert_eq!(memory.used(), 60 * KIB as u64, "until it is answered");
    drop((first, second));
    assert_eq!(memory.used(), 0);
    assert!(!memory.is_short());
}

#[tokio::test]
async fn those_that_began_earlier_go_first() {
    let memory = memory();
    let (mut old, mut young) = (memory.begin(), memory.begin());
    let mut at_work = grown(&memory, 60 * KIB);
    at_work.finish();
    let wait = |room: &mut Room, bytes| !grows(room, bytes);
    {
        let mut waits = pin!(old.grow_to(exactly(20 * KIB)));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(waits.as_mut().poll(&mut context), Poll::Pending);
        assert!(memory.is_short());
        assert!(wait(&mut young, KIB), "the older one is not passed by");
    }
    assert!(!memory.is_short(), "nobody waits any more");
    assert!(grows(&mut young, KIB), "who does not wait keeps nobody waiting");
    let waits = tokio::spawn(async move {
        old.grow_to(exactly(20 * KIB)).await;
        old
    });
    tokio::task::yield_now().await;
    drop(at_work);
    assert_eq!(waits.await.expect("room").bytes, 20 * KIB as u64);
}

#[tokio::test]
async fn less_than_is_wanted_is_taken_when_that_is_all_or_much_is_in_use() {
    let memory = memory();
    let kib = |kib: u64| kib * KIB as u64;
    let wish =
        |least, enough, most| Wish { least: kib(least), enough: kib(enough), most: kib(most) };
    let mut first = memory.begin();
    assert_eq!(first.grow_to(wish(1, 2, 30)).await, 30 * KIB, "there is plenty");
    let mut second = memory.begin();
    assert_eq!(second.grow_to(wish(1, 2, 30)).await, 2 * KIB, "there is not");
    assert_eq!(second.grow_to(wish(2, 30, 30)).await, 2 * KIB, "it has what it needs");
    assert_eq!(second.grow_to(wish(10, 60, 60)).await, 34 * KIB, "that is all");
    assert!(!grows(&mut second, 35 * KIB));
    drop(first);
    assert_eq!(second.grow_to(wish(35, 90, 90)).await, 64 * KIB);
    assert_eq!(second.grow_to(wish(65, 90, 90)).await, 90 * KIB, "it is the only one");
}

/// However many began, and whatever they announced, all of them get to their end.
#[tokio::test]
async fn frames_that_fill_the_room_are_finished_one_after_the_other() {
    let memory = memory();
    let halves: Vec<Room> = (0..8).map(|_| grown(&memory, 8 * KIB)).collect();
    assert_eq!(memory.used(), 64 * KIB as u64);
    let (told, mut whole) = tokio::sync::mpsc::unbounded_channel();
    for mut room in halves.into_iter().rev() {
        let told = told.clone();
        tokio::spawn(async move {
            room.grow_to(exactly(100 * KIB)).await;
            room.finish();
            told.send(room).expect("somebody reads");
        });
    }
    for frame in 1..=8 {
        let room = whole.recv().await.expect("the next one");
        assert_eq!(room.frame, frame, "by age");
        assert!(memory.used() < (64 + 100) * KIB as u64, "over the bound by one");
        assert!(whole.try_recv().is_err(), "while it is at work the others wait");
    }
    drop(told);
    assert!(whole.recv().await.is_none());
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn a_frame_that_is_given_up_lets_the_next_one_go_on() {
    let memory = memory();
    let mut stalled = memory.begin();
    assert!(grows(&mut stalled, 64 * KIB));
    let mut next = memory.begin();
    assert!(!grows(&mut next, 10 * KIB), "the room is taken, and another is the oldest");
    let waits = tokio::spawn(async move { next.grow_to(exactly(10 * KIB)).await });
    tokio::task::yield_now().await;
    drop(stalled);
    waits.await.expect("room");
}
