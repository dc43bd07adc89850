use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::*;
use crate::golden::{rows, unhex_text};
use crate::translate::keys::KeyIndex;
use crate::translate::send::{KeySource, TimestampBounds, Tombstones};

fn remark(result: Result<(), Refusal>) -> String {
    result.map_or_else(|refusal| refusal.to_string(), |()| "ok".into())
}

#[test]
fn topic_names() {
    let long = "x".repeat(128);
    let retry = |length: usize| format!("%RETRY%{}", "g".repeat(length - 7));
    let illegal = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$";
    for (name, expected) in [
        ("orders_1-a|b%c", "ok".into()),
        (&long[1..], "ok".into()),
        (&*retry(255), "ok".into()),
        ("", "29 INVALID_PARAMETER: The specified topic is blank.".into()),
        (" \t", "29 INVALID_PARAMETER: The specified topic is blank.".into()),
        ("a b", format!("29 INVALID_PARAMETER: The specified topic: a b, {illegal}")),
        ("a.b", format!("29 INVALID_PARAMETER: The specified topic: a.b, {illegal}")),
        ("ä", format!("29 INVALID_PARAMETER: The specified topic: ä, {illegal}")),
        (
            &*long,
            format!(
                "29 INVALID_PARAMETER: The specified topic: {long}, is longer than topic max \
                 length: 127"
            ),
        ),
        (
            &*retry(256),
            format!(
                "29 INVALID_PARAMETER: The specified topic is DLQ or Retry topic: {}, and it's \
                 longer than topic max length: 255",
                retry(256)
            ),
        ),
    ] {
        assert_eq!(remark(validate_topic(name)), expected, "{name}");
    }
}

#[test]
fn group_names() {
    let long = "g".repeat(121);
    assert_eq!(remark(validate_group(&long[1..])), "ok");
    for (name, expected) in [
        ("", "29 INVALID_PARAMETER: The specified group is blank.".into()),
        (
            "a b",
            "29 INVALID_PARAMETER: The specified group: a b, contains illegal characters, \
             allowing only ^[%|a-zA-Z0-9_-]+$"
                .into(),
        ),
        (
            &*long,
            format!(
                "29 INVALID_PARAMETER: The specified group: {long}, is longer than group max \
                 length: 120"
            ),
        ),
    ] {
        assert_eq!(remark(validate_group(name)), expected, "{name}");
    }
}

#[test]
fn system_topics() {
    assert!(is_system_topic("TBW102") && !is_send_forbidden("TBW102"));
    assert!(is_system_topic("rmq_sys_x") && !is_send_forbidden("rmq_sys_x"));
    assert!(is_system_topic("SCHEDULE_TOPIC_XXXX") && is_send_forbidden("SCHEDULE_TOPIC_XXXX"));
    assert!(!is_system_topic("orders") && !is_send_forbidden("orders"));
}

#[test]
fn a_topic_reads_as_in_the_original() {
    let topic = Topic {
        name: Arc::from("t"),
        id: TopicId::ZERO,
        partitions: 4,
        read_queues: 4,
        write_queues: 3,
        perm: 7,
        sys_flag: 0,
        order: true,
        internal: false,
        key_source: KeySource::default(),
        key_index: KeyIndex::default(),
        tombstones: Tombstones::default(),
        timestamps: TimestampBounds::default(),
        attributes: BTreeMap::from([("message.type".into(), "FIFO".into())]),
    };
    assert_eq!(
        topic_text("t", &topic),
        "TopicConfig [topicName=t, readQueueNums=4, writeQueueNums=3, perm=RWX, \
         topicFilterType=SINGLE_TAG, topicSysFlag=0, order=true, attributes={message.type=FIFO}]"
    );
    assert_eq!(permission_text(2), "-W-");
}

/// Case B85. As the original's TopicValidator says of the same names, word for word.
#[test]
fn names_are_judged_as_the_original_does() {
    for row in rows("5.5.0/topics.tsv") {
        let [name, _, topic_remark, _, group_remark, is_system, is_forbidden] = &row[..] else {
            panic!("{row:?}")
        };
        let name = unhex_text(name);
        let expected = |remark: &str| match remark {
            "" => "ok".to_owned(),
            remark => format!("29 INVALID_PARAMETER: {remark}"),
        };
        assert_eq!(remark(validate_topic(&name)), expected(topic_remark), "{name}");
        assert_eq!(remark(validate_group(&name)), expected(group_remark), "{name}");
        assert_eq!(is_system_topic(&name).to_string(), *is_system, "{name}");
        assert_eq!(is_send_forbidden(&name).to_string(), *is_forbidden, "{name}");
    }
}
