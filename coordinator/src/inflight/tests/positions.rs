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
