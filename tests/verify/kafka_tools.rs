//! Kafka's command line tools by a script, on a real Kafka and on Duolog; `BLESS=1` writes down what the former's print.

use duolog_tests::cluster::Launch;
use duolog_tests::kafka_tools::{SETTINGS, bless, compare_duolog, compare_peer, run, script};
use duolog_tests::peer::Peer;
use duolog_tests::stock::turn;

#[test]
fn the_stock_tools_print_of_a_real_kafka_what_is_written_down() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let peer = Peer::start(folder.path(), &[]).expect("a real Kafka");
    let sections = script::read().expect("a script");
    let told = run(&peer.kafka(), &folder.path().join("data"), &sections).expect("the script");
    if std::env::var_os("BLESS").is_some() {
        bless(&told).expect("the golden files");
    }
    compare_peer(&told).unwrap_or_else(|error| panic!("another peer? {error:#}"));
}

#[test]
fn the_stock_tools_print_the_same_of_duolog() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let launch = SETTINGS.iter().fold(launch, |launch, (key, value)| launch.set(key, value));
    let node = launch.start().expect("a node");
    let sections = script::read().expect("a script");
    let told = run(&node.kafka(), &launch.data_dir(), &sections).expect("the script");
    compare_duolog(&told).unwrap_or_else(|error| panic!("{error:#}"));
}
