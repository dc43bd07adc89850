use super::*;
use crate::fake::config;
use crate::remoting::SendHeader;
use crate::remoting::message::Message;
use crate::translate::send::{self, Delaying, KeySource, SendContext, TimestampBounds, Tombstones};

fn half(properties: &str) -> NewRecord {
    let header = SendHeader {
        producer_group: "p1",
        topic: "t1",
        default_topic: "TBW102",
        default_topic_queue_nums: 4,
        queue_id: 0,
        sys_flag: 4,
        born_timestamp_ms: 1_700_000_000_000,
        flag: 3,
        properties,
        reconsume_times: 0,
        unit_mode: false,
        batch: false,
        max_reconsume_times: None,
        broker_name: None,
        is_dead_letter: false,
    };
    let context = SendContext {
        key_source: KeySource::Keys,
        tombstones: Tombstones::Refused,
        timestamps: TimestampBounds::default(),
        body_bytes_max: 1000,
        born_host: "10.0.0.1:5".parse().expect("an address"),
        store_timestamp_ms: 1_700_000_000_001,
        delaying: Delaying::Refused,
    };
    send::half(&header, b"body", &context).expect("a record")
}

const PROPERTIES: &str =
    "KEYS\u{1}k\u{2}UNIQ_KEY\u{1}0A\u{2}TRAN_MSG\u{1}true\u{2}PGROUP\u{1}pg\u{2}";

fn place(times: i32) -> HalfPlace<'static> {
    HalfPlace { topic: "t1", queue_id: 3, partition_number: 5, offset: 9, times }
}

#[test]
fn the_question_names_the_half_message_and_holds_it() {
    let question = question(&half(PROPERTIES), &place(2), &config()).expect("a question");
    assert_eq!(question.code, 39);
    assert!(question.is_one_way());
    let physical = PseudoAddress::new(5, 9).expect("an address").physical();
    let field = |name| question.ext_fields.get(name).expect(name).to_owned();
    assert_eq!(field("topic"), "RMQ_SYS_TRANS_HALF_TOPIC");
    assert_eq!((field("tranStateTableOffset"), field("bname")), ("9".into(), "broker-a".into()));
    assert_eq!(field("commitLogOffset"), physical.to_string());
    assert_eq!((field("msgId"), field("transactionId")), ("0A".into(), "0A".into()));
    assert_eq!(field("offsetMsgId"), format!("7F00000100002A9F{physical:016X}"));
    let message = Message::decode(&mut &question.body[..]).expect("a message");
    assert_eq!((message.topic, message.queue_id, message.flag), ("t1", 3, 3));
    assert_eq!((message.queue_offset, message.physical_offset), (9, physical));
    assert_eq!((message.body, message.sys_flag), (&b"body"[..], 0));
    assert_eq!(message.born_timestamp_ms, 1_700_000_000_000);
    let properties = std::str::from_utf8(message.properties).expect("text");
    let expected = [
        ("KEYS", "k"),
        ("UNIQ_KEY", "0A"),
        ("TRAN_MSG", "true"),
        ("PGROUP", "pg"),
        ("__transactionId__", "0A"),
        ("TRANSACTION_CHECK_TIMES", "2"),
        ("REAL_TOPIC", "t1"),
        ("REAL_QID", "3"),
    ];
    assert_eq!(Properties(properties).iter().collect::<Vec<_>>(), expected);
}

/// A message that fills its properties is asked about all the same.
#[test]
fn a_question_never_outgrows_the_message_format() {
    // What is stored has the transaction's id besides.
    let grown = "__transactionId__.0A.".len();
    let start = format!("{PROPERTIES}x\u{1}");
    let record = half(&format!("{start}{}\u{2}", "x".repeat(32_767 - grown - start.len() - 1)));
    let question = question(&record, &place(1), &config()).expect("a question");
    let message = Message::decode(&mut &question.body[..]).expect("a message");
    let properties = std::str::from_utf8(message.properties).expect("text");
    assert_eq!(Properties(properties).get("PGROUP"), Some("pg"));
}

#[test]
fn a_copy_has_the_originals_properties_and_leads_back() {
    let half = half(PROPERTIES);
    let copy = given_up(&half, "t1", 3, 15).expect("a copy");
    let batch = decoded(&copy).expect("a batch");
    let record = batch.record(0).expect("a record");
    let mut scratch = Scratch::default();
    let properties = message::properties(&record, Door::Bridge, &mut scratch);
    for (name, value) in [
        ("TRAN_MSG", "true"),
        ("TRANSACTION_CHECK_TIMES", "15"),
        ("REAL_TOPIC", "t1"),
        ("REAL_QID", "3"),
        ("PGROUP", "pg"),
        ("KEYS", "k"),
    ] {
        assert_eq!(properties.get(name), Some(value), "{name}");
    }
    let resumed = resumed(&record).expect("a half message");
    assert_eq!((&*resumed.topic, resumed.queue_id, &*resumed.group), ("t1", 3, "pg"));
    assert_eq!(resumed.record.payload, half.payload);
    assert_eq!((resumed.born_ms, resumed.immunity), (1_700_000_000_000, None));
}

#[test]
fn bytes_that_are_no_record_are_neither_asked_about_nor_copied() {
    let record = NewRecord { timestamp_ms: 0, payload: Bytes::from_static(b"\x01\x01\x00") };
    assert_eq!(question(&record, &place(1), &config()), Err(ViewError::Unreadable));
    let record = NewRecord { timestamp_ms: 0, payload: Bytes::from_static(b"\xFF") };
    assert_eq!(question(&record, &place(1), &config()), Err(ViewError::Unreadable));
    assert!(given_up(&record, "t1", 0, 1).is_none());
}
