use super::*;

fn overrides(values: &[(&str, &str)]) -> Overrides {
    values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn client(id: &str, software: &str) -> Attributes {
    Attributes::from([("client_id", id.to_owned()), ("client_software_name", software.to_owned())])
}

#[test]
fn a_client_is_asked_for_all_that_it_matches_as_often_as_the_most_frequent() {
    let all = [
        (
            "a",
            overrides(&[
                ("metrics", "x.,y."),
                ("interval.ms", "60000"),
                ("match", "client_id=c.*"),
            ]),
        ),
        (
            "b",
            overrides(&[
                ("metrics", "y.,z."),
                ("match", "client_id=c1, client_software_name=java"),
            ]),
        ),
        ("c", overrides(&[("interval.ms", "1000"), ("match", "client_source_port=1")])),
    ];
    let subscriptions = Subscriptions::resolve(all.iter().map(|(name, values)| (*name, values)));
    let wanted = |id: &str, software: &str| {
        let wanted = subscriptions.wanted(&client(id, software));
        (wanted.metrics.join(" "), wanted.interval_ms)
    };
    assert_eq!(wanted("c1", "java"), ("x. y. z.".into(), 60_000));
    assert_eq!(wanted("c1", "go"), ("x. y.".into(), 60_000));
    assert_eq!(wanted("xc1", "java"), (String::new(), DEFAULT_INTERVAL_MS), "the whole name");
    let every = overrides(&[("metrics", "*,x.")]);
    let subscriptions = Subscriptions::resolve([("e", &every)].into_iter());
    assert_eq!(subscriptions.wanted(&client("any", "any")).metrics, ["*"]);
}

/// Codes and texts of Kafka 4.3.1.
#[test]
fn settings_are_refused_in_kafkas_words() {
    let invalid = |text: &str| Err(ChangeError::InvalidConfig(text.into()));
    let request = |text: &str| Err(ChangeError::InvalidRequest(text.into()));
    let interval = |value| {
        request(&format!(
            "Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        ))
    };
    for (key, value, expected) in [
        ("metrics", "", Ok(())),
        ("match", "client_id=a,client_id=b", Ok(())),
        ("no", "1", request("Unknown client metrics configuration: no")),
        (
            "interval.ms",
            "x",
            invalid("Invalid value x for configuration interval.ms: Not a number of type INT"),
        ),
        ("interval.ms", "99", interval("99")),
        ("interval.ms", "3600001", interval("3600001")),
        ("match", "client_id", invalid("Illegal client matching pattern: client_id")),
        ("match", "client_id=[", invalid("Illegal client matching pattern: client_id=[")),
        ("match", "who=a", invalid("Illegal client matching pattern: who=a")),
        ("match", "client_id=a=b", invalid("Illegal client matching pattern: client_id=a=b")),
    ] {
        assert_eq!(check("m", &overrides(&[(key, value)])), expected, "{key}={value}");
    }
    assert_eq!(check("", &overrides(&[])), request("Subscription name can't be empty"));
}
