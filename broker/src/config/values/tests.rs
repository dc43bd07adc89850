use super::*;

fn from_file(text: &str) -> Result<Values, ConfigError> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("duolog.toml");
    std::fs::write(&path, text).expect("written");
    let mut values = Values::default();
    values.set_from_file(&path).map(|()| values)
}

#[test]
fn quoted_dotted_and_table_keys_are_alike() {
    for text in [
        "\"num.partitions\" = 3\n\"rocketmq.brokerName\" = \"b\"",
        "num.partitions = 3\nrocketmq.brokerName = \"b\"",
        "[num]\npartitions = \"3\"\n[rocketmq]\nbrokerName = \"b\"",
    ] {
        let values = from_file(text).expect(text);
        assert_eq!(values.text("num.partitions"), Some("3"), "{text}");
        assert_eq!(values.text("rocketmq.brokerName"), Some("b"), "{text}");
    }
}

#[test]
fn flags_win_over_environment_over_file_over_profile() {
    let mut values = from_file("num.partitions = 2\nlog.retention.ms = 5").expect("valid");
    let env = [("DUOLOG_NUM_PARTITIONS", "3"), ("DUOLOG_ROCKETMQ_BROKERNAME", "x"), ("HOME", "/")];
    values
        .set_from_environment(env.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter())
        .expect("known variables");
    assert_eq!(values.text("num.partitions"), Some("3"));
    assert_eq!(values.text("rocketmq.brokerName"), Some("x"));
    values.set_from_flag("num.partitions=4").expect("known");
    values.set_from_file(Path::new("/dev/null")).expect("an empty file");
    values.set_fast_profile().expect("known keys");
    assert_eq!(values.text("num.partitions"), Some("4"));
    assert_eq!(values.text("log.retention.ms"), Some("5"));
    assert_eq!(values.text("group.initial.rebalance.delay.ms"), Some("0"));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    let error = from_file("num.partitons = 3").expect_err("misspelt").to_string();
    assert!(error.contains("did you mean \"num.partitions\"?"), "{error}");
    let mut values = Values::default();
    let variable = ("DUOLOG_NUM_PARTITION".to_owned(), "1".to_owned());
    let error = values.set_from_environment([variable].into_iter()).expect_err("misspelt");
    assert!(error.to_string().contains("DUOLOG_NUM_PARTITION"), "{error}");
    assert!(matches!(values.set_from_flag("x"), Err(ConfigError::NotAnAssignment(_))));
}

#[test]
fn variables_are_distinct() {
    let mut names: Vec<_> = key::broker_keys().iter().map(variable_name).collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn units_of_alternative_keys_are_applied() {
    let mut values = Values::default();
    let keys = [("log.retention.ms", 1), ("log.retention.minutes", 60_000)];
    assert_eq!(values.first_set(&keys).expect("numbers"), None);
    values.set_from_flag("log.retention.minutes=2").expect("known");
    assert_eq!(values.first_set(&keys).expect("numbers"), Some(120_000));
    values.set_from_flag("log.retention.ms=-1").expect("known");
    assert_eq!(values.first_set(&keys).expect("numbers"), Some(-1));
}
