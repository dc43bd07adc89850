//! Kafka's command line tools by a script, held against what a real Kafka's print; all of it runs in `make verify`.

use duolog_tests::cluster::Launch;
use duolog_tests::kafka_tools::{SETTINGS, compare_duolog, run, script};
use duolog_tests::stock::turn;

/// KCL-02, KCL-05: what the tools print of Duolog is what they print of a real Kafka, but for what is listed with its reason.
#[test]
fn the_stock_tools_print_what_they_print_of_a_real_kafka() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let launch = SETTINGS.iter().fold(launch, |launch, (key, value)| launch.set(key, value));
    let node = launch.start().expect("a node");
    let sections = script::short().expect("a script");
    let told = run(&node.kafka(), &launch.data_dir(), &sections).expect("the script");
    compare_duolog(&told).unwrap_or_else(|error| panic!("{error:#}"));
}
