use super::*;

/// Codes and texts of Kafka 4.3.1.
#[test]
fn filters_are_refused_in_kafkas_words() {
    let of = |entity_type: &str, match_type, name: Option<&str>| ComponentData {
        entity_type: entity_type.into(),
        match_type,
        r#match: name.map(Str::from),
    };
    let ip_alone = "Invalid entity filter component combination. IP filter component should not \
                    be used with user or clientId filter component.";
    let twice = "Entity type user cannot appear more than once in the filter.";
    for (components, code, text) in [
        (vec![of("user", 9, Some("a"))], 42, "Unknown match type 9"),
        (
            vec![of("user", 0, None)],
            42,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            vec![of("user", 1, Some("a"))],
            42,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            vec![of("user", 2, Some("a"))],
            42,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        (vec![of("", 0, None)], 42, "Invalid empty entity type."),
        (vec![of("other", 0, Some("a"))], 35, "Unsupported entity type other"),
        (vec![of("user", 0, Some("a")), of("user", 1, None)], 42, twice),
        (vec![of("ip", 0, Some("1.2.3.4")), of("user", 0, Some("a"))], 42, ip_alone),
        (vec![of("client-id", 0, Some("c")), of("ip", 0, Some("a"))], 42, ip_alone),
    ] {
        let refused = check(&components).expect_err(text);
        let message = refused.message.unwrap_or_default();
        assert_eq!((refused.code.code(), &*message), (code, text));
    }
    for components in
        [vec![], vec![of("ip", 0, Some("a"))], vec![of("user", 1, None), of("client-id", 2, None)]]
    {
        assert_eq!(check(&components), Ok(()));
    }
}
