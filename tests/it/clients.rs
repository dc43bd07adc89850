//! Kafka's clients in three languages do the same things; `make verify` asks every client for everything.

use duolog_tests::cases::{Case, Report};
use duolog_tests::cluster::Launch;
use duolog_tests::show;
use duolog_tests::stock::{Client, turn};

/// KCO-02, KTX-01, KTX-04, KCL-01 by Java, C and Python.
#[test]
fn clients_of_three_languages_share_groups_end_transactions_and_administer_topics() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    // The first member of a group need not wait for others.
    let launch =
        Launch::new(folder.path()).expect("ports").set("group.initial.rebalance.delay.ms", 0);
    let node = launch.start().expect("a node");
    let clients = [Client::Kafka431, Client::Librdkafka, Client::KafkaPython];
    let cases = [Case::Group, Case::Transactions, Case::Administration];
    let report = Report::of(&clients, &cases, &node.kafka());
    show(&report.text()).expect("standard error");
    report.complete(&clients).expect("all cases went well");
}
