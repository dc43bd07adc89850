use super::*;
use crate::translate::origin::{ORIGIN_BYTES_MAX, ORIGIN_HEADER};
use crate::translate::properties::{
    HEADERS_TRUNCATED, HEX_NAME_PREFIX, KEY_ENCODING, NULL_HEADERS, TOMBSTONE,
};

fn text() -> String {
    let cells =
        |row: &Row| [row.rocketmq, row.kafka, row.to_kafka, row.to_rocketmq, row.loss].join("\n");
    ROWS.iter().map(cells).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_row_says_something_and_none_twice() {
    for (place, row) in ROWS.iter().enumerate() {
        assert!(!row.rocketmq.is_empty() || !row.kafka.is_empty(), "{row:?}");
        let says = [row.to_kafka, row.to_rocketmq, row.loss];
        assert!(says.iter().any(|cell| !cell.is_empty()), "{row:?}");
        let again = ROWS.iter().skip(place + 1);
        let is_again = |other: &&Row| (other.rocketmq, other.kafka) == (row.rocketmq, row.kafka);
        assert!(!again.clone().any(|other| is_again(&other)), "{row:?}");
    }
    assert!(ROWS.is_sorted_by_key(|row| row.part as u8), "rows stand by part");
}

/// Each mark that the view makes is explained, under the name that the code uses.
#[test]
fn every_mark_is_explained() {
    let text = text();
    for name in
        [TOMBSTONE, KEY_ENCODING, NULL_HEADERS, HEADERS_TRUNCATED, HEX_NAME_PREFIX, ORIGIN_HEADER]
    {
        assert!(text.contains(name), "{name}");
    }
    assert!(text.contains("32,767"));
    assert!(text.contains(&format!("28 bytes to {ORIGIN_BYTES_MAX}")));
}

/// Fields of a pulled message, each with its row.
#[test]
fn every_field_of_a_message_is_explained() {
    for field in [
        "body",
        "queueId",
        "flag",
        "queueOffset",
        "physical offset",
        "sysFlag",
        "bornTimestamp",
        "bornHost",
        "storeTimestamp",
        "storeHost",
        "reconsumeTimes",
        "topic name",
        "user properties",
    ] {
        assert!(ROWS.iter().any(|row| row.rocketmq.contains(field)), "{field}");
    }
}
