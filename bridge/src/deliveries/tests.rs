use super::*;

const START: i64 = 1_700_000_000_000;
const T: TopicId = TopicId([1; 16]);

fn pull(group: &str, queue_id: i32, next_offset: i64, messages: usize) -> Delivery<'_> {
    Delivery { group, topic: T, queue_id, next_offset, messages }
}

#[test]
fn a_rate_is_that_of_the_last_minute() {
    let deliveries = Deliveries::default();
    let rate = |seconds: i64| deliveries.per_second("g", T, START + seconds * 1000);
    assert_eq!(rate(0), 0.0);
    deliveries.count(pull("g", 0, 30, 30), START);
    assert_eq!(rate(1), 3.0, "over ten seconds at least");
    assert_eq!(rate(30), 1.0);
    for second in 1..=120 {
        deliveries.count(pull("g", 0, 0, 12), START + second * 1000);
    }
    assert_eq!(rate(121), 12.0);
    assert!(rate(140) > 6.0 && rate(140) < 9.0, "a third of it is over: {}", rate(140));
    assert_eq!(rate(200), 0.0);
    assert_eq!(deliveries.per_second("other", T, START), 0.0);
    assert_eq!(deliveries.per_second("g", TopicId([2; 16]), START), 0.0);
    deliveries.count(pull("g", 0, 0, 50), START + 1_000_000);
    assert_eq!(rate(1001), 5.0, "what is long ago does not count, nor the time since");
}

/// A clock that is set back harms nobody.
#[test]
fn time_may_go_back() {
    let deliveries = Deliveries::default();
    deliveries.count(pull("g", 0, 0, 10), START);
    deliveries.count(pull("g", 0, 0, 10), START - 3_600_000);
    deliveries.count(pull("g", 0, 0, 10), i64::MIN);
    deliveries.count(pull("g", 0, 0, 10), i64::MAX);
    for now in [START, START - 3_600_000, 0, i64::MAX] {
        assert!(deliveries.per_second("g", T, now) >= 0.0);
    }
}

#[test]
fn how_far_each_queue_was_pulled() {
    let deliveries = Deliveries::default();
    assert_eq!(deliveries.next_offset("g", T, 0), None);
    deliveries.count(pull("g", 0, 5, 5), START);
    deliveries.count(pull("g", 1, 7, 0), START);
    deliveries.count(pull("g", 0, 3, 0), START);
    assert_eq!(deliveries.next_offset("g", T, 0), Some(3), "a reset goes back");
    assert_eq!(deliveries.next_offset("g", T, 1), Some(7));
    assert_eq!(deliveries.next_offset("h", T, 1), None);
}

#[test]
fn memory_is_bounded() {
    let deliveries = Deliveries::default();
    for group in 0..=DELIVERIES_MAX {
        deliveries.count(pull(&group.to_string(), 0, 1, 1), START);
    }
    assert!(deliveries.0.lock().topics <= DELIVERIES_MAX);
    let newest = DELIVERIES_MAX.to_string();
    assert_eq!(deliveries.next_offset(&newest, T, 0), Some(1));
}
