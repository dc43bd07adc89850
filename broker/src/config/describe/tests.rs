use super::*;

fn shown_topic(layers: &Layers<'_>, overrides: &Overrides, name: &str) -> Entry {
    let entries = layers.topic(overrides);
    entries.into_iter().find(|entry| entry.key.name == name).expect("shown")
}

fn synonyms(entry: &Entry) -> Vec<(&str, Option<&str>, Origin)> {
    entry
        .synonyms
        .iter()
        .map(|synonym| (synonym.name, synonym.value.as_deref(), synonym.origin))
        .collect()
}

#[test]
fn a_topics_value_names_all_who_set_it() {
    let overrides = Overrides::from([("max.message.bytes".to_owned(), " 7 ".to_owned())]);
    let cluster = Overrides::from([("message.max.bytes".to_owned(), "3000000".to_owned())]);
    let mut fixed = Values::default();
    fixed.set_from_flag("message.max.bytes=5").expect("known");
    let layers = Layers { values: &fixed, fixed: &fixed, node: None, cluster: Some(&cluster) };
    let entry = shown_topic(&layers, &overrides, "max.message.bytes");
    assert_eq!((entry.value.as_deref(), entry.origin), (Some("7"), Origin::Topic));
    assert_eq!(
        synonyms(&entry),
        [
            ("max.message.bytes", Some("7"), Origin::Topic),
            ("message.max.bytes", Some("3000000"), Origin::DynamicDefaultBroker),
            ("message.max.bytes", Some("5"), Origin::StaticBroker),
            ("message.max.bytes", Some("1048588"), Origin::Default),
        ]
    );
}

#[test]
fn a_weaker_unit_is_named_only_beside_a_stronger_one() {
    // As Kafka 4.3.1 shows retention.ms: nothing while only the default in hours stands.
    let fixed = Values::default();
    let mut layers = Layers { values: &fixed, fixed: &fixed, node: None, cluster: None };
    let entry = shown_topic(&layers, &Overrides::new(), "retention.ms");
    assert_eq!((entry.value.as_deref(), entry.origin), (Some("604800000"), Origin::Default));
    assert_eq!(synonyms(&entry), []);
    let node = Overrides::from([("log.retention.ms".to_owned(), "60000".to_owned())]);
    layers.node = Some(&node);
    let entry = shown_topic(&layers, &Overrides::new(), "retention.ms");
    let wanted = [
        ("log.retention.ms", Some("60000"), Origin::DynamicBroker),
        ("log.retention.hours", Some("168"), Origin::Default),
    ];
    assert_eq!(synonyms(&entry), wanted);
    let broker = layers.broker();
    let entry = broker.iter().find(|entry| entry.key.name == "log.retention.ms").expect("shown");
    assert_eq!(synonyms(entry), wanted);
}

#[test]
fn secrets_are_never_shown() {
    let fixed = Values::default();
    let entries = Layers { values: &fixed, fixed: &fixed, node: None, cluster: None }.broker();
    assert!(entries.iter().filter(|entry| entry.key.kind == Kind::Password).count() > 3);
    for entry in entries.iter().filter(|entry| entry.key.kind == Kind::Password) {
        assert_eq!(entry.value, None);
        assert!(entry.synonyms.iter().all(|synonym| synonym.value.is_none()));
    }
}
