//! RocketMQ requests with fields missing, of another kind, or out of range.

use anyhow::ensure;
use duolog_tests::raw_client::{Connection, RemotingFrame};

use super::{Attacked, LIMIT};

const PULL_MESSAGE: i32 = 11;
const GET_MAX_OFFSET: i32 = 30;
const RUNTIME_INFO: i32 = 28;
const UNKNOWN_CODE: i32 = 7777;
const REQUEST_CODE_NOT_SUPPORTED: i64 = 3;

const PULL: [(&str, &str); 10] = [
    ("consumerGroup", "g"),
    ("topic", "t"),
    ("queueId", "0"),
    ("queueOffset", "0"),
    ("maxMsgNums", "32"),
    ("sysFlag", "4"),
    ("commitOffset", "0"),
    ("suspendTimeoutMillis", "0"),
    ("subscription", "*"),
    ("subVersion", "0"),
];

/// The pull with one field replaced, or left out.
fn pull_with(name: &str, value: Option<&'static str>) -> Vec<(&'static str, &'static str)> {
    PULL.into_iter()
        .filter_map(|(field, usual)| match (field == name, value) {
            (true, Some(other)) => Some((field, other)),
            (true, None) => None,
            (false, _) => Some((field, usual)),
        })
        .collect()
}

/// Case B07: the same opaque, the response bit, a code, a remark that names the field; and the connection goes on.
#[test]
fn bad_fields_are_named_and_the_connection_goes_on() {
    let mut attacked = Attacked::start().unwrap();
    let mut connection = Connection::open(&attacked.node.broker(), LIMIT).unwrap();
    let rows = [
        ("queueId", Some("abc")),
        ("queueId", Some("2147483648")),
        ("queueId", None),
        ("queueOffset", Some("9223372036854775808")),
        ("topic", None),
        ("maxMsgNums", Some("")),
        ("suspendTimeoutMillis", Some("1.5")),
    ];
    for (name, value) in rows {
        let answer = connection.remoting(PULL_MESSAGE, &pull_with(name, value), &[]).unwrap();
        assert_ne!(answer.code().unwrap(), 0, "{name} {value:?}");
        assert!(answer.remark().contains(name), "{name} {value:?}: {}", answer.remark());
    }
    for (name, value) in [("queueOffset", "-1"), ("maxMsgNums", "0"), ("maxMsgNums", "-5")] {
        let answer = connection.remoting(PULL_MESSAGE, &pull_with(name, Some(value)), &[]).unwrap();
        assert_ne!(answer.code().unwrap(), 0, "{name} {value} on a topic that is not there");
    }
    let answer = connection.remoting(GET_MAX_OFFSET, &[], &[]).unwrap();
    assert!(answer.remark().contains("topic"), "{}", answer.header);
    assert_eq!(connection.remoting(RUNTIME_INFO, &[], &[]).unwrap().code().unwrap(), 0);
    attacked.unharmed("bad fields").unwrap();
}

#[test]
fn an_unknown_code_is_answered_as_not_supported() {
    let attacked = Attacked::start().unwrap();
    for address in [attacked.node.broker(), attacked.node.namesrv()] {
        let mut connection = Connection::open(&address, LIMIT).unwrap();
        let answer = connection.remoting(UNKNOWN_CODE, &[], &[]).unwrap();
        assert_eq!(answer.code().unwrap(), REQUEST_CODE_NOT_SUPPORTED);
        assert!(answer.remark().contains("7777"), "{}", answer.remark());
    }
}

/// A header that claims more than the frame holds, one without extFields, one that is no JSON.
#[test]
fn broken_headers_close_or_answer_but_never_hang() {
    let mut attacked = Attacked::start().unwrap();
    let mut no_fields = RemotingFrame::request(PULL_MESSAGE, 9, &[], &[]);
    no_fields.header.as_object_mut().unwrap().remove("extFields");
    let mut connection = Connection::open(&attacked.node.broker(), LIMIT).unwrap();
    connection.send_frame(&no_fields.payload()).unwrap();
    let answer = RemotingFrame::parse(connection.receive_frame().unwrap()).unwrap();
    assert_eq!(answer.header["opaque"], 9);
    assert_eq!(answer.header["flag"].as_i64().unwrap() & 1, 1);
    assert_ne!(answer.code().unwrap(), 0);

    let broken: [&[u8]; 4] = [
        &[0, 0, 1, 0, b'{', b'}'],
        &[0, 0, 0, 2, b'{', b'x'],
        &[9, 0, 0, 2, b'{', b'}'],
        &[1, 0, 0, 3, 0, 11, 0],
    ];
    for payload in broken {
        let mut connection = Connection::open(&attacked.node.broker(), LIMIT).unwrap();
        connection.send_frame(payload).unwrap();
        closed_or_answered(&mut connection).unwrap();
    }
    attacked.unharmed("broken headers").unwrap();
}

fn closed_or_answered(connection: &mut Connection) -> anyhow::Result<()> {
    match connection.receive_frame() {
        Ok(payload) => ensure!(RemotingFrame::parse(payload)?.code()? != 0, "success"),
        Err(error) => {
            let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            let timed_out =
                [Some(std::io::ErrorKind::WouldBlock), Some(std::io::ErrorKind::TimedOut)];
            ensure!(!timed_out.contains(&io), "neither closed nor answered");
        }
    }
    Ok(())
}
