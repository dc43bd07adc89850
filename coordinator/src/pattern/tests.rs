use super::*;

/// Whether `pattern` matches all of `text`; `None` when it is no expression.
fn matches(pattern: &str, text: &str) -> Option<bool> {
    whole(pattern).ok().map(|regex| regex.is_match(text))
}

#[test]
fn what_re2_matches_is_matched() {
    for (pattern, text) in [
        ("t.*", "topic"),
        ("a|tb", "tb"),
        (r"\Qtc.d\E", "tc.d"),
        (r"\Qa+", "a+"),
        (r"a\Q\E", "a"),
        ("(?i)TA", "ta"),
        ("(?P<n>t)a", "ta"),
        ("a{2,3}?", "aaa"),
        ("x{", "x{"),
        ("x{,2}", "x{,2}"),
        ("[]a]+", "]a"),
        ("[^]a]", "b"),
        ("t[a-b&&[b]]", "t&]"),
        ("[+--]", ","),
        ("[[:alpha:]_]+", "a_"),
        (r"[\d.]+", "1.2"),
        (r"\p{Greek}", "α"),
        (r"\pL", "ä"),
        (r"\p{^Lu}", "a"),
        (r"\(?a", "(a"),
    ] {
        assert_eq!(matches(pattern, text), Some(true), "{pattern} {text}");
    }
}

#[test]
fn what_re2_does_not_match_is_not_matched() {
    for (pattern, text) in [
        ("t", "ta"),
        ("a|b", "ab"),
        ("T.*", "ta"),
        (r"\Qtc.d\E", "tcxd"),
        ("t[a-b&&[b]]", "tb"),
        (r"\d", "٣"),
        (r"\w", "ä"),
    ] {
        assert_eq!(matches(pattern, text), Some(false), "{pattern} {text}");
    }
}

#[test]
fn what_is_no_expression_of_re2_is_refused() {
    for pattern in [
        "(",
        "[",
        "*",
        "a)|(b",
        "t(?=a)a",
        r"(t)a\1",
        "t++a",
        "t**",
        "t+??",
        "a{2}{3}",
        r"\p{Alpha}",
        r"\p{L",
        "\\",
        "[[:none:]]",
        "a{2000}{2000}",
    ] {
        assert_eq!(matches(pattern, ""), None, "{pattern}");
    }
    let long = "a".repeat(REGEX_BYTES_MAX + 1);
    assert_eq!(whole(&long).map(drop), Err(format!("longer than {REGEX_BYTES_MAX} bytes")));
}
