//! rocketmq-client-go: sends of every kind, a group that a member leaves, tags, a delay, transactions.

use std::process::Command;
use std::time::Duration;

use duolog_tests::cluster::Launch;
use duolog_tests::stock::{interop, run, turn, verified};
use duolog_tests::topics::create_rocketmq_topic;

/// Its own waits end earlier.
const LIMIT: Duration = Duration::from_secs(900);

#[test]
fn the_go_client_sends_consumes_waits_and_decides() {
    let _turn = turn();
    verified();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let launch = launch
        .set("rocketmq.transactionTimeOut", 1_000)
        .set("rocketmq.transactionCheckInterval", 1_000);
    let node = launch.start().expect("a node");
    for (topic, queues) in
        [("go_plain", 4), ("go_tags", 1), ("go_delay", 1), ("go_transactions", 1)]
    {
        create_rocketmq_topic(&node.broker(), &node.namesrv(), topic, queues).expect("a topic");
    }
    let mut command = Command::new(interop().join("go/rocketmqgo"));
    command.arg(node.namesrv());
    let told = run(command, "", LIMIT).and_then(|output| output.success()).expect("a good end");
    let expected = [
        "sent and consumed async,batch 1,batch 2,one way,sync",
        "two members had some each, the one that stayed the rest",
        "by tags of A,of A,of C with key value",
        "a second later at least: true",
        "transactions asked, commit,commit,commit",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}
