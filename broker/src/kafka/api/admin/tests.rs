use super::*;

#[test]
fn assignments_name_each_live_node_once_and_equally_many() {
    let check = |replicas: &[i32], count, wanted: &str| {
        let found = check_assignment(&[1, 2, 3], replicas, count);
        let found = found.err().and_then(|refused| refused.message).unwrap_or_default();
        assert!(found.contains(wanted) && found.is_empty() == wanted.is_empty(), "{found}");
    };
    check(&[3, 1], Some(2), "");
    check(&[], None, "empty replica list");
    check(&[2, 2], None, "the broker 2 more than once");
    check(&[1, 4], None, "broker 4, but no such broker");
    check(&[1, 2, 3], Some(2), "3 replica(s), but this is not consistent");
}

#[test]
fn texts_are_cut_between_characters() {
    let refused = Refused::invalid_request("ü".repeat(5000));
    assert_eq!(refused.message.map(|text| text.len()), Some(4096));
    assert_eq!(shortened("short".into()), "short".into());
}
