use super::*;

#[test]
fn names_follow_kafkas_rules() {
    for name in ["a", "A-b_c.9", "..a", &"x".repeat(249), "__consumer_offsets"] {
        assert_eq!(check(name), Ok(()), "{name}");
    }
    for name in ["", ".", "..", "a/b", "%RETRY%g", "a b", "é", &"x".repeat(250), METADATA_TOPIC] {
        assert!(check(name).is_err(), "{name}");
    }
}

#[test]
fn internal_topics_are_known_by_name() {
    assert!(is_internal("__rmq.retry.g") && is_internal(OFFSETS_TOPIC));
    assert!(!is_internal("__rmq") && !is_internal("orders"));
}
