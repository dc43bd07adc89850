//! RocketMQ's frames, headers, messages and bodies, as its own classes write them.

use bytes::BytesMut;
use duolog_bridge::bodies::{
    CheckClientRequestBody, HeartbeatData, LockBatchRequestBody, QueryAssignmentRequestBody,
    SetMessageRequestModeRequestBody, SubscriptionGroupConfig, TopicConfig,
};
use duolog_bridge::remoting::message::{BatchMessage, Message};
use duolog_bridge::remoting::{Decoder, PullHeader, SendForm, SendHeader};

use super::{Run, golden, hex_words, spoil};

const CASES: u64 = 30_000;
const MEMORY_EACH: usize = 256;
const MEMORY: usize = 64 << 10;

fn lines(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(golden("remoting/5.5.0").join(file)).expect("a file");
    text.lines().map(str::to_owned).collect()
}

/// Frames of both encodings, messages, and bodies in JSON.
fn corpus() -> Vec<Vec<u8>> {
    let binary = ["frames.tsv", "messages.tsv", "batches.tsv", "stored.tsv"];
    let mut all: Vec<Vec<u8>> =
        binary.iter().flat_map(|file| lines(file)).flat_map(|line| hex_words(&line)).collect();
    let bodies = ["client-bodies.tsv", "server-bodies.tsv"];
    all.extend(
        bodies
            .iter()
            .flat_map(|file| lines(file))
            .filter_map(|line| line.split_once('\t').map(|(_, body)| body.as_bytes().to_vec())),
    );
    all
}

fn read(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    while let Ok(Some(command)) = Decoder::default().decode(&mut buffer) {
        let _ = PullHeader::decode(&command);
        for form in [SendForm::Words, SendForm::Letters] {
            let _ = SendHeader::decode(&command, form);
        }
        bodies(&command.body);
    }
    bodies(bytes);
}

fn bodies(body: &[u8]) {
    let _ = HeartbeatData::decode(body);
    let _ = CheckClientRequestBody::decode(body);
    let _ = QueryAssignmentRequestBody::decode(body);
    let _ = SetMessageRequestModeRequestBody::decode(body);
    let _ = TopicConfig::decode_list(body);
    let _ = SubscriptionGroupConfig::decode(body);
    let _ = LockBatchRequestBody::decode(body);
    let mut rest = body;
    while !rest.is_empty() && Message::decode(&mut rest).is_ok() {}
    let mut rest = body;
    while !rest.is_empty() && BatchMessage::decode(&mut rest).is_ok() {}
}

#[test]
fn spoilt_rocketmq_frames_are_read_or_refused_within_their_memory() {
    let mut run = Run::of("RocketMQ frames", CASES);
    let corpus = corpus();
    assert!(corpus.len() > 20, "{} samples", corpus.len());
    while let Some(mut random) = run.next() {
        let mut bytes = corpus[random.within(0..corpus.len())].clone();
        let other = &corpus[random.within(0..corpus.len())];
        spoil::spoil(&mut random, &mut bytes, other);
        run.bounded(bytes.len(), MEMORY_EACH, MEMORY, || read(&bytes));
    }
}
