//! What those who wait are told, and when.

use super::*;

#[test]
fn a_clock_that_is_set_back_keeps_nothing_from_being_told() {
    let mut bench = Bench::new();
    bench.open(0);
    bench.take(1);
    bench.pass(1_000);
    assert!(bench.told(&Notice::Ready(share("g"))));
    bench.now.wall_ms -= 3_600_000;
    assert_eq!(bench.take(1), [(1, 1)], "0 is in hand again");
    bench.notices.clear();
    assert!(bench.pass(1_000) && bench.told(&Notice::Ready(share("g"))), "1 may be taken");
    assert_eq!(bench.plan(9).again, [(1, 2)]);
    bench.pass(3_598_999);
    assert!(!bench.told(&Notice::Ready(share("g"))));
    assert!(bench.pass(1) && bench.told(&Notice::Ready(share("g"))), "0 may, once more");
}

#[test]
fn a_clock_that_is_set_back_is_noticed_by_whoever_looks() {
    let mut bench = Bench::new();
    bench.open(0);
    bench.take(1);
    bench.pass(1_000);
    bench.now.wall_ms -= 500;
    assert_eq!(bench.plan(1).again, []);
    bench.notices.clear();
    assert!(bench.pass(500) && bench.told(&Notice::Ready(share("g"))));
}

#[test]
fn what_is_given_back_in_the_moment_in_which_others_were_told_is_told_too() {
    let mut bench = Bench::new();
    bench.open(0);
    bench.take(1);
    bench.pass(1_000);
    bench.take(1);
    bench.notices.clear();
    let give_back = Ask::Delay { offset: 0, popped_ms: 1_001_000, lease: bench.lease(0) };
    assert_eq!(bench.ask(give_back), Ok(Response::Delayed(true)));
    assert!(bench.pass(0) && bench.told(&Notice::Ready(share("g"))));
}

#[test]
fn what_is_dead_because_fewer_deliveries_are_allowed_is_told() {
    let mut bench = Bench::new();
    bench.open(0);
    bench.take(4);
    bench.pass(1_000);
    let lease = bench.lease(1_000);
    let take = Take { again: vec![0], lease, deliveries_max: 1, ..Take::default() };
    bench.notices.clear();
    assert_eq!(bench.ask(Ask::Take(take)), Ok(Response::Taken(true)));
    assert_eq!(bench.plan(4).again, [], "1 to 3 are dead");
    assert!(bench.pass(0) && bench.told(&Notice::Dead(share("g"))));
    let dead = bench.runtime.shard().dead(&share("g"), bench.now.wall_ms, 9);
    assert_eq!(dead, [(1, 1), (2, 1), (3, 1)]);
    assert!(!bench.pass(0), "told once");
}

#[test]
fn the_last_acknowledgement_is_told_whoever_waits_for_it_in_order() {
    let mut bench = Bench::new();
    bench.open(0);
    assert_eq!(bench.take_in(2, order("")), [(0, 1), (1, 1)]);
    let mut bench = bench.restarted();
    assert!(bench.plan_in(2, order("")).is_blocked);
    bench.settle(&[0], 1_000_000);
    assert!(!bench.told(&Notice::Ready(share("g"))));
    bench.settle(&[1], 1_000_000);
    assert!(bench.told(&Notice::Ready(share("g"))));
    assert_eq!(bench.take(1), [(2, 1)], "not in order");
    assert!(bench.plan_in(1, order("")).is_blocked);
    bench.notices.clear();
    bench.settle(&[2], 1_000_000);
    assert!(bench.told(&Notice::Ready(share("g"))));
}
