use super::*;

/// Case B133, and markers behind the last message.
#[test]
fn a_lag_is_never_negative_and_reaches_zero() {
    let view = PartitionView {
        log_start_offset: 5,
        last_stable_offset: 20,
        deliverable_end: 17,
        ..PartitionView::default()
    };
    for (position, shown) in
        [(0, 0), (5, 5), (16, 16), (17, 20), (19, 20), (20, 20), (1_000_000_000, 20)]
    {
        assert_eq!(shown_position(view, position), shown, "{position}");
    }
    assert_eq!(shown_position(PartitionView::default(), 7), 0, "a queue that is empty");
}
