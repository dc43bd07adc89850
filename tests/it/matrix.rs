//! Every stock producer × every compression × every stock consumer, against one node.

use std::io::Write;

use duolog_tests::cluster::Launch;
use duolog_tests::matrix::{Cell, PARTITIONS, Table};
use duolog_tests::stock::{Client, turn};
use duolog_tests::topics::{create_kafka_topic, create_rocketmq_topic};

#[test]
fn every_producer_and_compression_reaches_every_consumer() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let mut clients = Vec::new();
    for client in Client::KAFKA {
        clients.push((client, node.kafka()));
    }
    for client in Client::ROCKETMQ {
        clients.push((client, node.namesrv()));
    }
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
