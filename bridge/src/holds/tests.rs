use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn is_ready(future: std::pin::Pin<&mut impl Future>) -> bool {
    matches!(future.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

#[test]
fn holds_are_counted_bounded_and_forgotten() {
    let holds = Holds::new(2);
    let first = holds.hold("a").expect("room");
    let second = holds.hold("a").expect("room");
    assert!(holds.hold("b").is_none());
    assert_eq!(holds.count(), 2);
    drop(first);
    let third = holds.hold("b").expect("room");
    assert_eq!(holds.count(), 2);
    drop((second, third));
    assert_eq!(holds.count(), 0);
    assert!(holds.state.lock().groups.is_empty(), "a group without holds is forgotten");
}

#[test]
fn a_change_wakes_the_pulls_of_its_group_alone() {
    let holds = Holds::new(9);
    let (first, second, other) = (holds.hold("a"), holds.hold("a"), holds.hold("b"));
    let [first, second, other] = [first, second, other].map(|hold| hold.expect("room"));
    let mut first = pin!(first.changed());
    let mut second = pin!(second.changed());
    let mut other = pin!(other.changed());
    assert!(!is_ready(first.as_mut()) && !is_ready(second.as_mut()) && !is_ready(other.as_mut()));
    holds.group_changed("a");
    holds.group_changed("nobody");
    assert!(is_ready(first.as_mut()) && is_ready(second.as_mut()));
    assert!(!is_ready(other.as_mut()));
}

#[test]
fn a_change_between_asking_and_waiting_is_not_lost() {
    let holds = Holds::new(9);
    let hold = holds.hold("a").expect("room");
    let mut changed = pin!(hold.changed());
    holds.group_changed("a");
    assert!(is_ready(changed.as_mut()));
}
