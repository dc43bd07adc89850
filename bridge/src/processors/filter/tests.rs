use std::sync::Arc;

use super::*;
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
        assert_eq!(Filter::parse(expression, TAG), Ok(expected), "{expression:?}");
    }
}

#[test]
fn what_is_no_tag_expression_is_refused() {
    let parse_failed = "23 SUBSCRIPTION_PARSE_FAILED: parse the consumer's subscription failed";
    assert_eq!(refusal(Filter::parse("||", TAG)), parse_failed);
    assert_eq!(
        refusal(Filter::parse("a > 1", "SQL92")),
        "1 SYSTEM_ERROR: The broker does not support consumer to filter message by SQL92"
    );
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
    assert_eq!(Filter::of(&subscription("*", TAG, false)), Ok(Filter::All));
    assert_eq!(Filter::of(&subscription("x", TAG, true)), Ok(Filter::All));
    assert_eq!(Filter::of(&subscription("Aa", TAG, false)), Ok(Filter::Tags(vec![2112])));
    assert_eq!(
        refusal(Filter::of(&subscription("*", "SQL92", false))),
        "1 SYSTEM_ERROR: The broker does not support consumer to filter message by SQL92"
    );
}

/// As FilterAPI reads them, white space and the parts between bars.
#[test]
fn expressions_are_read_as_the_original_does() {
    for row in rows("5.5.0/filters.tsv") {
        let [expression, text, _, codes] = &row[..] else { panic!("{row:?}") };
        // Null does not come over the wire.
        let Some(expression) = expression.strip_prefix('x').map(unhex_text) else { continue };
        let parsed = Filter::parse(&expression, TAG);
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
            Err(refusal) => panic!("{expression:?}: {refusal}"),
        }
    }
}
