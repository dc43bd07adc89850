//! RFI-03 to RFI-10: expressions against the original's own verdicts, and the bounds.

use proptest::prelude::*;

use super::expression::{Failed, Value};
use super::{Selector, Selectors, SqlError};
use crate::golden::golden_text;
use crate::limits::{SELECTORS_MAX, SQL_BYTES_MAX, SQL_DEPTH_MAX};
use crate::translate::properties::Properties;

fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::new();
    while let Some(char) = chars.next() {
        plain.push(match char {
            '\\' => match chars.next().unwrap() {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'f' => '\x0c',
                other => other,
            },
            other => other,
        });
    }
    plain
}

fn property_string(pairs: &[&str]) -> String {
    let pair = |pair: &&str| pair.replacen('=', "\u{1}", 1) + "\u{2}";
    pairs.iter().map(pair).collect()
}

#[test]
fn verdicts_are_those_of_rocketmq() {
    let text = golden_text("sql92/verdicts.tsv");
    let (sets, expressions): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("properties"));
    let sets: Vec<String> = sets
        .iter()
        .map(|line| property_string(&line.split('\t').skip(1).collect::<Vec<_>>()))
        .collect();
    let mut seen = [0; 5];
    for line in &expressions {
        let (verdicts, text) = line.split_once('\t').unwrap();
        let expression = unescaped(text);
        let ours = match Selector::compile(&expression) {
            Err(_) => "!".to_owned(),
            Ok(selector) => sets
                .iter()
                .map(|set| match selector.root.evaluate(Properties(set)) {
                    Ok(Value::Boolean(true)) => 'T',
                    Ok(Value::Boolean(false)) => 'F',
                    Ok(Value::Null) => 'N',
                    Err(Failed) => 'X',
                    Ok(other) => panic!("{text} comes to {other:?}"),
                })
                .collect(),
        };
        assert_eq!(ours, verdicts, "{text}");
        for (count, letter) in seen.iter_mut().zip(['T', 'F', 'N', 'X', '!']) {
            *count += usize::from(ours.contains(letter));
        }
    }
    assert!(expressions.len() >= 2500 && seen.iter().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn a_message_matches_only_if_the_verdict_is_true() {
    let properties = property_string(&["a=5", "b=x"]);
    for (text, expected) in
        [("a = 5", true), ("a = 6", false), ("c = 5", false), ("b > 5 OR TRUE", false)]
    {
        let selector = Selector::compile(text).unwrap();
        assert_eq!(selector.matches(Properties(&properties)), expected, "{text}");
    }
}

/// What is refused costs no stack and little memory, and says where.
#[test]
fn what_is_refused_is_told_with_its_place() {
    let deep = |times| format!("{}a{}", "(".repeat(times), ")".repeat(times));
    assert!(Selector::compile(&deep(SQL_DEPTH_MAX - 1)).is_ok());
    let long_chain = format!("a {}", "= TRUE ".repeat(5_000));
    for text in [deep(SQL_DEPTH_MAX), deep(20_000), "NOT ".repeat(10_000) + "a", long_chain] {
        assert_eq!(Selector::compile(&text), Err(SqlError::TooDeep));
    }
    assert!(Selector::compile(&format!("a {}", "AND b ".repeat(10_000))).is_ok(), "not deep");
    assert_eq!(Selector::compile(&" ".repeat(SQL_BYTES_MAX + 1)), Err(SqlError::TooLong));
    for (text, told) in [
        ("a = 5 #", "nothing known begins at 6"),
        ("a = ", "a value was expected at 4"),
        ("a IN (5)", "a text in single quotes was expected at 6"),
        ("a = 99999999999999999999", "the number at 4 is out of range"),
        ("a > 'x'", "what stands before 7 cannot be compared so"),
        ("a BETWEEN 5 AND 3", "nothing is between the bounds before 17"),
        ("5 IN ('5')", "IN before 10 does not follow a property"),
        ("5", "what stands before 1 is not a condition"),
        ("a NOT 5", "CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN was expected at 6"),
    ] {
        assert_eq!(Selector::compile(text).unwrap_err().to_string(), told, "{text}");
    }
}

#[test]
fn expressions_are_compiled_once_and_forgotten_when_they_are_many() {
    let selectors = Selectors::default();
    let first = selectors.compile("a = 5").unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &selectors.compile("a = 5").unwrap()));
    assert_eq!(selectors.compile("a ="), selectors.compile("a ="));
    for number in 0..3 * SELECTORS_MAX {
        selectors.compile(&format!("a = {number}")).unwrap();
        assert!(selectors.0.lock().len() <= SELECTORS_MAX);
    }
    assert_eq!(selectors.compile("a = 5").unwrap(), first, "equal by its text");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ -~\\n\u{e9}]{0,80}", set in "[ -~\u{1}\u{2}]{0,40}") {
        if let Ok(selector) = Selector::compile(&text) {
            let _ = selector.matches(Properties(&set));
        }
    }

    #[test]
    fn no_tokens_make_it_panic(words in proptest::collection::vec(0..WORDS.len(), 0..40)) {
        let text: Vec<&str> = words.iter().map(|at| WORDS[*at]).collect();
        if let Ok(selector) = Selector::compile(&text.join(" ")) {
            let _ = selector.matches(Properties("a\u{1}5\u{2}b\u{1}x\u{2}"));
        }
    }
}

const WORDS: [&str; 24] = [
    "a",
    "b",
    "5",
    "5.5",
    "'x'",
    "(",
    ")",
    ",",
    "=",
    "<>",
    "<",
    ">=",
    "-",
    "NOT",
    "AND",
    "OR",
    "IN",
    "BETWEEN",
    "IS",
    "NULL",
    "TRUE",
    "CONTAINS",
    "STARTSWITH",
    "ENDSWITH",
];
