//! Pitfall 32. Every request of `tests/golden/remoting-answers`, in order, against a node in memory: the
//! answers are the real broker's, but for what [`DIFFERENCES`] names.

mod json;

use std::path::PathBuf;

use serde_json::Value;

use crate::fake::{Client, FakeBackend};
use crate::golden::unhex;
use crate::remoting::message::Message;
use crate::remoting::{RemotingCommand, SerializeType};
use crate::session::Door;
use crate::translate::properties::Properties;

/// Why an answer is not the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// The peer fails inside: code 1 and an exception's text. We name the field that is missing or
    /// malformed, with the same code.
    Exception,
    /// We answer this code and remark instead. The reason stands in the processor's head comment.
    Instead(i32, &'static str),
    /// The bodies differ, as the processor's head comment says.
    Body,
}

use Difference::{Body, Exception, Instead};

const CHOSEN_QUEUE: &str = "send, broker chooses";

const DIFFERENCES: &[(&str, Difference)] = &[
    ("topic list", Body),
    ("runtime info", Body),
    ("send, template topic", Body),
    // Required here, as the class says; the original's decoder lets them pass.
    ("delete kv, no key", Instead(1, "the custom field <key> is null")),
    ("send, empty body", Instead(13, "the message body is empty")),
    ("batch of none", Instead(13, "the message body is empty")),
    ("batch, one body too large", Instead(13, SIZE)),
    (
        "batch, compressed as a whole",
        Instead(13, "the body of a batch must not be compressed (sysFlag 1)"),
    ),
    ("batch, length over the rest", Instead(13, "message 0 of the batch:")),
    ("batch, length zero", Instead(13, "message 0 of the batch:")),
    ("batch, negative length", Instead(13, "message 0 of the batch:")),
    ("send, bad compressed body", Instead(13, "the message body is no zlib data:")),
    ("send, topic without write", Instead(16, "the topic[made] sending message is forbidden")),
    ("create topic, no order", Instead(0, "")),
    ("create topic, 0 queues", Instead(29, "readQueueNums[0] and writeQueueNums[0] must be")),
    ("create topic, negative queues", Instead(29, "readQueueNums[-1] and writeQueueNums[-1] must")),
    ("create topic, perm 9", Instead(29, "perm[9] must be 0 to 7")),
    ("commit, unknown queue", Instead(29, "queueId[77] is illegal, topic:[t1] has 4 queues")),
    ("commit, negative", Instead(29, "Offset -9 is negative, topic is t1")),
    ("consume stats", Body),
    ("consume stats, one topic", Body),
    ("pull by heartbeat, newer", Instead(0, "FOUND")),
    // The heartbeat of that step says the tag's text and no hash; the hash is made of the text.
    ("pull by heartbeat, tag", Instead(0, "FOUND")),
    // The peer's minute begins with its second sample, ours with the first message.
    ("topic stats", Body),
    ("topic stats, no data", Body),
    (
        "topic list, plain attribute",
        Instead(1, "add/alter attribute format is wrong: message.type"),
    ),
    // The peer's lists hold topics and groups of its own parts.
    ("topics of the cluster", Body),
    ("system topics", Body),
    ("all group configs", Body),
    ("all groups' stats", Body),
    ("all ordered groups' stats", Body),
    // A position beyond the end, and none at all.
    ("time span", Body),
    ("time span, no position", Body),
    ("time span, no field", Instead(1, "the custom field <group> is null")),
    ("set request mode, odd", Instead(29, "message request mode ODD is neither PULL nor POP")),
    ("delete group, with positions", Instead(1, "the consumer group[g1] is online")),
    ("position after its group is deleted", Body),
    ("heartbeat, empty json", Instead(1, "body: clientID")),
];

const SIZE: &str = "the message is illegal, maybe msg body or properties length not matched. msg \
                    body length limit 4194304B, msg properties length limit 32KB.";

struct Step {
    name: String,
    door: Door,
    request: RemotingCommand,
    answer: Value,
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn body(value: &Value) -> Vec<u8> {
    if let Some([first, length]) = value.get("fill").and_then(Value::as_array).map(Vec::as_slice) {
        let first = first.as_str().expect("a character").as_bytes()[0];
        return vec![first; usize::try_from(length.as_u64().expect("a length")).expect("small")];
    }
    match text(value, "hex") {
        Some(hex) => unhex(hex),
        None => text(value, "body").unwrap_or_default().as_bytes().to_vec(),
    }
}

fn steps() -> Vec<Step> {
    let file = "tests/golden/remoting-answers/answers.jsonl";
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", file].iter().collect();
    let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let step = |line: &str| {
        let step: Value = serde_json::from_str(line).expect("a JSON line");
        let asked = &step["request"];
        let code = i32::try_from(asked["code"].as_i64().expect("a code")).expect("small");
        let mut request = RemotingCommand::request(code, 1, SerializeType::Json);
        request.version =
            i32::try_from(asked["version"].as_i64().expect("a version")).expect("small");
        for (name, value) in asked["ext"].as_object().into_iter().flatten() {
            request.ext_fields.push(name, value.as_str().expect("a text"));
        }
        request.body = body(asked).into();
        Step {
            name: text(&step, "name").expect("a name").to_owned(),
            door: if text(&step, "door") == Some("namesrv") {
                Door::NameServer
            } else {
                Door::Broker
            },
            request,
            answer: step["answer"].clone(),
        }
    };
    lines.lines().map(step).collect()
}

/// What depends on the moment or the run: ids, addresses of clients, store times.
fn mask(text: &str) -> String {
    let mut masked = text.to_owned();
    for (mark, end) in [("127.0.0.1:", &[' ', ']', '"'][..])] {
        let mut from = 0;
        while let Some(at) = masked[from..].find(mark).map(|at| from + at + mark.len()) {
            let rest = &masked[at..];
            let length = rest.find(end).unwrap_or(rest.len());
            if &rest[..length] != "20911" {
                masked.replace_range(at..at + length, "PORT");
            }
            from = at;
        }
    }
    masked
}

fn check_fields(step: &Step, ours: &RemotingCommand) {
    let empty = serde_json::Map::new();
    let theirs = step.answer["ext"].as_object().unwrap_or(&empty);
    let name = &step.name;
    for (field, value) in ours.ext_fields.iter() {
        let expected = theirs.get(field).and_then(Value::as_str);
        let value = match field {
            // 16 digits of the host, then a place that is the peer's own.
            "msgId" => {
                let expected = expected.expect("an id");
                let shape =
                    |ids: &str| ids.split(',').map(|id| id[..16].to_owned()).collect::<Vec<_>>();
                assert_eq!(shape(value), shape(expected), "{name}");
                continue;
            }
            "transactionId" if expected.is_some_and(|key| key.len() == 56) => {
                assert_eq!(value.len(), 32, "{name}");
                continue;
            }
            "queueId" | "queueOffset" if name == CHOSEN_QUEUE => continue,
            "timestamp" => {
                assert_eq!(value == "-1", expected == Some("-1"), "{name}: {value}");
                continue;
            }
            _ => value,
        };
        assert_eq!(Some(value), expected, "{name}: {field}");
    }
    assert_eq!(ours.ext_fields.len(), theirs.len(), "{name}: {:?}", ours.ext_fields);
}

/// Messages without what depends on the run, and without what the original adds to them.
fn messages(body: &[u8]) -> Vec<String> {
    const ADDED: [&str; 3] = ["MSG_REGION", "TRACE_ON", "CLUSTER"];
    let mut rest = body;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let message = Message::decode(&mut rest).expect("a message");
        let properties = std::str::from_utf8(message.properties).expect("text");
        let mut properties: Vec<_> = Properties(properties)
            .iter()
            .filter(|(name, _)| !ADDED.contains(name))
            .map(|(name, value)| {
                let is_made = name == "UNIQ_KEY" && [32, 56].contains(&value.len());
                (name, if is_made { "MADE" } else { value })
            })
            .collect();
        properties.sort_unstable();
        all.push(format!(
            "{} {} {} {} {} {} {} {:?} {:?}",
            message.topic,
            message.queue_id,
            message.queue_offset,
            message.flag,
            message.born_timestamp_ms,
            message.born_host.ip(),
            message.store_host,
            properties,
            String::from_utf8_lossy(&plain(&message)),
        ));
    }
    all
}

/// The peer stores bodies as they were sent.
fn plain(message: &Message<'_>) -> Vec<u8> {
    if message.sys_flag & 1 == 0 {
        return message.body.to_vec();
    }
    let mut plain = Vec::new();
    let mut reader = flate2::bufread::ZlibDecoder::new(message.body);
    std::io::Read::read_to_end(&mut reader, &mut plain).expect("zlib");
    plain
}

fn check_body(step: &Step, ours: &RemotingCommand) {
    let theirs = body(&step.answer);
    let is_pull = matches!(step.request.code, 11 | 361);
    if is_pull {
        assert_eq!(messages(&ours.body), messages(&theirs), "{}", step.name);
    } else {
        let canonical = |text: &[u8]| json::canonical(std::str::from_utf8(text).expect("text"));
        assert_eq!(mask(&canonical(&ours.body)), mask(&canonical(&theirs)), "{}", step.name);
    }
}

fn check(step: &Step, ours: &RemotingCommand) {
    let name = &step.name;
    let their_code = i32::try_from(step.answer["code"].as_i64().expect("a code")).expect("small");
    let their_remark = text(&step.answer, "remark").unwrap_or("");
    let our_remark = ours.remark.as_deref().unwrap_or("");
    let difference = DIFFERENCES.iter().find(|(named, _)| named == name).map(|(_, what)| *what);
    let is_exception = their_code == 1
        && ["java.", "com.alibaba", "org.apache", "Cannot invoke"]
            .iter()
            .any(|start| their_remark.starts_with(start));
    match difference.or(is_exception.then_some(Exception)) {
        Some(Exception) => {
            assert_eq!(ours.code, 1, "{name}: {our_remark}");
            assert!(!our_remark.is_empty(), "{name}");
        }
        Some(Instead(code, remark)) => {
            assert_eq!(ours.code, code, "{name}: {our_remark}");
            assert!(our_remark.starts_with(remark), "{name}: {our_remark}");
            let is_same = their_code == code && their_remark == our_remark;
            assert!(!is_same, "{name}: no difference any more");
        }
        Some(Body) => assert_eq!((ours.code, our_remark), (their_code, their_remark), "{name}"),
        None => {
            assert_eq!(ours.code, their_code, "{name}: {our_remark}");
            // Of what a success says nothing depends.
            if their_code != 0 || step.request.code == 11 {
                assert_eq!(mask(our_remark), mask(their_remark), "{name}");
            }
            check_fields(step, ours);
            check_body(step, ours);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_the_real_brokers() {
    let backend = FakeBackend::new();
    backend.configure(|config| {
        config.broker_address = "127.0.0.1:20911".parse().expect("an address");
        // As it is unless somebody sets it.
        config.property_filter = false;
    });
    let broker = Client::new(backend.clone());
    let name_server = broker.at(Door::NameServer);
    let steps = steps();
    assert!(steps.len() > 200);
    let mut faults = Vec::new();
    for step in &steps {
        let client = if step.door == Door::Broker { &broker } else { &name_server };
        let answer = client.send(step.request.clone()).await.expect("an answer");
        let is_same = std::panic::catch_unwind(|| check(step, &answer)).is_ok();
        if !is_same {
            faults.push(&*step.name);
        }
        backend.advance_ms(1);
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let unused = DIFFERENCES.iter().find(|(name, _)| steps.iter().all(|step| step.name != *name));
    assert_eq!(unused, None);
}
