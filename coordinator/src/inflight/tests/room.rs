//! What the windows of one shard leave each other.

use super::*;
use crate::limits::{SHARD_FLIGHTS_MAX, WINDOW_FLIGHTS_FLOOR};

impl Bench {
    /// Has a group take as much as it may.
    fn fill(&mut self, group: &str) {
        let share = share(group);
        assert_eq!(self.ask_of(&share, Ask::Open(0)), Ok(Response::Done));
        let next = WINDOW_FLIGHTS_MAX as i64;
        let fresh = Some(Fresh { from: 0, next, offsets: (0..next).collect() });
        let take = Take { fresh, lease: self.lease(1_000_000), ..Take::default() };
        assert_eq!(self.ask_of(&share, Ask::Take(take)), Ok(Response::Taken(true)));
    }

    fn settle_first(&mut self, group: &str, range: std::ops::Range<i64>) {
        let (offsets, popped_ms) = (settled::set(&range.collect::<Vec<_>>()), 1_000_000);
        let settle = Ask::Settle { offsets, popped_ms, state: DeliveryState::Acknowledged };
        assert!(matches!(self.ask_of(&share(group), settle), Ok(Response::Settled(1..))));
    }
}

#[test]
fn full_windows_leave_the_others_a_few_and_room_is_told_to_those_who_found_none() {
    let mut bench = Bench::new();
    for group in ["a", "b"] {
        bench.fill(group);
    }
    assert_eq!(bench.runtime.shard().flight_count(), SHARD_FLIGHTS_MAX);
    bench.open(0);
    assert_eq!(bench.take(100).len(), WINDOW_FLIGHTS_FLOOR);
    assert_eq!(bench.plan(1).room, 0);
    bench.notices.clear();
    let floor = WINDOW_FLIGHTS_FLOOR as i64;
    bench.settle_first("a", 0..floor);
    assert!(!bench.told(&Notice::Ready(share("g"))), "still full");
    bench.settle_first("a", floor..floor + 1);
    assert!(bench.told(&Notice::Ready(share("g"))));
    assert_eq!(bench.take(100).len(), 1);
    assert_eq!(bench.plan(1).room, 0);
    bench.notices.clear();
    assert_eq!(bench.ask_of(&share("b"), Ask::Forget), Ok(Response::Done));
    assert!(bench.told(&Notice::Ready(share("g"))));
    assert_eq!(bench.plan(1).room, WINDOW_FLIGHTS_MAX - WINDOW_FLIGHTS_FLOOR - 1);
}
