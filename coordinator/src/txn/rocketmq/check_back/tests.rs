use duolog_log_core::ids::{Offset, TopicPartition};

use super::*;
use crate::delivery::StoredMessage;
use crate::record::half::HalfMessage;
use crate::txn::rocketmq::half::OpenHalves;

const BORN_MS: i64 = 1_000_000_000;

fn check(immunity: Immunity, times: i32, age_ms: i64, expected: Option<Verdict>) {
    let message = StoredMessage { timestamp_ms: BORN_MS, payload: bytes::Bytes::new() };
    let message = HalfMessage {
        target: TopicPartition::new("t", 0),
        group: "p".into(),
        client: "c".into(),
        immunity,
        born_ms: BORN_MS,
        message,
    };
    let mut halves = OpenHalves::default();
    halves.insert(&message, Offset(0));
    halves.set_times(Offset(0), times);
    let half = halves.get(Offset(0)).expect("open");
    let got = verdict(half, &CheckConfig::default(), BORN_MS + age_ms);
    assert_eq!(got, expected, "{immunity:?}, {times} times, {age_ms} ms old");
}

#[test]
fn a_message_is_asked_about_after_its_immunity_up_to_fifteen_times() {
    let ask = Some(Verdict::Ask);
    for (immunity, age_ms, expected) in [
        (Immunity::Default, 0, None),
        (Immunity::Default, 6_000, None),
        (Immunity::Default, 6_001, ask),
        (Immunity::Default, -1, ask),
        (Immunity::Unreadable, -1, None),
        (Immunity::Unreadable, 6_000, None),
        (Immunity::Unreadable, 6_001, ask),
        (Immunity::Seconds(0), 0, None),
        (Immunity::Seconds(0), 1, ask),
        (Immunity::Seconds(60), 60_000, None),
        (Immunity::Seconds(60), 60_001, ask),
        (Immunity::Seconds(-5), -5_000, None),
        (Immunity::Seconds(-5), -4_999, ask),
        (Immunity::Seconds(i32::MAX), 72 * 3_600_000, None),
    ] {
        check(immunity, 0, age_ms, expected);
        check(immunity, 14, age_ms, expected);
        check(immunity, 15, age_ms, Some(Verdict::AskedTooOften));
        check(immunity, 0, 72 * 3_600_000 + 1, Some(Verdict::TooOld));
    }
}
