//! Who holds which queue, through the runtime.

use std::sync::Arc;

use crate::group::event::*;
use crate::group::response::*;
use crate::group::testing::*;
use crate::limits::LOCKED_QUEUES_MAX;

fn request(group: &str, client: &str, queues: &[i32]) -> LockQueues {
    let topic: Arc<str> = "t".into();
    let queues = queues.iter().map(|id| Queue { topic: topic.clone(), id: *id }).collect();
    LockQueues { group: group.into(), client: client.into(), queues }
}

/// Which of the queues the client holds after it has asked.
fn lock(bench: &mut Bench, group: &str, client: &str, queues: &[i32]) -> Vec<i32> {
    let Ok(Response::LockQueues(locked)) =
        bench.ask(Event::LockQueues(request(group, client, queues)))
    else {
        panic!("an answer for each queue");
    };
    assert_eq!(locked.len(), queues.len());
    queues.iter().zip(locked).filter(|(_, holds)| *holds).map(|(queue, _)| *queue).collect()
}

fn unlock(bench: &mut Bench, group: &str, client: &str, queues: &[i32]) {
    let unlocked = bench.ask(Event::UnlockQueues(request(group, client, queues)));
    assert_eq!(unlocked, Ok(Response::Done));
}

#[test]
fn a_queue_has_one_owner_and_groups_do_not_concern_each_other() {
    let mut bench = Bench::new();
    assert_eq!(lock(&mut bench, "g", "a", &[3, 0, 1]), [3, 0, 1]);
    assert_eq!(lock(&mut bench, "g", "b", &[0, 1, 2]), [2]);
    assert_eq!(lock(&mut bench, "h", "b", &[0, 1]), [0, 1]);
    assert_eq!(lock(&mut bench, "g", "a", &[2, 1]), [1]);
    assert_eq!(lock(&mut bench, "g", "a", &[]), [0; 0]);
}

#[test]
fn an_unlock_frees_what_the_client_holds_and_nothing_else() {
    let mut bench = Bench::new();
    lock(&mut bench, "g", "a", &[0, 1, 2]);
    unlock(&mut bench, "g", "b", &[0, 1, 2]);
    unlock(&mut bench, "other", "a", &[0]);
    assert_eq!(lock(&mut bench, "g", "b", &[0, 1, 2]), [0; 0]);
    unlock(&mut bench, "g", "a", &[1, 7]);
    assert_eq!(lock(&mut bench, "g", "b", &[0, 1, 2]), [1]);
    unlock(&mut bench, "g", "a", &[1]);
    assert_eq!(lock(&mut bench, "g", "c", &[1]), [0; 0], "it is another's by now");
}

/// Case B94: the other client is refused while the owner renews, and gets the queue 60 s after its
/// last renewal; the owner that comes back is refused then.
#[test]
fn b94_a_lease_lasts_sixty_seconds_from_its_last_renewal() {
    let mut bench = Bench::new();
    assert_eq!(lock(&mut bench, "g", "c1", &[0]), [0]);
    for _ in 0..3 {
        bench.pass(20_000);
        assert_eq!(lock(&mut bench, "g", "c2", &[0]), [0; 0]);
        assert_eq!(lock(&mut bench, "g", "c1", &[0]), [0]);
    }
    for _ in 0..60 {
        assert_eq!(lock(&mut bench, "g", "c2", &[0]), [0; 0]);
        bench.pass(1_000);
    }
    assert_eq!(lock(&mut bench, "g", "c2", &[0]), [0; 0], "the sixtieth second is the owner's");
    bench.pass(1);
    assert_eq!(lock(&mut bench, "g", "c2", &[0]), [0]);
    assert_eq!(lock(&mut bench, "g", "c1", &[0]), [0; 0]);
}

#[test]
fn an_owner_that_comes_late_gets_its_queue_again_if_nobody_took_it() {
    let mut bench = Bench::new();
    lock(&mut bench, "g", "a", &[0, 1]);
    bench.pass(100_000);
    assert_eq!(lock(&mut bench, "g", "a", &[0]), [0]);
    assert_eq!(lock(&mut bench, "g", "b", &[0, 1]), [1]);
}

/// Pitfall 33: neither the end of a connection nor leaving the group frees a queue.
#[test]
fn a_client_that_is_gone_keeps_its_queues_until_they_lapse() {
    let mut bench = Bench::new();
    bench.ask(beat(consumer("a", 1, &["t"]))).expect("a member");
    lock(&mut bench, "g", "a", &[0]);
    bench.notify(Event::ChannelClosed(ChannelId(1)));
    assert_eq!(lock(&mut bench, "g", "b", &[0]), [0; 0]);
    bench.pass(60_001);
    assert_eq!(lock(&mut bench, "g", "b", &[0]), [0]);
}

#[test]
fn locks_are_not_stored_and_a_coordinator_begins_without_them() {
    let mut bench = Bench::new();
    lock(&mut bench, "g", "a", &[0]);
    assert!(bench.log.is_empty());
    let config = crate::group::config::GroupConfig::default();
    let mut bench = bench.restarted(config);
    assert_eq!(lock(&mut bench, "g", "b", &[0]), [0]);
}

#[test]
fn what_has_lapsed_takes_no_room() {
    let mut bench = Bench::new();
    let all: Vec<i32> = (0..LOCKED_QUEUES_MAX as i32).collect();
    assert_eq!(lock(&mut bench, "g", "a", &all).len(), LOCKED_QUEUES_MAX);
    assert_eq!(lock(&mut bench, "h", "b", &[0]), [0; 0], "there is no room");
    assert_eq!(lock(&mut bench, "g", "a", &[0]), [0], "what is held is renewed all the same");
    bench.pass(30_000);
    lock(&mut bench, "g", "a", &[1]);
    bench.pass(30_001);
    assert_eq!(lock(&mut bench, "h", "b", &[0, 1, 2]), [0, 1, 2]);
    assert_eq!(lock(&mut bench, "g", "b", &[0, 1]), [0], "only the renewed one is held");
}
