//! Statements of verdicts that are Duolog's own on purpose; each has its row in docs/differences.md, or in `duolog explain
//! mapping`.

/// Case, what RocketMQ 5.5.0 was seen to do, what Duolog does.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "properties.forged",
        "read RETRY_TOPIC at 0 of T1, reconsumed 0 {RETRY_TOPIC=elsewhere, WAIT=true}",
        "read RETRY_TOPIC at 0 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read REAL_TOPIC at 1 of T1, reconsumed 0 {REAL_TOPIC=elsewhere, WAIT=true}",
        "read REAL_TOPIC at 1 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read REAL_QID at 2 of T1, reconsumed 0 {REAL_QID=3, WAIT=true}",
        "read REAL_QID at 2 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read ORIGIN_MESSAGE_ID at 5 of T1, reconsumed 0 {ORIGIN_MESSAGE_ID=nobody, WAIT=true}",
        "read ORIGIN_MESSAGE_ID at 5 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read RECONSUME_TIME at 6 of T1, reconsumed 0 {RECONSUME_TIME=5, WAIT=true}",
        "read RECONSUME_TIME at 6 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read DLQ_ORIGIN_TOPIC at 7 of T1, reconsumed 0 {DLQ_ORIGIN_TOPIC=elsewhere, WAIT=true}",
        "read DLQ_ORIGIN_TOPIC at 7 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read CONSUME_START_TIME at 8 of T1, reconsumed 0 {CONSUME_START_TIME=1, WAIT=true}",
        "read CONSUME_START_TIME at 8 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read 1ST_POP_TIME at 9 of T1, reconsumed 0 {1ST_POP_TIME=1, WAIT=true}",
        "read 1ST_POP_TIME at 9 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read DELAY at 11 of T1, reconsumed 0 {DELAY=0, WAIT=true}",
        "read DELAY at 11 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read TRAN_MSG at 12 of T1, reconsumed 0 {TRAN_MSG=false, WAIT=true}",
        "read TRAN_MSG at 12 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.forged",
        "read TIMER_OUT_MS at 15 of T1, reconsumed 0 {TIMER_OUT_MS=1, WAIT=true}",
        "read TIMER_OUT_MS at 15 of T1, reconsumed 0 {WAIT=true}",
    ),
    (
        "properties.separators",
        "read a<1>b: {WAIT=true, p=a<1>b, z=last}",
        "read a<1>b: {WAIT=true, p=610162, p.enc=hex, z=last}",
    ),
    (
        "properties.separators",
        "read <1>: {WAIT=true, p=<1>, z=last}",
        "read <1>: {WAIT=true, p=01, p.enc=hex, z=last}",
    ),
    (
        "properties.separators",
        "read a<1>: {WAIT=true, p=a<1>, z=last}",
        "read a<1>: {WAIT=true, p=6101, p.enc=hex, z=last}",
    ),
    (
        "properties.separators",
        "read name n<1>m: {WAIT=true, n=m<1>v, z=last}",
        "read name n<1>m: {WAIT=true, n=6d0176, n.enc=hex, z=last}",
    ),
    (
        "delay.level-that-is-none",
        "level word: broker says 1 java.lang.NumberFormatException: For input string: \"word\", java.base/java.lang.NumberFormatException.forInputString(NumberFormatException.java:67)",
        "level word: broker says 1 For input string: \"word\"",
    ),
    (
        "delay.level-that-is-none",
        "level 1.5: broker says 1 java.lang.NumberFormatException: For input string: \"1.5\", java.base/java.lang.NumberFormatException.forInputString(NumberFormatException.java:67)",
        "level 1.5: broker says 1 For input string: \"1.5\"",
    ),
    (
        "send.batch.too-large",
        "4 MiB and a generous client: broker says 1 java.lang.RuntimeException: message body size exceeded, org.apache.rocketmq.store.MessageExtEncoder.encode(MessageExtEncoder.java:290)",
        "4 MiB and a generous client: broker says 13 the message is illegal, maybe msg body or properties length not matched. msg body length limit 4194304B, msg properties length limit 32KB.",
    ),
];

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
