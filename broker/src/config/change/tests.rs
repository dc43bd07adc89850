use super::*;

fn overrides(pairs: &[(&str, &str)]) -> Overrides {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn changed(
    change: fn(&Values, &Overrides, &[KeyChange]) -> Result<Overrides, ChangeError>,
    held: &[(&str, &str)],
    changes: &[(&str, Change)],
) -> Result<Overrides, ChangeError> {
    let values = Values::default();
    let changes: Vec<_> =
        changes.iter().map(|(name, change)| ((*name).to_owned(), change.clone())).collect();
    change(&values, &overrides(held), &changes)
}

fn set(value: &str) -> Change {
    Change::Set(value.to_owned())
}

fn append(value: &str) -> Change {
    Change::Append(value.to_owned())
}

fn subtract(value: &str) -> Change {
    Change::Subtract(value.to_owned())
}

#[test]
fn a_topics_values_are_set_and_deleted() {
    let held = [("retention.ms", "5"), ("segment.ms", "7")];
    let found = changed(topic, &held, &[("retention.ms", Change::Delete), ("flush.ms", set("9"))]);
    assert_eq!(found, Ok(overrides(&[("segment.ms", "7"), ("flush.ms", "9")])));
    assert_eq!(changed(topic, &[], &[("no.such", Change::Delete)]), Ok(Overrides::new()));
    let refused = changed(topic, &held, &[("flush.ms", set("9")), ("segment.ms", set("0"))]);
    assert!(refused.is_err(), "all or nothing");
}

#[test]
fn lists_grow_and_shrink_from_what_is_held_or_else_the_default() {
    let check = |held: Option<&str>, change, wanted: &str| {
        let mut after = Overrides::new();
        after.extend(held.map(|held| ("l".to_owned(), held.to_owned())));
        let default = Some("a,b".to_owned());
        assert_eq!(apply(&mut after, "l", &change, Some(Kind::List), default), Ok(()));
        assert_eq!(after.get("l").map(String::as_str), Some(wanted));
    };
    check(None, append("c"), "a,b,c");
    check(None, append("b, a"), "a,b");
    check(Some("x"), append("b,a"), "x,b,a");
    check(None, subtract("a"), "b");
    check(Some("x"), subtract("x,y"), "");
}

#[test]
fn a_topics_refusals_have_kafkas_words() {
    let refused = |name, change| match changed(topic, &[], &[(name, change)]) {
        Err(ChangeError::InvalidConfig(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("no.such", set("1")), "Unknown topic config name: no.such");
    assert_eq!(refused("retention.ms", append("1")), {
        "Can't APPEND to key retention.ms because its type is not LIST."
    });
    assert_eq!(refused("no.such", subtract("1")), {
        "Can't SUBTRACT to key no.such because its type is not LIST."
    });
    assert_eq!(refused("segment.ms", set("0")), {
        "Invalid value 0 for configuration segment.ms: Value must be at least 1"
    });
    assert_eq!(refused("cleanup.policy", append("shred")), {
        "Invalid value shred for configuration cleanup.policy: \
         String must be one of: compact, delete"
    });
}

#[test]
fn the_node_takes_defaults_of_topics_while_it_runs_and_nothing_else() {
    let found = changed(broker, &[], &[("log.retention.ms", set("60000"))]);
    assert_eq!(found, Ok(overrides(&[("log.retention.ms", "60000")])));
    let refused = |name, value| changed(broker, &[], &[(name, set(value))]).expect_err(name);
    assert_eq!(refused("num.partitions", "3"), {
        ChangeError::InvalidRequest(
            "Cannot update these configs dynamically: [num.partitions]".into(),
        )
    });
    assert_eq!(refused("message.max.bytes", "x"), {
        let text = "Invalid value x for configuration message.max.bytes: Not a number of type INT";
        ChangeError::InvalidRequest(text.into())
    });
    assert_eq!(refused("no.such", "3"), {
        ChangeError::InvalidConfig("Unknown broker config name: no.such".into())
    });
    let text = refused("log.roll.jitter.ms", "5").to_string();
    assert!(text.contains("does not act on it yet"), "{text}");
}
