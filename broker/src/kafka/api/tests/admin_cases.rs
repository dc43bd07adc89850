//! Every answer to the requests of tests/golden/kafka-admin is Kafka's own, or a difference that
//! is named here, or for the keys of one node in `node_cases`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::path::Path;

use super::*;
use crate::kafka::codec::Uuid;
use crate::kafka::codec::messages as wire;

/// Where Duolog answers something else: a piece of the request, the row, our code, and why.
pub(super) type Difference = (&'static str, &'static str, i16, &'static str);

const DIFFERENCES: &[Difference] = &[
    (r#"{"name":"e3","#, "e3", 0, "a list is shown as it was read"),
    (r#"{"name":"e9","#, "e9", 40, "there is no tiered storage"),
    (r#"[{"name":""}],"responsePartitionLimit""#, "", 17, "Kafka fails on an empty name"),
    (r#""configOperation":7"#, "2/one", 42, "Kafka fails on an unknown operation"),
    (r#""no.such","configOperation":0,"value":"3""#, "4/1", 40, "no key is without effect"),
    (r#""ssl.keystore.password""#, "4/1/ssl.keystore.password", 0, "read only while it runs"),
    (r#"{"name":"b_c","#, "b_c", 17, "b.c comes first in the same request"),
];

/// Keys of the node whose values are this node's own.
const OWN_VALUES: &[&str] = &["listeners", "broker.id", "node.id"];

/// One row of an answer: what it is about, its error code, and all of it as text.
pub(super) type Rows = BTreeMap<String, (i16, String)>;

/// The topic ids that one side has given out.
#[derive(Default)]
struct Ids(HashMap<Uuid, String>);

impl Ids {
    fn learn(&mut self, name: Option<&str>, id: Uuid) {
        if let (Some(name), false) = (name, id == Uuid::ZERO) {
            self.0.insert(id, name.to_owned());
        }
    }

    fn show(&self, id: Uuid) -> String {
        self.0.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    fn id_of(&self, name: &str) -> Option<Uuid> {
        self.0.iter().find(|(_, known)| *known == name).map(|(id, _)| *id)
    }
}

fn bytes_of_hex(text: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("a hex byte");
    (0..text.len()).step_by(2).map(byte).collect::<Vec<_>>().into()
}

pub(super) fn put(rows: &mut Rows, key: impl Into<String>, code: i16, what: &impl Debug) {
    let mut key = key.into();
    while rows.contains_key(&key) {
        key.push('+');
    }
    rows.insert(key, (code, format!("{what:?}")));
}

pub(super) fn decoded<M: Message>(frame: &Bytes, version: i16) -> M {
    decode_response(frame, version).expect("a response").1
}

/// Takes an answer apart, without what no two clusters have in common.
fn rows_of(api_key: ApiKey, version: i16, frame: &Bytes, ids: &mut Ids) -> Rows {
    let mut rows = Rows::new();
    match api_key {
        ApiKey::CreateTopics => created(&mut rows, decoded(frame, version), ids),
        ApiKey::DeleteTopics => {
            for mut topic in decoded::<wire::DeleteTopicsResponse>(frame, version).responses {
                let id = ids.show(topic.topic_id);
                topic.topic_id = Uuid::ZERO;
                let key = topic.name.as_deref().unwrap_or("null").to_owned();
                put(&mut rows, key, topic.error_code, &(&topic, id));
            }
        }
        ApiKey::CreatePartitions => {
            for topic in decoded::<wire::CreatePartitionsResponse>(frame, version).results {
                put(&mut rows, &*topic.name, topic.error_code, &topic);
            }
        }
        ApiKey::DescribeTopicPartitions => {
            let response: wire::DescribeTopicPartitionsResponse = decoded(frame, version);
            for mut topic in response.topics {
                ids.learn(topic.name.as_deref(), topic.topic_id);
                topic.topic_id = Uuid::ZERO;
                let key = topic.name.as_deref().unwrap_or("null").to_owned();
                put(&mut rows, key, topic.error_code, &topic);
            }
            put(&mut rows, "next cursor", 0, &response.next_cursor);
        }
        ApiKey::DescribeCluster => {
            let mut response: wire::DescribeClusterResponse = decoded(frame, version);
            assert_eq!(response.error_code == 0, !response.cluster_id.is_empty());
            response.cluster_id = "".into();
            response.brokers.iter_mut().for_each(|broker| broker.port = 0);
            put(&mut rows, "cluster", response.error_code, &response);
        }
        ApiKey::DescribeConfigs => described(&mut rows, decoded(frame, version)),
        ApiKey::IncrementalAlterConfigs => {
            let response: wire::IncrementalAlterConfigsResponse = decoded(frame, version);
            for resource in response.responses {
                let key = format!("{}/{}", resource.resource_type, resource.resource_name);
                put(&mut rows, key, resource.error_code, &resource);
            }
        }
        other => super::node_cases::rows_of(&mut rows, other, version, frame),
    }
    rows
}

fn created(rows: &mut Rows, response: wire::CreateTopicsResponse, ids: &mut Ids) {
    for mut topic in response.topics {
        ids.learn(Some(&topic.name), topic.topic_id);
        topic.topic_id = Uuid::ZERO;
        for config in topic.configs.iter_mut().flatten() {
            // Kafka shows a value as it was sent here, and trimmed in DescribeConfigs.
            config.value = config.value.take().map(|value| value.trim().into());
            config.config_source = source_of(&config.name, config.config_source);
        }
        if let Some(configs) = &mut topic.configs {
            configs.retain(|config| !is_ours(&config.name));
        }
        put(rows, &*topic.name, topic.error_code, &topic);
    }
}

fn described(rows: &mut Rows, response: wire::DescribeConfigsResponse) {
    for resource in response.results {
        let key = format!("{}/{}", resource.resource_type, resource.resource_name);
        put(rows, &*key, resource.error_code, &resource.error_message);
        let mut seen = BTreeSet::new();
        for mut config in resource.configs {
            assert!(seen.insert(config.name.clone()), "{key}: {} twice", config.name);
            if is_ours(&config.name) || OWN_VALUES.contains(&&*config.name) {
                continue;
            }
            if &*config.name == "min.insync.replicas" {
                if resource.resource_type == 4 {
                    continue;
                }
                config.synonyms.retain(|synonym| synonym.source != 3);
            }
            config.config_source = source_of(&config.name, config.config_source);
            put(rows, format!("{key}/{}", config.name), 0, &config);
        }
    }
}

/// A peer with eligible leader replicas sets this one key for the whole cluster (KIP-966).
fn source_of(name: &str, source: i8) -> i8 {
    if name == "min.insync.replicas" && source == 3 { 5 } else { source }
}

/// Keys that Kafka does not have.
fn is_ours(name: &str) -> bool {
    name.starts_with("rmq.") || name == "message.type"
}

/// The request, with the ids of our topics where the peer's are.
fn translated(frame: Bytes, theirs: &Ids, ours: &Ids) -> Bytes {
    let (header, body) = RequestHeader::decode(&frame).expect("a header");
    if header.api_key != ApiKey::DeleteTopics as i16 {
        return frame;
    }
    let version = header.api_version;
    let mut request = wire::DeleteTopicsRequest::from_body(&body, version).expect("a request");
    for topic in &mut request.topics {
        let known = theirs.0.get(&topic.topic_id).and_then(|name| ours.id_of(name));
        topic.topic_id = known.unwrap_or(topic.topic_id);
    }
    let frame = encode_request(7, header.client_id.as_ref(), version, &request);
    frame.expect("a frame").to_bytes().slice(4..)
}

fn compare(
    differences: &[Difference],
    line: &str,
    (theirs, ours): (&Rows, &Rows),
    used: &mut BTreeSet<usize>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let keys: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
    for key in keys {
        let (wanted, found) = (theirs.get(key), ours.get(key));
        if wanted == found {
            continue;
        }
        let resource = |at: usize| key.starts_with(&format!("{}/", differences[at].1));
        let named = (0..differences.len()).find(|at| {
            let (piece, row, code, _) = differences[*at];
            let same = row == key && found.is_some_and(|(found, _)| *found == code);
            // The entries of a resource that is refused.
            let missing = found.is_none() && ours.get(row).is_some_and(|(found, _)| *found == code);
            line.contains(piece) && (same || (missing && resource(*at)))
        });
        match named {
            Some(at) => {
                used.insert(at);
            }
            None => {
                faults.push(format!("{line}\n  {key}\n  theirs {wanted:?}\n  ours   {found:?}"))
            }
        }
    }
    faults
}

/// Sends the requests of a file of tests/golden/kafka-admin to a fresh node and compares the answers.
pub(super) async fn check(file: &str, differences: &[Difference], cases_min: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/kafka-admin");
    let text = std::fs::read_to_string(folder.join(file)).expect("the cases");
    let served = Served::start(&[]).await;
    let (mut our_ids, mut their_ids) = (Ids::default(), Ids::default());
    let (mut faults, mut used, mut cases) = (Vec::new(), BTreeSet::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let is_case = !line.is_empty() && !line.starts_with(['#', '>', '<']);
        if !is_case || line.starts_with("ApiVersions") {
            continue;
        }
        let sent = lines.next().and_then(|line| line.strip_prefix("> ")).expect("a request");
        let answered = lines.next().and_then(|line| line.strip_prefix("< ")).expect("an answer");
        let request = translated(bytes_of_hex(sent), &their_ids, &our_ids);
        let (header, _) = RequestHeader::decode(&request).expect("a header");
        let api_key = ApiKey::from_code(header.api_key).expect("an api");
        let answer = served.serve(&request).await;
        let version = header.api_version;
        let theirs = rows_of(api_key, version, &bytes_of_hex(answered), &mut their_ids);
        let ours = rows_of(api_key, version, &answer, &mut our_ids);
        faults.extend(compare(differences, line, (&theirs, &ours), &mut used));
        cases += 1;
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(cases > cases_min, "{cases} cases");
    let unused: Vec<_> =
        (0..differences.len()).filter(|at| !used.contains(at)).map(|at| differences[at]).collect();
    assert!(unused.is_empty(), "no difference any more: {unused:?}");
}

#[tokio::test]
async fn administration_answers_as_kafka_does() {
    check("cases.txt", DIFFERENCES, 100).await;
}
