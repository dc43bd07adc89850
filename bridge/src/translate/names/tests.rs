use proptest::prelude::*;

use super::*;

/// Pitfall 10.
#[test]
fn names_are_stored_as_the_table_says() {
    for (name, stored) in [
        ("orders", "orders"),
        ("%RETRY%group-1", "__rmq.retry.group-1"),
        ("%RETRY%ns%group", "__rmq.retry.ns.25group"),
        ("%DLQ%g", "__rmq.n..25DLQ.25g"),
        ("a|b", "__rmq.n.a.7Cb"),
        ("%RETRY%g+t", "__rmq.retry.g.2Bt"),
        ("ns%orders", "__rmq.n.ns.25orders"),
        ("größe", "__rmq.n.gr.C3.B6.C3.9Fe"),
    ] {
        assert_eq!(stored_topic(name).as_deref(), Ok(stored));
        assert_eq!(rocketmq_name(stored).as_deref(), Some(name));
    }
}

#[test]
fn a_kafka_name_with_dots_shows_with_underscores() {
    assert_eq!(rocketmq_name("orders.v1").as_deref(), Some("orders_v1"));
    assert_eq!(stored_topic("orders.v1").as_deref(), Ok("orders.v1"));
}

#[test]
fn internal_and_impossible_names_are_refused() {
    assert_eq!(stored_topic(""), Err(NameError::Empty));
    assert_eq!(stored_topic("__rmq.retry.g"), Err(NameError::Internal("__rmq.retry.g".to_owned())));
    let long = format!("%RETRY%{}", "%".repeat(80));
    assert!(matches!(stored_topic(&long), Err(NameError::TooLong { length: 252, .. })));
    assert_eq!(rocketmq_name("__rmq.n.a.2"), None);
    assert_eq!(rocketmq_name("__rmq.n.a.2b"), None, "escapes are upper case");
    assert_eq!(rocketmq_name("__rmq.other"), None);
    assert_eq!(rocketmq_name(&"t".repeat(128)), None);
    assert_eq!(shown_topic(&"t".repeat(128)), "t".repeat(128));
}

proptest! {
    #[test]
    fn every_storable_name_comes_back(name in "[a-zA-Z0-9_%|+#é-]{1,60}") {
        let Ok(stored) = stored_topic(&name) else { return Ok(()) };
        prop_assert!(stored.bytes().all(|byte| is_plain(byte) || byte == b'.'));
        prop_assert_eq!(rocketmq_name(&stored), Some(Cow::Borrowed(name.as_str())));
    }

    #[test]
    fn no_name_panics(name in "\\PC{0,40}") {
        let _any = stored_topic(&name);
        let _any = rocketmq_name(&name);
    }
}
