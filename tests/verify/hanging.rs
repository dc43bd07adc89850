//! The repair of hanging transactions on a real Kafka and on Duolog; `BLESS=1` writes down what the former told.

use std::fs;

use duolog_tests::cluster::Launch;
use duolog_tests::hanging::{GOLDEN, SETTINGS, difference, script};
use duolog_tests::peer::Peer;
use duolog_tests::stock::{turn, workspace};

#[test]
fn hanging_transactions_are_found_and_ended_alike() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let (ours, theirs) = (folder.path().join("duolog"), folder.path().join("kafka"));
    for path in [&ours, &theirs] {
        fs::create_dir_all(path).expect("a folder");
    }
    let peer = Peer::start(&theirs, &SETTINGS).expect("a real Kafka");
    let expected = script(&peer.kafka()).expect("the script on a real Kafka");
    let golden = workspace().join(GOLDEN);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&golden, &expected).expect("the golden file");
    }
    let launch = Launch::new(&ours).expect("ports");
    let launch = SETTINGS.iter().fold(launch, |launch, (key, value)| launch.set(key, value));
    let node = launch.start().expect("a node");
    let told = script(&node.kafka()).expect("the script on Duolog");
    assert!(told == expected, "{}", difference(&expected, &told));
    let golden = fs::read_to_string(golden).expect("the golden file");
    assert!(expected == golden, "another peer? {}", difference(&golden, &expected));
}
