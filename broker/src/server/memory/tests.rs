use std::time::Duration;

use super::*;

#[tokio::test]
async fn room_is_given_in_the_order_of_asking_and_comes_back() {
    let memory = RequestMemory::new(64 * 1024);
    assert!(memory.room(FIRST_READ_BYTES).await.is_none(), "small frames need none");
    let first = memory.room(40 * 1024).await;
    assert_eq!(memory.used(), 40 * 1024);
    let second = tokio::spawn({
        let memory = memory.clone();
        async move { memory.room(40 * 1024).await }
    });
    tokio::task::yield_now().await;
    let third = tokio::spawn({
        let memory = memory.clone();
        async move { memory.room(20 * 1024).await }
    });
    tokio::task::yield_now().await;
    assert!(!second.is_finished() && !third.is_finished(), "the larger one is not passed by");
    drop(first);
    let (second, third) = (second.await.expect("room"), third.await.expect("room"));
    assert!(second.is_some() && third.is_some());
    drop((second, third));
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn a_frame_larger_than_all_room_is_served_alone() {
    let memory = RequestMemory::new(64 * 1024);
    let small = memory.room(10 * 1024).await;
    let asked = memory.room(1024 * 1024);
    tokio::pin!(asked);
    let early = tokio::time::timeout(Duration::from_millis(1), asked.as_mut()).await;
    assert!(early.is_err(), "somebody else has room");
    drop(small);
    assert!(asked.await.is_some());
}

#[test]
fn answers_get_smaller_the_more_of_them_nobody_takes() {
    let memory = AnswerMemory::default();
    assert_eq!(memory.reserve(10).bytes(), 10);
    let unwritten: Vec<_> = (0..100).map(|_| memory.reserve(usize::MAX)).collect();
    assert_eq!(unwritten[0].bytes(), ANSWERS_BYTES_MAX / 2);
    assert_eq!(unwritten[99].bytes(), ANSWER_SHARE_BYTES_MIN);
    assert!(memory.used() <= ANSWERS_BYTES_MAX + 100 * ANSWER_SHARE_BYTES_MIN);
    drop(unwritten);
    assert_eq!(memory.used(), 0);
}

/// What is being read by one thread is no room for the answers of another.
#[test]
fn an_answer_counts_before_it_is_built_and_as_it_is_then() {
    let memory = AnswerMemory::default();
    let building = memory.reserve(50 << 20);
    assert_eq!((building.bytes(), memory.used()), (50 << 20, 50 << 20));
    let built = building.became(7);
    assert_eq!((built.bytes(), memory.used()), (7, 7));
    drop(built);
    assert_eq!(memory.used(), 0);
}
