//! Statements of verdicts that are Duolog's own on purpose; each has its row in docs/differences.md, or in `duolog explain
//! mapping`.

/// Case, what RocketMQ 5.5.0 was seen to do, what Duolog does.
const KNOWN: &[(&str, &str, &str)] = &[];

/// What a case's verdict must be here, where that is the recorded one.
pub fn expected(case: &str, recorded: &[String]) -> Vec<String> {
    let ours = |statement: &String| {
        let known = KNOWN.iter().find(|(of, theirs, _)| *of == case && theirs == statement);
        known.map_or_else(|| statement.clone(), |(_, _, ours)| (*ours).to_owned())
    };
    recorded.iter().map(ours).collect()
}

/// Rows of [`KNOWN`] that no recorded verdict has any more.
pub fn stale(recorded: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let stale = KNOWN.iter().filter(|(case, theirs, _)| !recorded(case, theirs));
    stale.map(|(case, theirs, _)| format!("{case}: {theirs}")).collect()
}
