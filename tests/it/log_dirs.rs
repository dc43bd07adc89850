//! Log directories of a running node: moves between them that are killed half way, and one that fails.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::raw_client::Connection;
use duolog_tests::stock::{kafka_tool, turn};
use duolog_tests::{http, raw_kafka, wait};
use kafka_protocol::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use kafka_protocol::messages::{AlterReplicaLogDirsRequest, DescribeLogDirsRequest};
use kafka_protocol::protocol::StrBytes;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(120);

fn connect(node: &Node) -> Connection {
    Connection::open(&node.kafka(), LIMIT).expect("a connection")
}

fn try_produce(node: &Node, partition: i32, value: &[u8]) -> anyhow::Result<i16> {
    let request = raw_kafka::produce("t", partition, -1, raw_kafka::batch(&[value], None));
    let mut connection = Connection::open(&node.kafka(), LIMIT)?;
    let answer = connection.kafka(raw_kafka::PRODUCE_VERSION, &request)?;
    Ok(raw_kafka::produced(answer)?.error_code)
}

fn produce(node: &Node, partition: i32, value: &[u8]) -> i16 {
    try_produce(node, partition, value).expect("an answer")
}

/// Asks for `t-0` to be moved; returns the error code.
fn move_to(node: &Node, dir: &str) -> i16 {
    let topic = AlterReplicaLogDirTopic::default()
        .with_name(raw_kafka::topic_name("t"))
        .with_partitions(vec![0]);
    let dir = AlterReplicaLogDir::default()
        .with_path(StrBytes::from_string(dir.to_owned()))
        .with_topics(vec![topic]);
    let request = AlterReplicaLogDirsRequest::default().with_dirs(vec![dir]);
    let answer = connect(node).kafka(2, &request).expect("an answer");
    answer.results[0].partitions[0].error_code
}

/// Each directory: its error, and of `t` each partition and whether it is a copy on its way.
type Described = Vec<(i16, Vec<(i32, bool)>)>;

fn described(node: &Node) -> anyhow::Result<Described> {
    let answer = connect(node).kafka(4, &DescribeLogDirsRequest::default().with_topics(None))?;
    let dirs = answer.results.iter().map(|dir| {
        let here = dir.topics.iter().filter(|topic| topic.name.as_str() == "t");
        let partitions = here.flat_map(|topic| &topic.partitions);
        let shown = partitions.map(|one| (one.partition_index, one.is_future_key));
        (dir.error_code, shown.collect())
    });
    Ok(dirs.collect())
}

fn wait_caught(node: &Node, point: &str) {
    wait::until("the gate catches", LIMIT, || {
        let listed = http::gates(&node.http(), &json!("list"))?;
        let gates = listed["gates"].as_array().context("gates")?;
        let is_caught = |gate: &Value| gate["point"] == point && gate["hits"] != 0;
        ensure!(gates.iter().any(is_caught), "{listed}");
        Ok(())
    })
    .expect("it is caught");
}

/// What the stock tool says of the partitions of `t` in a directory: whether each is a copy, and its lag.
fn stock_described(node: &Node, dir: &str) -> Vec<(bool, i64)> {
    let address = node.kafka();
    let all = ["--bootstrap-server", address.as_str(), "--describe", "--topic-list", "t"];
    let shown = kafka_tool("kafka-log-dirs", &all, "").expect("described");
    let json = shown.lines().find(|line| line.starts_with('{')).expect("a line of JSON");
    let shown: Value = serde_json::from_str(json).expect("JSON");
    let dirs = shown["brokers"][0]["logDirs"].as_array().expect("directories");
    let found = dirs.iter().find(|one| one["logDir"] == dir).expect("this directory");
    let partitions = found["partitions"].as_array().expect("partitions").iter();
    let shown =
        partitions.map(|one| Some((one["isFuture"].as_bool()?, one["offsetLag"].as_i64()?)));
    shown.collect::<Option<_>>().expect("whether it is a copy, and its lag")
}

/// What stands in a directory where a file is to be made, so that making it fails as on a disk that has
/// failed: a folder.
fn spoil(path: &Path) {
    std::fs::create_dir(path).expect("a folder");
}

#[test]
fn a_directory_that_fails_is_refused_and_without_the_first_the_node_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports").data_in(&["one", "two"]);
    let launch = launch.flag("--control").set("log.segment.bytes", 1 << 20);
    let dirs = launch.data_dirs();
    let node = launch.start().expect("a node");
    raw_kafka::create_topic(&mut connect(&node), "t", 2).expect("a topic");
    assert_eq!(described(&node).unwrap(), [(0, vec![(0, false)]), (0, vec![(1, false)])]);
    let large = vec![b'v'; 600_000];
    assert_eq!((produce(&node, 0, &large), produce(&node, 1, &large)), (0, 0));
    let events = http::Events::listen(&node.http()).expect("events");
    let next_segment = dirs[1].join("t-1/00000000000000000001.log");
    spoil(&next_segment);
    assert_eq!(produce(&node, 1, &large), 56);
    let told = wait::until("it is told", LIMIT, || {
        events.of("log_dir.offline")?.pop().context("nothing yet")
    });
    let cause = told.expect("told")["cause"].as_str().expect("a cause").to_owned();
    assert!(cause.starts_with(&format!("{}: ", dirs[1].display())), "{cause}");
    assert_eq!(produce(&node, 1, b"small"), 56);
    let answer = raw_kafka::fetch(&mut connect(&node), "t", 1, 0).expect("an answer");
    assert_eq!(answer.error_code, 56);
    assert_eq!(produce(&node, 0, b"small"), 0);
    assert_eq!(described(&node).unwrap(), [(0, vec![(0, false)]), (56, vec![])]);
    let (_, figures) = http::get(&node.http(), "/metrics").expect("metrics");
    for (dir, offline) in dirs.iter().zip([0, 1]) {
        let series = format!("duolog_log_dir_offline{{dir=\"{}\"}} {offline}\n", dir.display());
        assert!(figures.contains(&series), "{figures}");
    }
    assert!(node.stop().expect("the node stops").success());

    std::fs::remove_dir(&next_segment).expect("removed");
    let mut node = launch.start().expect("a node");
    let found = raw_kafka::values(&mut connect(&node), "t", 1, 0).expect("records");
    assert_eq!(found, [(0, large.clone())]);
    assert_eq!(produce(&node, 1, &large), 0);
    spoil(&dirs[0].join("t-0/00000000000000000002.log"));
    // The node may end before it answers.
    if let Ok(code) = try_produce(&node, 0, &large) {
        assert_eq!(code, 56);
    }
    let ended = wait::until("the node ends", LIMIT, || node.ended()?.context("it runs"));
    assert_eq!(ended.expect("ended").code(), Some(1));
    let text = "has failed, which holds the metadata log";
    assert!(node.log().contains(text), "{}", node.log());
}

/// It is copied, or about to take the log's place, or has just done so: the next start finishes it.
#[test]
fn a_move_killed_at_each_gate_is_finished_by_the_next_start() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports").data_in(&["one", "two"]);
    let launch = launch.flag("--control");
    let dirs = launch.data_dirs().iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>();
    let mut node = launch.start().expect("a node");
    raw_kafka::create_topic(&mut connect(&node), "t", 1).expect("a topic");
    let mut written = Vec::new();
    let mut write = |node: &Node| {
        let value = format!("value {}", written.len());
        assert_eq!(produce(node, 0, value.as_bytes()), 0);
        written.push((written.len() as i64, value.into_bytes()));
        written.clone()
    };
    let gates = ["log_dir.copy", "log_dir.replace.before", "log_dir.replace.after"];
    for (gate, to) in gates.into_iter().zip([1, 0, 1]) {
        write(&node);
        let arm = json!({"arm": {"point": gate, "topic": "t", "action": "hold"}});
        http::gates(&node.http(), &arm).expect("a gate");
        assert_eq!(move_to(&node, &dirs[to]), 0);
        wait_caught(&node, gate);
        let all = write(&node);
        if gate == "log_dir.copy" {
            assert_eq!(stock_described(&node, &dirs[to]), [(true, all.len() as i64)]);
            assert_eq!(stock_described(&node, &dirs[1 - to]), [(false, 0)]);
        }
        node.kill().expect("kill -9");
        node = launch.start().expect("a node");
        wait::until("it is moved", LIMIT, || {
            let mut expected = vec![(0, vec![]), (0, vec![])];
            expected[to].1.push((0, false));
            let described = described(&node)?;
            ensure!(described == expected, "{described:?}");
            Ok(())
        })
        .expect("moved");
        let found = raw_kafka::values(&mut connect(&node), "t", 0, 0).expect("records");
        assert_eq!(found, all, "{gate}");
    }
    assert!(node.stop().expect("the node stops").success());
}
