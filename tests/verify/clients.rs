//! Every client that is tried, in every version: features KPR, KST, KCO and KTX as its users meet them.

use duolog_tests::cases::{Case, Report};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::groups::{self, Share, each_came_once, join_and_leave};
use duolog_tests::matrix::judge_node;
use duolog_tests::show;
use duolog_tests::stock::{Client, Driver, turn};
use duolog_tests::topics::create_kafka_topic;

/// A node on which a group's first member need not wait for others.
fn start(folder: &tempfile::TempDir) -> Node {
    let launch = Launch::new(folder.path()).expect("ports");
    launch.set("group.initial.rebalance.delay.ms", 0).start().expect("a node")
}

/// Each producer × each compression it has × each consumer of both protocols.
#[test]
fn every_producer_and_compression_reaches_every_consumer() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = start(&folder);
    let clients = [&Client::KAFKA[..], &Client::FURTHER, &Client::ROCKETMQ].concat();
    judge_node(&node, &clients).expect("all cells are right");
}

#[test]
fn every_client_does_every_case() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = start(&folder);
    let clients = [&Client::KAFKA[..], &Client::FURTHER].concat();
    let report = Report::of(&clients, &Case::ALL, &node.kafka());
    show(&report.text()).expect("standard error");
    report.complete(&clients).expect("all cases went well");
}

/// KCO-02, KCO-04 among members that have nothing in common but the assignor's name.
#[test]
fn clients_of_every_language_share_one_group() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = start(&folder);
    // kafkajs has no assignor `range`; kafka-go names version 1 of a subscription and writes version
    // 0, which only its own leaders read.
    let clients = [
        Client::Kafka431,
        Client::Aiokafka,
        Client::FranzGo,
        Client::Librdkafka,
        Client::KafkaPython,
        Client::Sarama,
        Client::Kafka211,
    ];
    let drivers = clients.map(|client| Driver::start(client, &node.kafka()).expect("a driver"));
    let mut drivers = Vec::from(drivers);
    create_kafka_topic(&node.kafka(), "mixed", groups::PARTITIONS).expect("a topic");
    join_and_leave(&mut drivers, "of_mixed", "mixed", Share::Even).expect("the shares");
    each_came_once(&drivers).expect("every record once");
}
