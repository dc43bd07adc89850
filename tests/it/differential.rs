//! What a real Kafka answered to a few hundred requests, and what this node answers to the same: tests/golden/kafka-differential.
//!
//! The long way, against a running Kafka and with thousands of requests from seeds, is
//! `make verify KAFKA_PEER=HOST:PORT`.

use std::path::Path;

use duolog_tests::cluster::Launch;
use duolog_tests::differential::compare::differences;
use duolog_tests::differential::known::KNOWN;
use duolog_tests::differential::script;
use duolog_tests::differential::side::{Side, Who};

const SHORT: &str = r#""TransactionTimeoutMs":100,"#;
const LONGER: &str = r#""TransactionTimeoutMs":3000,"#;

/// Replays a recording on a fresh node; differences that nobody has named fail.
fn replay(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/kafka-differential").join(file);
    let text = std::fs::read_to_string(path).expect("a recording");
    // A busy machine needs longer from one request to the next than transactions lasted that were to time out; but for
    // saying so the answers are the same.
    let text = text.replace(SHORT, LONGER);
    let steps = script::parse(&text).expect("a recording");
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let launch = launch
        .set("group.initial.rebalance.delay.ms", 0)
        .set("transaction.abort.timed.out.transaction.cleanup.interval.ms", 100);
    let node = launch.start().expect("a node");
    let mut side = Side::new(Who::Duolog, &node.kafka()).expect("a connection");
    side.prepare().expect("coordinators");
    let mut new = Vec::new();
    for (step, recorded) in &steps {
        let recorded = recorded.as_ref().expect("every request has its answer");
        let answer = side.perform(step).expect("an answer");
        for difference in differences(recorded, &answer) {
            if !KNOWN.iter().any(|known| known.covers(step, &difference)) {
                new.push(format!("{step}\n    {difference}"));
            }
        }
    }
    assert!(new.is_empty(), "{} differences in {file}:\n{}", new.len(), new.join("\n"));
}

#[test]
fn transactions_are_answered_as_kafka_answered_them() {
    replay("transactions.txt");
}

#[test]
fn administration_and_what_is_asked_for_twice_or_wrongly_is_answered_as_kafka_answered_it() {
    replay("administration.txt");
}

#[test]
fn requests_of_every_kind_are_answered_as_kafka_answered_them() {
    replay("seeds.txt");
}
