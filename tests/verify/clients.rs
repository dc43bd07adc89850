//! Every client that is tried, in every version: features KPR, KST, KCO and KTX as its users meet them.

use std::io::Write;

use duolog_tests::cluster::Launch;
use duolog_tests::matrix::{Cell, PARTITIONS, Table};
use duolog_tests::stock::{Client, turn};
use duolog_tests::topics::{create_kafka_topic, create_rocketmq_topic};

/// Each producer of Kafka × each compression it has × each consumer of both protocols.
#[test]
fn every_kafka_producer_and_compression_reaches_every_consumer() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let kafka = Client::KAFKA.into_iter().chain(Client::VERIFIED);
    let rocketmq = Client::ROCKETMQ.into_iter().map(|client| (client, node.namesrv()));
    let clients: Vec<_> = kafka.map(|client| (client, node.kafka())).chain(rocketmq).collect();
    let names: Vec<Client> = clients.iter().map(|(client, _)| *client).collect();
    for cell in Cell::all(&names) {
        let topic = cell.topic();
        let created = if cell.writer.speaks_kafka() {
            create_kafka_topic(&node.kafka(), &topic, PARTITIONS)
        } else {
            create_rocketmq_topic(&node.broker(), &node.namesrv(), &topic, PARTITIONS)
        };
        created.expect("a topic");
    }
    let table = Table::fill(&clients).expect("all cells");
    // The handle itself is not captured: the table is shown when the test passes, too.
    writeln!(std::io::stderr(), "\n{}", table.text()).expect("standard error");
    table.complete(&names, |_, _| false).expect("all cells are right");
}
