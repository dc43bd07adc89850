use std::sync::Arc;

use super::*;

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
