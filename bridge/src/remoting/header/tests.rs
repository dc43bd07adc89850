use bytes::BytesMut;

use super::*;
use crate::golden::{rows, unhex};
use crate::remoting::{Decoder, SegmentedOut, SerializeType};

const VERSIONS: [&str; 3] = ["4.4.0", "4.9.8", "5.5.0"];

fn frame(version: &str, name: &str) -> Vec<u8> {
    let rows = rows(&format!("{version}/frames.tsv"));
    unhex(&rows.iter().find(|row| row[0] == name).unwrap()[1])
}

fn decoded(bytes: &[u8]) -> RemotingCommand {
    let mut buffer = BytesMut::from(bytes);
    let command = Decoder::default().decode(&mut buffer).unwrap().unwrap();
    assert!(buffer.is_empty());
    command
}

/// Every frame that the clients' own classes encode is read, and written again byte for byte: the
/// order of names, the escapes, the absent fields.
#[test]
fn frames_of_java_clients_come_back_byte_for_byte() {
    for version in VERSIONS {
        for row in rows(&format!("{version}/frames.tsv")) {
            let [name, bytes] = &row[..] else { panic!("{row:?}") };
            if name == "empty-value-ROCKETMQ" {
                continue;
            }
            let bytes = unhex(bytes);
            let mut out = SegmentedOut::default();
            decoded(&bytes).encode(&mut out).unwrap();
            assert_eq!(&out.into_bytes()[..], bytes, "{version} {name}");
        }
    }
}

/// An empty value is one in JSON and reads as null in the binary form.
#[test]
fn an_empty_value_is_null_in_the_binary_form() {
    let json = decoded(&frame("5.5.0", "empty-value-JSON"));
    assert_eq!(json.ext_fields.get("empty"), Some(""));
    let binary = decoded(&frame("5.5.0", "empty-value-ROCKETMQ"));
    assert_eq!(binary.ext_fields.get("empty"), None);
}

#[test]
fn sends_of_java_clients_are_read() {
    let text = "KEYS\u{1}k1 k2\u{2}UNIQ_KEY\u{1}7F0000010000123456780000ABCD0001\u{2}\
                WAIT\u{1}true\u{2}TAGS\u{1}TagA\u{2}name\u{1}größe \"q\" \\ /";
    for version in VERSIONS {
        for serialize in [SerializeType::Json, SerializeType::Binary] {
            let name = if serialize == SerializeType::Json { "JSON" } else { "ROCKETMQ" };
            let command = decoded(&frame(version, &format!("send-v2-{name}")));
            assert_eq!((command.code, command.opaque, command.flag), (310, 41, 0));
            assert_eq!((command.serialize, &command.body[..]), (serialize, &b"hello body"[..]));
            let header = SendHeader::decode(&command, SendForm::Letters).unwrap();
            // 4.9 leaves the last separator out (case B83), 5.x sends the broker's name.
            let expected = SendHeader {
                producer_group: "group-p",
                is_dead_letter: false,
                topic: "orders",
                default_topic: "TBW102",
                default_topic_queue_nums: 4,
                queue_id: 3,
                sys_flag: 0,
                born_timestamp_ms: 1_700_000_000_123,
                flag: 7,
                properties: header.properties,
                reconsume_times: 0,
                unit_mode: false,
                max_reconsume_times: None,
                batch: false,
                broker_name: (version == "5.5.0").then_some("broker-a"),
            };
            assert_eq!(header, expected, "{version}");
            let ends = if version == "4.9.8" { "" } else { "\u{2}" };
            assert_eq!(header.properties, format!("{text}{ends}"), "{version}");
        }
    }
    let words = decoded(&frame("5.5.0", "send-v1-JSON"));
    let letters = decoded(&frame("5.5.0", "send-v2-JSON"));
    assert_eq!(
        SendHeader::decode(&words, SendForm::Words),
        SendHeader::decode(&letters, SendForm::Letters)
    );
}

#[test]
fn pulls_of_java_clients_are_read() {
    for version in VERSIONS {
        for name in ["pull-JSON", "pull-ROCKETMQ"] {
            let command = decoded(&frame(version, name));
            assert_eq!((command.code, command.opaque), (11, i32::MAX));
            let is_new = version == "5.5.0";
            let expected = PullHeader {
                consumer_group: "group-c",
                topic: "orders",
                queue_id: 2,
                queue_offset: 99,
                max_msg_nums: 32,
                sys_flag: 6,
                commit_offset: 98,
                suspend_timeout_ms: 15_000,
                subscription: Some("TagA || TagB"),
                sub_version: 1_700_000_000_000,
                expression_type: Some("TAG"),
                max_msg_bytes: is_new.then_some(i32::MAX),
                broker_name: is_new.then_some("broker-a"),
            };
            assert_eq!(PullHeader::decode(&command), Ok(expected), "{version} {name}");
        }
    }
}

#[test]
fn other_frames_of_java_clients_are_read() {
    for name in ["one-way-JSON", "one-way-ROCKETMQ"] {
        let command = decoded(&frame("5.5.0", name));
        assert_eq!((command.code, command.opaque), (35, -5));
        assert!(command.is_one_way() && !command.is_response());
        assert!(command.ext_fields.is_empty() && command.body.is_empty());
    }
    for name in ["answer-JSON", "answer-ROCKETMQ"] {
        let command = decoded(&frame("5.5.0", name));
        let remark = "No topic route info 中 😀\nsecond\u{1}";
        assert_eq!((command.code, command.remark.as_deref()), (17, Some(remark)));
        assert!(command.is_response() && !command.is_one_way());
    }
}

/// Case B07: a missing field, a word for a number and a number too large are named, in both forms
/// of a send and in a pull.
#[test]
fn bad_fields_are_named() {
    let without = |name: &str| {
        let command = decoded(&frame("5.5.0", "pull-JSON"));
        let kept = command.ext_fields.iter().filter(|(known, _)| *known != name).collect();
        RemotingCommand { ext_fields: kept, ..command.clone() }
    };
    for name in ["consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "subVersion"] {
        let error = PullHeader::decode(&without(name)).unwrap_err();
        assert_eq!(error.to_string(), format!("the custom field <{name}> is null"));
    }
    for value in ["abc", "2147483648", "", "1.5", " 1"] {
        let mut command = decoded(&frame("5.5.0", "pull-JSON"));
        command.ext_fields.push("queueId", value);
        let error = PullHeader::decode(&command).unwrap_err();
        assert!(error.to_string().contains("<queueId>"), "{error}");
        let mut command = decoded(&frame("5.5.0", "send-v2-JSON"));
        command.ext_fields.push("e", value);
        let error = SendHeader::decode(&command, SendForm::Letters).unwrap_err();
        assert!(error.to_string().contains("<e>"), "{error}");
    }
}

/// As fastjson2 2.0.59 in rocketmq-remoting 5.5.0 answers; no client of RocketMQ's own sends such.
#[test]
fn a_field_that_is_a_list_or_an_object_is_its_text() {
    let read = |value: &str| {
        let header = format!("{{\"code\":310,\"extFields\":{{\"x\":{value},\"y\":\"z\"}}}}");
        let decoded = super::super::json_header::decode(header.as_bytes()).ok()?;
        assert_eq!(decoded.ext_fields.get("y"), Some("z"), "{value}: the next field");
        decoded.ext_fields.get("x").map(str::to_owned)
    };
    for (value, text) in [
        ("[]", "[]"),
        ("{}", "{}"),
        ("[ 1 , \"a\" , null , true ]", "[1,\"a\",null,true]"),
        (r#"{"a":1,"b":null,"c":[1]}"#, r#"{"a":1,"c":[1]}"#),
        (r#"{"b":1,"a":2,"b":3}"#, r#"{"b":3,"a":2}"#),
        (r#"{"b":1,"a":2}"#, r#"{"b":1,"a":2}"#),
        (r#"{"a":{},"b":[[[]]]}"#, r#"{"a":{},"b":[[[]]]}"#),
        ("{a:1}", r#"{"a":1}"#),
        ("{1:2}", "{1:2}"),
        ("{null:1}", r#"{"null":1}"#),
        ("{true:1}", r#"{"true":1}"#),
        ("{'a':'b'}", r#"{"a":"b"}"#),
        ("[1.0,1.50,1e3,0.1]", "[1.0,1.50,1000.0,0.1]"),
        ("[1E-7,3.0e10,1.0E+2]", "[1.0E-7,3.0E10,100.0]"),
        ("[100000000000000000000,-1]", "[100000000000000000000,-1]"),
        ("[12345678901234567890.5]", "[12345678901234567890.5]"),
        (r#"["<>&' /é"]"#, "<>&' /é"),
        (r#"["a","b\n"]"#, r#"["a","b\n"]"#),
        (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"😀"}"#),
        ("[false]", "[false]"),
    ] {
        assert_eq!(read(value).as_deref(), Some(text), "{value}");
    }
    for value in ["[abc]", "[undefined]", "[,]", "[.5]", "[1f]", "[", "{\"a\"}", "{\"a\":1"] {
        assert_eq!(read(value), None, "{value}");
    }
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    assert_eq!(read(&deep), None, "nesting is bounded");
}
