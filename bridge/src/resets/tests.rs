use super::*;

const ONE: TopicId = TopicId([1; 16]);
const TWO: TopicId = TopicId([2; 16]);

#[test]
fn a_reset_waits_until_it_is_heard_of_and_a_newer_one_stays() {
    let resets = OffsetResets::default();
    assert!(resets.assign("g", ONE, 0, 5));
    assert_eq!(resets.waiting("g", ONE, 0), Some(5));
    assert!(resets.assign("g", ONE, 0, 7));
    assert!(!resets.done("g", ONE, 0, 5), "another one came meanwhile");
    assert_eq!(resets.take("g", ONE, 0), Some(7));
    assert_eq!((resets.take("g", ONE, 0), resets.waiting("g", ONE, 0)), (None, None));
    assert_eq!(resets.count.load(Ordering::Relaxed), 0);
}

#[test]
fn nothing_is_kept_of_what_is_gone() {
    let resets = OffsetResets::default();
    for (group, topic) in [("g", ONE), ("g", TWO), ("h", ONE)] {
        for queue_id in 0..2 {
            assert!(resets.assign(group, topic, queue_id, 5));
        }
    }
    resets.retain(|_, topic| topic != ONE);
    assert_eq!((resets.waiting("g", ONE, 1), resets.waiting("g", TWO, 1)), (None, Some(5)));
    assert_eq!(resets.count.load(Ordering::Relaxed), 2);
    resets.retain(|group, _| group != "g");
    assert_eq!(resets.count.load(Ordering::Relaxed), 0);
    assert!(resets.groups.lock().is_empty());
}
