//! Topics that come and go, regular expressions, assignors.

use super::*;

#[test]
fn a_topic_that_grows_comes_or_goes_is_assigned_anew() {
    let mut bench = bench();
    assert_eq!(bench.told(consumer_join("a", &["t", "u"])), (2, "t:0,1,2".to_owned()));
    bench.topics(&[("t", 4), ("u", 1)]);
    assert_eq!(bench.told(consumer_beat("a", 2)), (3, "t:0,1,2,3 u:0".to_owned()));
    bench.topics(&[("t", 4), ("u", 1), ("v", 1)]);
    assert_eq!(bench.told(consumer_beat("a", 3)), (3, "-".to_owned()), "v is none of its own");
    bench.topics(&[("u", 1)]);
    assert_eq!(bench.told(consumer_beat("a", 3)), (3, "u:0".to_owned()), "t is gone");
    let given_up = ConsumerGroupHeartbeat { owned: owning("u", &[0]), ..consumer_beat("a", 3) };
    assert_eq!(bench.told(given_up), (4, "-".to_owned()));
}

#[test]
fn a_member_may_want_other_topics_than_before() {
    let mut bench = bench();
    bench.topics(&[("t", 2), ("u", 1)]);
    bench.told(consumer_join("a", &["t"]));
    let topics = Some(vec![Arc::from("u")]);
    let other = ConsumerGroupHeartbeat { topics, ..consumer_beat("a", 2) };
    assert_eq!(bench.told(other), (2, String::new()), "gives up t first");
    let given_up = ConsumerGroupHeartbeat { owned: Some(vec![]), ..consumer_beat("a", 2) };
    assert_eq!(bench.told(given_up), (3, "u:0".to_owned()));
    let none = ConsumerGroupHeartbeat { topics: Some(vec![]), ..consumer_join("b", &[]) };
    assert_eq!(bench.told(none), (3, String::new()), "who wants nothing changes nothing");
}

#[test]
fn regular_expressions_mean_whole_names_of_all_topics() {
    let mut bench = bench();
    bench.topics(&[("at", 1), ("bt", 1), ("bts", 1), ("u", 1)]);
    let join = |member: &str, regex: &str| ConsumerGroupHeartbeat {
        topics: None,
        regex: Some(regex.into()),
        ..consumer_join(member, &[])
    };
    let before = bench.log.len();
    assert_eq!(bench.told(join("a", "a|b.*t")), (2, "bt:0".to_owned()), "whole names only");
    assert_eq!(kinds(&bench, before)[..2], ["member a", "regex a|b.*t"]);
    let changed = ConsumerGroupHeartbeat { regex: Some(".t".into()), ..consumer_beat("a", 2) };
    let before = bench.log.len();
    assert_eq!(bench.told(changed), (3, "at:0 bt:0".to_owned()));
    let kinds_now = kinds(&bench, before);
    assert_eq!(kinds_now[..3], ["member a", "regex a|b.*t gone", "regex .t"]);
    // A new topic is found with the next heartbeat.
    bench.topics(&[("at", 1), ("bt", 1), ("ct", 1), ("u", 1)]);
    assert_eq!(bench.told(consumer_beat("a", 3)), (4, "at:0 bt:0 ct:0".to_owned()));
    // Names besides; and the expression goes with the last who wants it.
    let both =
        ConsumerGroupHeartbeat { topics: Some(vec![Arc::from("u")]), ..consumer_beat("a", 4) };
    assert_eq!(bench.told(both), (5, "at:0 bt:0 ct:0 u:0".to_owned()));
    let before = bench.log.len();
    bench.consume(consumer_beat("a", LEAVE_EPOCH)).expect("left");
    assert_eq!(kinds(&bench, before)[3..], ["regex .t gone", "epoch"]);
}

#[test]
fn expressions_that_cannot_be_read_are_refused() {
    let mut bench = bench();
    for regex in ["(", "a)(b", "[", "*", "(?=t)", r"(t)\1", &"x".repeat(5_000)] {
        let join = ConsumerGroupHeartbeat {
            topics: None,
            regex: Some(regex.into()),
            ..consumer_join("a", &[])
        };
        let refusal = bench.consume(join).expect_err(regex);
        assert_eq!(refusal.error, GroupError::InvalidRegularExpression, "{regex}");
        assert!(refusal.text.starts_with("SubscribedTopicRegex `"), "{}", refusal.text);
    }
    assert!(bench.log.is_empty());
}

#[test]
fn the_assignor_that_most_ask_for_assigns() {
    let mut bench = bench();
    bench.topics(&[("t", 3), ("u", 3)]);
    let join = |member: &str, assignor: &str| ConsumerGroupHeartbeat {
        assignor: Some(assignor.into()),
        ..consumer_join(member, &["t", "u"])
    };
    bench.told(join("a", "uniform"));
    bench.told(join("b", "range"));
    assert_eq!(&*bench.consumers("g").assignor, "range", "the first by name among equals");
    bench.told(join("c", "uniform"));
    assert_eq!(&*bench.consumers("g").assignor, "uniform");
}
