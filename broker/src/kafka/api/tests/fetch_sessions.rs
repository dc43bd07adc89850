//! Fetch sessions through the handlers: Kafka's own answers, and what its script cannot show.

use std::collections::HashMap;
use std::path::Path;

use super::*;
use crate::config::topic::Overrides;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::messages as wire;
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::{Records, Uuid};
use crate::testing::served::{batch, eventually, produce_request};

/// Ids that differ between two nodes: the peer's, and ours for the same thing.
#[derive(Default)]
struct Twins {
    topics: HashMap<Uuid, Uuid>,
    sessions: HashMap<i32, i32>,
}

fn bytes_of_hex(text: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("a hex byte");
    (0..text.len()).step_by(2).map(byte).collect::<Vec<_>>().into()
}

fn decoded<M: Message>(frame: &Bytes, version: i16) -> M {
    decode_response(frame, version).expect("a response").1
}

impl Twins {
    fn topic(&self, theirs: Uuid) -> Uuid {
        self.topics.get(&theirs).copied().unwrap_or(theirs)
    }

    fn session(&self, theirs: i32) -> i32 {
        self.sessions.get(&theirs).copied().unwrap_or(theirs)
    }

    /// The request, with our ids where the peer's are.
    fn translated(&self, frame: Bytes) -> Bytes {
        let (header, body) = RequestHeader::decode(&frame).expect("a header");
        if header.api_key != ApiKey::Fetch as i16 {
            return frame;
        }
        let version = header.api_version;
        let mut request = wire::FetchRequest::from_body(&body, version).expect("a request");
        request.session_id = self.session(request.session_id);
        request.topics.iter_mut().for_each(|topic| topic.topic_id = self.topic(topic.topic_id));
        let forgotten = request.forgotten_topics_data.iter_mut();
        forgotten.for_each(|topic| topic.topic_id = self.topic(topic.topic_id));
        let frame = encode_request(7, header.client_id.as_ref(), version, &request);
        frame.expect("a frame").to_bytes().slice(4..)
    }

    /// Both answers in words that must be equal.
    fn told(&mut self, api: ApiKey, version: i16, theirs: &Bytes, ours: &Bytes) -> [String; 2] {
        match api {
            ApiKey::Fetch => {
                let theirs: wire::FetchResponse = decoded(theirs, version);
                let mut ours: wire::FetchResponse = decoded(ours, version);
                if theirs.session_id != 0 && ours.session_id != 0 {
                    self.sessions.entry(theirs.session_id).or_insert(ours.session_id);
                }
                let mut expected = theirs;
                expected.session_id = self.session(expected.session_id);
                for topic in &mut expected.responses {
                    topic.topic_id = self.topic(topic.topic_id);
                    // Null and no records are the same to every client; we never write null.
                    for partition in &mut topic.partitions {
                        partition.records.get_or_insert(Records::EMPTY);
                    }
                }
                // Kafka adds where the leader is, which is no matter of sessions.
                for response in [&mut expected, &mut ours] {
                    response.node_endpoints.clear();
                    let partitions =
                        response.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
                    partitions.for_each(|partition| partition.current_leader = Default::default());
                }
                [format!("{expected:?}"), format!("{ours:?}")]
            }
            ApiKey::CreateTopics => {
                let theirs: wire::CreateTopicsResponse = decoded(theirs, version);
                let ours: wire::CreateTopicsResponse = decoded(ours, version);
                self.topics.insert(theirs.topics[0].topic_id, ours.topics[0].topic_id);
                [theirs, ours].map(|answer| answer.topics[0].error_code.to_string())
            }
            ApiKey::Produce => [theirs, ours].map(|frame| {
                let answer: wire::ProduceResponse = decoded(frame, version);
                let partition = &answer.responses[0].partition_responses[0];
                format!("{} {}", partition.error_code, partition.base_offset)
            }),
            ApiKey::DeleteTopics => [theirs, ours].map(|frame| {
                let answer: wire::DeleteTopicsResponse = decoded(frame, version);
                answer.responses[0].error_code.to_string()
            }),
            other => panic!("{other:?} has no cases"),
        }
    }
}

#[tokio::test]
async fn sessions_answer_as_kafkas_do() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/fetch-sessions/cases.txt");
    let text = std::fs::read_to_string(file).expect("the cases");
    let served = Served::start(&[]).await;
    let mut twins = Twins::default();
    let (mut faults, mut fetches) = (Vec::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let sent = lines.next().and_then(|line| line.strip_prefix("> ")).expect("a request");
        let answered = lines.next().and_then(|line| line.strip_prefix("< ")).expect("an answer");
        let request = twins.translated(bytes_of_hex(sent));
        let (header, _) = RequestHeader::decode(&request).expect("a header");
        let api = ApiKey::from_code(header.api_key).expect("an api");
        let ours = served.serve(&request).await;
        let told = twins.told(api, header.api_version, &bytes_of_hex(answered), &ours);
        if told[0] != told[1] {
            faults.push(format!("{line}\n  theirs {}\n  ours   {}", told[0], told[1]));
        }
        fetches += i32::from(api == ApiKey::Fetch);
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(fetches > 100, "{fetches} fetches");
    assert!(twins.sessions.len() > 15, "{} sessions", twins.sessions.len());
}

async fn create(served: &Served, partitions: i32) -> Uuid {
    let (name, overrides) = ("t".into(), Overrides::new());
    let topic = NewTopic { name, partitions, overrides, door: Door::Kafka };
    served.node.controller.create_topic(topic, IfExists::Refuse).await.expect("created").id
}

fn full_fetch(topic: &str, partitions: std::ops::Range<i32>) -> wire::FetchRequest {
    let partition = |partition| FetchPartition {
        partition,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic {
        topic: topic.into(),
        partitions: partitions.map(partition).collect(),
        ..FetchTopic::default()
    };
    let (max_bytes, session_epoch) = (1 << 20, 0);
    let topics = vec![topic];
    wire::FetchRequest { max_bytes, session_epoch, topics, ..wire::FetchRequest::default() }
}

fn next_fetch(session_id: i32, session_epoch: i32, max_wait_ms: i32) -> wire::FetchRequest {
    let (max_bytes, min_bytes) = (1 << 20, 1);
    wire::FetchRequest {
        session_id,
        session_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        ..wire::FetchRequest::default()
    }
}

#[tokio::test]
async fn a_session_that_waits_hears_of_the_next_append_and_of_nothing_else() {
    let served = Served::start(&[]).await;
    let created = create(&served, 3).await;
    let first: wire::FetchResponse = served.ask(12, &full_fetch("t", 0..3)).await;
    assert_eq!(first.responses[0].partitions.len(), 3);
    let partition = served.node.partitions.find(created, 2).expect("a partition");
    let waiting = next_fetch(first.session_id, 1, 60_000);
    let write = async {
        eventually("the fetch waits", || partition.is_awaited()).await;
        let records = batch(&["v"]).freeze();
        let mut request = produce_request("t", 1, records);
        request.topic_data[0].partition_data[0].index = 2;
        served.ask::<_, wire::ProduceResponse>(9, &request).await
    };
    let (news, _): (wire::FetchResponse, _) = tokio::join!(served.ask(12, &waiting), write);
    let told: Vec<_> =
        news.responses[0].partitions.iter().map(|partition| partition.partition_index).collect();
    assert_eq!((news.session_id, told), (first.session_id, vec![2]));
}

#[tokio::test]
async fn without_slots_every_fetch_is_a_full_one() {
    let served = Served::start(&["max.incremental.fetch.session.cache.slots=0"]).await;
    create(&served, 2).await;
    for _ in 0..2 {
        let answer: wire::FetchResponse = served.ask(12, &full_fetch("t", 0..2)).await;
        assert_eq!((answer.session_id, answer.responses[0].partitions.len()), (0, 2));
    }
}

#[tokio::test]
async fn fetching_what_was_never_written_makes_no_files() {
    let served = Served::start(&[]).await;
    create(&served, 50).await;
    let answer: wire::FetchResponse = served.ask(12, &full_fetch("t", 0..50)).await;
    let told: Vec<_> = answer.responses[0]
        .partitions
        .iter()
        .map(|partition| (partition.error_code, partition.high_watermark))
        .collect();
    assert_eq!(told, [(0, 0); 50]);
    let folders = std::fs::read_dir(served._data.path()).expect("the data").filter(|entry| {
        entry.as_ref().expect("an entry").file_name().to_string_lossy().starts_with("t-")
    });
    assert_eq!(folders.count(), 0);
}
