use super::*;

fn wanting(subscriptions: &[(&str, &str, i64)]) -> u64 {
    let one = |(topic, expression, version): &(&str, &str, i64)| {
        Arc::new(Subscription {
            topic: Arc::from(*topic),
            expression: (*expression).to_owned(),
            expression_type: "TAG".to_owned(),
            tags: Vec::new(),
            tag_hashes: Vec::new(),
            version: *version,
            class_filter_mode: false,
        })
    };
    signature(&subscriptions.iter().map(one).collect::<Vec<_>>())
}

#[test]
fn members_that_want_something_else_are_found_while_they_live() {
    let compared = Compared::default();
    let add = |client: &str, wants: u64, gone: &str| {
        compared.differing("g", &Arc::from(client), wants, |id| id != gone)
    };
    let all = wanting(&[("t", "*", 1), ("u", "a||b", 1)]);
    assert_eq!(add("c1", all, ""), None);
    // Neither order nor the time is a difference.
    assert_eq!(add("c2", wanting(&[("u", "a||b", 9), ("t", "*", 2)]), ""), None);
    let other = add("c3", wanting(&[("t", "*", 1)]), "").expect("a difference");
    assert!(["c1", "c2"].contains(&&*other));
    assert_eq!(add("c1", all, "").as_deref(), Some("c3"));
    assert_eq!(add("c1", all, "c3"), None);
    assert!(add("c3", wanting(&[("t", "a", 1), ("u", "a||b", 1)]), "").is_some());
}

#[test]
fn what_is_kept_is_bounded() {
    let compared = Compared::default();
    for number in 0..COMPARED_MEMBERS_MAX * 2 {
        compared.differing(&number.to_string(), &Arc::from("c"), 1, |_| true);
    }
    let state = compared.0.lock();
    assert!(state.members <= COMPARED_MEMBERS_MAX);
    assert_eq!(state.groups.values().map(HashMap::len).sum::<usize>(), state.members);
}
