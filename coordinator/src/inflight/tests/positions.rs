//! A window beside the group's position, which others may set.

use super::*;

#[test]
fn word_of_anothers_position_counts_only_as_long_as_that_start_is_to_be_committed() {
    let mut bench = Bench::new();
    bench.open(3);
    assert_eq!(bench.positions(), [(None, 3)]);
    bench.take(4);
    bench.settle(&[3], 1_000_000);
    let overruled = |offset, by| Ask::Overruled { offset, by };
    for by in [Some(1), None] {
        assert_eq!(bench.ask(overruled(3, by)), Ok(Response::Done), "an old word");
        assert_eq!((bench.window().start(), bench.window().len()), (4, 3));
    }
    assert_eq!(bench.ask(overruled(4, Some(2))), Ok(Response::Done));
    assert_eq!((bench.window().start(), bench.window().len()), (2, 0));
    assert_eq!(bench.take(1), [(2, 1)]);
    assert_eq!(bench.ask(overruled(4, Some(2))), Ok(Response::Done), "said twice");
    bench.settle(&[2], 1_000_000);
    assert_eq!((bench.window().start(), bench.window().end()), (3, 3));
    assert_eq!(bench.ask(overruled(3, None)), Ok(Response::Done));
    assert_eq!(bench.ask(Ask::Plan { count: 1, order: None }), Ok(Response::Plan(None)));
}

impl Bench {
    /// What the position may be though nobody else set it, as told after a start, and the offset told.
    fn told_at_start(self) -> (OwnPositions, i64) {
        let bench = self.restarted();
        let told = bench.notices.iter().find_map(|notice| match notice {
            Notice::Position { own, offset, .. } => Some((*own, *offset)),
            _ => None,
        });
        told.expect("a position")
    }
}

#[test]
fn a_start_knows_which_position_was_the_windows_own() {
    let mut bench = Bench::new();
    bench.open(3);
    let told = bench.notices.last();
    let opened = Notice::Position { share: share("g"), own: OwnPositions::From(3), offset: 3 };
    assert_eq!(told, Some(&opened), "the position that it was opened at, and no other");
    bench.take(4);
    assert_eq!(bench.positions(), [(None, 3)]);
    bench.settle(&[3], 1_000_000);
    assert_eq!(bench.positions(), [(Some(3), 4)]);
    bench.settle(&[4, 5], 1_000_000);
    let mut bench = bench.restarted();
    let is_own = |bench: &Bench, at| bench.runtime.shard().is_own(&share("g"), at);
    let own = [Some(4), Some(5), Some(6)].map(|at| is_own(&bench, at));
    assert_eq!(own, [true; 3], "6 was told to be committed before");
    let others = [None, Some(3), Some(7)].map(|at| is_own(&bench, at));
    assert_eq!(others, [false; 3]);
    assert_eq!(bench.positions(), [(None, 6)]);
    assert_eq!(bench.told_at_start(), (OwnPositions::From(6), 6), "confirmed, it alone is");
}

#[test]
fn a_position_set_by_others_is_the_windows_own_from_then_on() {
    let mut bench = Bench::new();
    bench.open(3);
    bench.take(4);
    bench.positions();
    assert_eq!(bench.ask(Ask::Reset(1)), Ok(Response::Done));
    assert_eq!(bench.told_at_start(), (OwnPositions::From(1), 1));
}

#[test]
fn before_the_first_is_confirmed_any_position_up_to_the_start_may_be_the_windows_own() {
    let mut bench = Bench::new();
    bench.open(3);
    bench.take(4);
    bench.settle(&[3], 1_000_000);
    assert_eq!(bench.told_at_start(), (OwnPositions::UpTo, 4));
}

#[test]
fn what_the_log_refuses_to_confirm_is_confirmed_later() {
    let mut bench = Bench::new();
    bench.open(3);
    bench.failure = Some(AppendError::NotEnoughReplicas);
    assert_eq!(bench.ask(Ask::Committed(3)), Err(InflightError::NotAvailable));
    assert!(bench.runtime.shard().is_committing(&share("g"), 3));
    assert_eq!(bench.ask(Ask::Committed(3)), Ok(Response::Done));
    assert!(!bench.runtime.shard().is_committing(&share("g"), 3));
    assert_eq!(bench.told_at_start(), (OwnPositions::From(3), 3));
}

#[test]
fn a_deleted_group_takes_its_windows_along() {
    let mut bench = Bench::new();
    let other = SharePartition { topic: TopicId([8; 16]), ..share("g") };
    for share in [share("g"), share("h"), other] {
        assert_eq!(bench.ask_of(&share, Ask::Open(0)), Ok(Response::Done));
    }
    bench.take(3);
    bench.runtime.notify(Event::GroupGone("g".into()), bench.now);
    bench.perform();
    assert_eq!(bench.runtime.shard().flight_count(), 0);
    let left: Vec<_> = durable(&bench.restarted().runtime).into_keys().collect();
    assert_eq!(left, [share("h")]);
}
