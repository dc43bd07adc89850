use super::*;

#[test]
fn a_topics_value_names_all_who_set_it() {
    let mut values = Values::default();
    values.set_from_flag("log.retention.minutes=2").expect("known");
    let overrides = Overrides::from([("retention.ms".to_owned(), "7".to_owned())]);
    let entries = topic(&values, &overrides);
    let entry = entries.iter().find(|entry| entry.key.name == "retention.ms").expect("shown");
    assert_eq!((entry.value.as_deref(), entry.origin), (Some("7"), Origin::Topic));
    let synonyms: Vec<_> = entry
        .synonyms
        .iter()
        .map(|synonym| (synonym.name, synonym.value.as_deref(), synonym.origin))
        .collect();
    assert_eq!(
        synonyms,
        [
            ("retention.ms", Some("7"), Origin::Topic),
            ("log.retention.minutes", Some("2"), Origin::StaticBroker),
            ("log.retention.hours", Some("168"), Origin::Default),
        ]
    );
    let entries = topic(&values, &Overrides::new());
    let entry = entries.iter().find(|entry| entry.key.name == "retention.ms").expect("shown");
    assert_eq!((entry.value.as_deref(), entry.origin), (Some("120000"), Origin::StaticBroker));
}

#[test]
fn secrets_are_never_shown() {
    let entries = broker(&Values::default());
    assert!(entries.iter().filter(|entry| entry.key.kind == Kind::Password).count() > 3);
    for entry in entries.iter().filter(|entry| entry.key.kind == Kind::Password) {
        assert_eq!(entry.value, None);
        assert!(entry.synonyms.iter().all(|synonym| synonym.value.is_none()));
    }
}
