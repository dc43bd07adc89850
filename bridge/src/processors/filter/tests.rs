use std::sync::Arc;

use super::*;
use crate::dispatch::Dispatcher;
use crate::fake::FakeBackend;
use crate::golden::{rows, unhex_text};

fn refusal(result: Result<Filter, Refusal>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn tags_of_a_pull() {
    for (expression, expected) in [
        ("", Filter::All),
        ("*", Filter::All),
        ("Aa", Filter::Tags(vec![2112])),
        ("Aa||BB", Filter::Tags(vec![2112, 2112])),
        (" TagA || || TagB ", Filter::Tags(vec![2598919, 2598920])),
        ("|", Filter::Tags(vec![124])),
    ] {
        assert_eq!(Filter::tags(expression), Ok(expected), "{expression:?}");
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    let backend = FakeBackend::new();
    let shared = Dispatcher::new(backend.clone()).shared();
    let parse = |expression, kind| refusal(Filter::parse(expression, kind, &shared));
    let failed = "23 SUBSCRIPTION_PARSE_FAILED: parse the consumer's subscription failed";
    assert_eq!(parse("||", TAG), failed);
    assert_eq!(parse("a >", "SQL92"), format!("{failed}: a value was expected at 3"));
    let unsupported = |kind| {
        format!("1 SYSTEM_ERROR: The broker does not support consumer to filter message by {kind}")
    };
    assert_eq!(parse("a > 1", "JMS"), unsupported("JMS"));
    assert!(Filter::parse("a > 1", "SQL92", &shared).is_ok());
    backend.configure(|config| config.property_filter = false);
    assert_eq!(parse("a > 1", "SQL92"), unsupported("SQL92"));
}

/// RFI-10: an expression is looked at before its consumer starts.
#[test]
fn an_expression_is_checked_as_the_original_does() {
    let backend = FakeBackend::new();
    let shared = Dispatcher::new(backend.clone()).shared();
    let checked = |expression, kind| check(expression, kind, &shared).map_err(|it| it.to_string());
    assert_eq!(checked("||", TAG), Ok(()), "the client has read it already");
    assert_eq!(checked("a > 1 AND b IS NULL", "SQL92"), Ok(()));
    let told = "23 SUBSCRIPTION_PARSE_FAILED: Invalid MessageSelector. \
                what stands before 7 cannot be compared so";
    assert_eq!(checked("a > 'b'", "SQL92"), Err(told.into()));
    backend.configure(|config| config.property_filter = false);
    assert!(checked("a > 1", "SQL92").unwrap_err().starts_with("1 SYSTEM_ERROR"));
}

#[test]
fn registered_subscriptions() {
    let subscription = |expression: &str, expression_type: &str, class_filter_mode| Subscription {
        topic: Arc::from("t"),
        expression: expression.into(),
        expression_type: expression_type.into(),
        tags: vec!["Aa".into()],
        tag_hashes: vec![2112],
        version: 1,
        class_filter_mode,
    };
    let shared = Dispatcher::new(FakeBackend::new()).shared();
    let of = |registered| Filter::of(&registered, &shared);
    assert_eq!(of(subscription("*", TAG, false)), Ok(Filter::All));
    assert_eq!(of(subscription("x", TAG, true)), Ok(Filter::All));
    assert_eq!(of(subscription("Aa", TAG, false)), Ok(Filter::Tags(vec![2112])));
    let selector = Arc::new(Selector::compile("a = 5").unwrap());
    assert_eq!(of(subscription("a = 5", "SQL92", false)), Ok(Filter::Sql(selector)));
    let told = "27 FILTER_DATA_NOT_EXIST: The broker's consumer filter data is not exist!\
                Your expression may be wrong! nothing known begins at 0";
    assert_eq!(refusal(of(subscription("*", "SQL92", false))), told);
}

/// As FilterAPI reads them, white space and the parts between bars.
#[test]
fn expressions_are_read_as_the_original_does() {
    for row in rows("5.5.0/filters.tsv") {
        let [expression, text, _, codes] = &row[..] else { panic!("{row:?}") };
        // Null does not come over the wire.
        let Some(expression) = expression.strip_prefix('x').map(unhex_text) else { continue };
        let parsed = Filter::tags(&expression);
        if text == "error" {
            assert!(parsed.is_err(), "{expression:?}");
            continue;
        }
        let expected: std::collections::BTreeSet<i32> =
            codes.split(',').filter_map(|code| code.parse().ok()).collect();
        match parsed {
            Ok(Filter::All) => assert_eq!(unhex_text(text), ALL, "{expression:?}"),
            Ok(Filter::Tags(hashes)) => {
                let hashes: std::collections::BTreeSet<i32> = hashes.into_iter().collect();
                assert_eq!(hashes, expected, "{expression:?}");
            }
            other => panic!("{expression:?}: {other:?}"),
        }
    }
}
