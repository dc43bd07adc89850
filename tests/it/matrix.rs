//! Every stock producer × every compression × every stock consumer, against one node.

use duolog_tests::cluster::Launch;
use duolog_tests::matrix::judge_node;
use duolog_tests::stock::{Client, turn};

#[test]
fn every_producer_and_compression_reaches_every_consumer() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let clients = [Client::KAFKA, Client::ROCKETMQ].concat();
    judge_node(&node, &clients).expect("all cells are right");
}
