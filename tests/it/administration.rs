//! The stock tools that administer a cluster, against its only node, and the import of a folder.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::stock::{Client, Driver, kafka_tool, turn};
use duolog_tests::{http, wait};

const LIMIT: Duration = Duration::from_secs(120);

fn tool(node: &Node, name: &str, arguments: &[&str]) -> String {
    let address = node.kafka();
    let all = [&["--bootstrap-server", address.as_str()][..], arguments].concat();
    kafka_tool(name, &all, "").unwrap_or_else(|error| panic!("{name} {arguments:?}: {error}"))
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "no {part} in:\n{text}");
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

#[test]
fn records_are_deleted_and_log_directories_described() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let node = launch.start().expect("a node");
    tool(&node, "kafka-topics", &["--create", "--topic", "t", "--partitions", "2"]);
    let address = node.kafka();
    let produce = ["--bootstrap-server", address.as_str(), "--topic", "t"];
    let lines: String = (0..100).map(|number| format!("{number}\n")).collect();
    kafka_tool("kafka-console-producer", &produce, &lines).expect("produced");
    let ends = tool(&node, "kafka-get-offsets", &["--topic", "t"]);
    let end = |partition: i32| -> i64 {
        let prefix = format!("t:{partition}:");
        let line = ends.lines().find_map(|line| line.strip_prefix(&prefix));
        line.and_then(|end| end.parse().ok()).expect("an end")
    };
    let offsets = file(
        r#"{"version":1,"partitions":[{"topic":"t","partition":0,"offset":-1},
            {"topic":"t","partition":1,"offset":0}]}"#,
    );
    let path = offsets.path().display().to_string();
    let deleted = tool(&node, "kafka-delete-records", &["--offset-json-file", &path]);
    has(&deleted, &format!("partition: t-0\tlow_watermark: {}", end(0)));
    has(&deleted, "partition: t-1\tlow_watermark: 0");
    let starts = tool(&node, "kafka-get-offsets", &["--topic", "t", "--time", "-2"]);
    has(&starts, &format!("t:0:{}", end(0)));
    let described = tool(&node, "kafka-log-dirs", &["--describe", "--topic-list", "t"]);
    has(&described, &format!("\"logDir\":\"{}\"", launch.data_dir().display()));
    has(&described, "\"partition\":\"t-0\"");
    assert!(node.stop().expect("the node stops").success());
    let node = launch.start().expect("a node");
    let starts = tool(&node, "kafka-get-offsets", &["--topic", "t", "--time", "-2"]);
    has(&starts, &format!("t:0:{}", end(0)));
}

#[test]
fn partitions_lie_in_two_log_directories_of_which_one_fails() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports").data_in(&["one", "two"]);
    let node = launch.start().expect("a node");
    tool(&node, "kafka-topics", &["--create", "--topic", "t", "--partitions", "2"]);
    let dirs = launch.data_dirs();
    let describe = |node: &Node| {
        let shown = tool(node, "kafka-log-dirs", &["--describe", "--topic-list", "t"]);
        let json = shown.lines().find(|line| line.starts_with('{')).expect("a line of JSON");
        let shown: serde_json::Value = serde_json::from_str(json).expect("JSON");
        dirs.iter()
            .map(|dir| {
                let all = shown["brokers"][0]["logDirs"].as_array().expect("directories");
                let of = |one: &&serde_json::Value| one["logDir"] == dir.display().to_string();
                let found = all.iter().find(of).expect("this directory");
                let partitions = found["partitions"].as_array().expect("partitions").iter();
                let names = partitions.map(|one| one["partition"].as_str().expect("a name"));
                (names.map(str::to_owned).collect::<Vec<_>>(), found["error"].is_string())
            })
            .collect::<Vec<_>>()
    };
    let in_each = [(vec!["t-0".to_owned()], false), (vec!["t-1".to_owned()], false)];
    assert_eq!(describe(&node), in_each);
    // There and back.
    for at in [1, 0] {
        let plan = file(&format!(
            r#"{{"version":1,"partitions":[{{"topic":"t","partition":0,"replicas":[1],"log_dirs":["{}"]}}]}}"#,
            dirs[at].display()
        ));
        let path = plan.path().display().to_string();
        let plan = ["--reassignment-json-file", path.as_str()];
        let run = |what| tool(&node, "kafka-reassign-partitions", &[&plan[..], &[what]].concat());
        let to = dirs[at].display();
        has(
            &run("--execute"),
            &format!(
                "Successfully started moving log directory to {to} for replica t-0 with broker 1"
            ),
        );
        let start = std::time::Instant::now();
        while !run("--verify").contains("Reassignment of replica t-0-1 completed successfully.") {
            assert!(start.elapsed() < std::time::Duration::from_secs(120), "never moved");
        }
        assert!(describe(&node)[at].0.contains(&"t-0".to_owned()));
    }
    assert_eq!(describe(&node), in_each);
    assert!(node.stop().expect("the node stops").success());
    // A disk that is not mounted.
    let away = folder.path().join("away");
    std::fs::rename(&dirs[1], &away).expect("renamed");
    std::fs::write(&dirs[1], "").expect("written");
    let node = launch.start().expect("a node");
    assert_eq!(describe(&node), [(vec!["t-0".to_owned()], false), (Vec::new(), true)]);
    let described = tool(&node, "kafka-topics", &["--describe", "--topic", "t"]);
    has(&described, "Partition: 1\tLeader: none");
    assert!(node.stop().expect("the node stops").success());
    std::fs::remove_file(&dirs[1]).expect("removed");
    std::fs::rename(&away, &dirs[1]).expect("renamed");
    assert_eq!(describe(&launch.start().expect("a node")), in_each);
}

#[test]
fn leaders_replicas_quorum_and_features() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    tool(&node, "kafka-topics", &["--create", "--topic", "t", "--partitions", "2"]);
    let elected = tool(
        &node,
        "kafka-leader-election",
        &["--election-type", "preferred", "--topic", "t", "--partition", "0"],
    );
    has(&elected, "Valid replica already elected for partitions t-0");
    tool(
        &node,
        "kafka-leader-election",
        &["--election-type", "preferred", "--all-topic-partitions"],
    );
    let plan = file(r#"{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}"#);
    let path = plan.path().display().to_string();
    let execute = ["--reassignment-json-file", &path, "--execute"];
    has(&tool(&node, "kafka-reassign-partitions", &execute), "Successfully started partition");
    let verify = ["--reassignment-json-file", &path, "--verify"];
    let verified = tool(&node, "kafka-reassign-partitions", &verify);
    has(&verified, "Reassignment of partition t-0 is completed.");
    let listed = tool(&node, "kafka-reassign-partitions", &["--list"]);
    has(&listed, "No partition reassignments found.");
    let status = tool(&node, "kafka-metadata-quorum", &["describe", "--status"]);
    has(&status, "LeaderId:");
    has(&status, "MaxFollowerLag:");
    let replication = tool(&node, "kafka-metadata-quorum", &["describe", "--replication"]);
    has(&replication, "Leader");
    let levels = |group: i32| {
        let described = tool(&node, "kafka-features", &["describe"]);
        let line = |feature| described.lines().find(|line| line.contains(feature));
        let group_line = line("group.version").unwrap_or_default();
        has(group_line, "SupportedMinVersion: 0");
        has(group_line, "SupportedMaxVersion: 1");
        has(group_line, &format!("FinalizedVersionLevel: {group}"));
        has(line("transaction.version").unwrap_or_default(), "FinalizedVersionLevel: 2");
    };
    levels(1);
    let downgrade = ["downgrade", "--feature", "group.version=0"];
    has(&tool(&node, "kafka-features", &downgrade), "group.version was downgraded to 0.");
    levels(0);
    let upgrade = ["upgrade", "--feature", "group.version=1"];
    has(&tool(&node, "kafka-features", &upgrade), "group.version was upgraded to 1.");
    has(&tool(&node, "kafka-features", &["version-mapping"]), "group.version=1");
}

#[test]
fn settings_of_topics_and_of_the_node() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    tool(
        &node,
        "kafka-topics",
        &["--create", "--topic", "t", "--config", "cleanup.policy=compact"],
    );
    let described = tool(&node, "kafka-configs", &["--describe", "--entity-type", "topics"]);
    has(&described, "Dynamic configs for topic t are:");
    has(&described, "cleanup.policy=compact");
    let set = ["--alter", "--entity-type", "brokers", "--entity-default", "--add-config"];
    tool(&node, "kafka-configs", &[&set[..], &["log.cleaner.threads=2"]].concat());
    let default = ["--describe", "--entity-type", "brokers", "--entity-default"];
    has(&tool(&node, "kafka-configs", &default), "log.cleaner.threads=2");
    let users = tool(&node, "kafka-configs", &["--describe", "--entity-type", "users"]);
    assert!(!users.contains("Exception"), "{users}");
}

/// Settings of client-metrics resources reach a stock client, and its metrics the HTTP port (KIP-714).
#[test]
fn stock_clients_push_the_metrics_that_they_are_asked_for() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports").set("telemetry.receiver", "metrics");
    let node = launch.start().expect("a node");
    let metrics = "org.apache.kafka.producer.";
    let set = ["--alter", "--name", "m", "--metrics", metrics, "--interval", "100"];
    tool(&node, "kafka-client-metrics", &set);
    assert_eq!(tool(&node, "kafka-client-metrics", &["--list"]).trim(), "m");
    let described = tool(&node, "kafka-client-metrics", &["--describe", "--name", "m"]);
    has(&described, "metrics=org.apache.kafka.producer.");
    let mut producer = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    producer.call("producer id=p").expect("a producer");
    let pushed = wait::until("the producer's metrics are shown", LIMIT, || {
        let (_, text) = http::get(&node.http(), "/metrics")?;
        let name = "client_org_apache_kafka_producer_connection_creation_total{";
        let line = text.lines().find(|line| line.starts_with(name)).context("not yet")?;
        ensure!(!line.ends_with(" 0"), "{line}");
        Ok(line.to_owned())
    });
    let pushed = pushed.expect("pushed");
    has(&pushed, "client_software_name=\"apache-kafka-java\"");
    has(&pushed, "client_software_version=\"4.3.1\"");
    has(&pushed, "client_source_address=\"127.0.0.1\"");
}

#[test]
fn the_cluster_and_its_apis_are_told() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let address = node.kafka();
    // Its options come behind the command.
    let cluster_id = ["cluster-id", "--bootstrap-server", address.as_str()];
    let told = kafka_tool("kafka-cluster", &cluster_id, "").expect("told");
    has(&told, "Cluster ID: ");
    let apis = tool(&node, "kafka-broker-api-versions", &[]);
    has(&apis, "Produce(0): 0 to 13 [usable: 13]");
    has(&apis, "ConsumerGroupHeartbeat(68): 0 to 1 [usable: 1]");
    has(&apis, "PushTelemetry(72): UNSUPPORTED");
}

/// What one node wrote another takes over, offsets and all.
#[test]
fn a_stopped_nodes_topics_are_imported() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::create_dir_all(&from).expect("made");
    std::fs::create_dir_all(&to).expect("made");
    let source = Launch::new(&from).expect("ports");
    let node = source.start().expect("a node");
    tool(&node, "kafka-topics", &["--create", "--topic", "t", "--partitions", "1"]);
    let address = node.kafka();
    let produce = ["--bootstrap-server", address.as_str(), "--topic", "t"];
    kafka_tool("kafka-console-producer", &produce, "a\nb\n").expect("done");
    let refused = import(&source, &to);
    has(&String::from_utf8_lossy(&refused.stderr), "a broker is running there");
    assert!(node.stop().expect("the node stops").success());
    let target = Launch::new(&to).expect("ports");
    let imported = import(&source, &target.data_dir());
    assert!(imported.status.success(), "{imported:?}");
    has(&String::from_utf8_lossy(&imported.stdout), "t: 1 partitions");
    let node = target.start().expect("a node");
    has(&tool(&node, "kafka-get-offsets", &["--topic", "t"]), "t:0:2");
}

fn import(source: &Launch, to: &std::path::Path) -> std::process::Output {
    std::process::Command::new(duolog_tests::cluster::executable())
        .arg("import")
        .arg(source.data_dir())
        .arg("--data-dir")
        .arg(to)
        .output()
        .expect("it runs")
}
