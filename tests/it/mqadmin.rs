//! RAD: stock mqadmin and the dashboard's calls print against a node what they print against a real RocketMQ 5.5.0.

use duolog_tests::cluster::Launch;
use duolog_tests::mqadmin;
use duolog_tests::stock::turn;

/// `BLESS=1` writes into the scripts what differs on purpose.
#[test]
fn each_command_of_mqadmin_prints_what_it_prints_against_rocketmq() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let bless = std::env::var_os("BLESS").is_some();
    mqadmin::compare(&node.namesrv(), &node.broker(), bless).expect("as recorded");
}
