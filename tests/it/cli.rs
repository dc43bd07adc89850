//! The stock command line tools of both protocols, used as operators use them.

use std::path::{Path, PathBuf};

use duolog_tests::cluster::{Launch, Node};
use duolog_tests::stock::{kafka_tool, turn};

const DUMP_LOG: &str = "kafka-dump-log";
/// Words with which kafka-dump-log complains.
const COMPLAINTS: [&str; 8] = [
    "Mismatches",
    "mismatch",
    "out of order",
    "Non-consecutive",
    "not found",
    "Exception",
    "failed",
    "invalid bytes",
];

fn kafka(node: &Node, tool: &str, arguments: &[&str], input: &str) -> String {
    let address = node.kafka();
    let mut all = vec!["--bootstrap-server", address.as_str()];
    all.extend(arguments);
    kafka_tool(tool, &all, input).unwrap_or_else(|error| panic!("{tool} {arguments:?}: {error}"))
}

/// Asserts that the text holds a line with these words in this order.
#[track_caller]
fn has_row(text: &str, words: &[&str]) {
    let found = text.lines().any(|line| {
        let mut rest = line.split_whitespace();
        words.iter().all(|word| rest.any(|other| other == *word))
    });
    assert!(found, "no row {words:?} in:\n{text}");
}

#[test]
fn kafka_topic_and_config_tools() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let created =
        kafka(&node, "kafka-topics", &["--create", "--topic", "t", "--partitions", "2"], "");
    assert_eq!(created.trim(), "Created topic t.");
    has_row(&kafka(&node, "kafka-topics", &["--list"], ""), &["t"]);
    kafka(&node, "kafka-topics", &["--alter", "--topic", "t", "--partitions", "3"], "");
    let described = kafka(&node, "kafka-topics", &["--describe", "--topic", "t"], "");
    has_row(&described, &["Topic:", "t", "PartitionCount:", "3", "ReplicationFactor:", "1"]);
    has_row(&described, &["Partition:", "2", "Leader:", "1", "Replicas:", "1", "Isr:", "1"]);
    let alter = ["--alter", "--topic", "t", "--add-config", "retention.ms=100000"];
    let altered = kafka(&node, "kafka-configs", &alter, "");
    assert_eq!(altered.trim(), "Completed updating config for topic t.");
    let configs = kafka(&node, "kafka-configs", &["--describe", "--topic", "t"], "");
    assert!(
        configs.contains(
            "retention.ms=100000 sensitive=false \
             synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=100000}"
        ),
        "{configs}"
    );
    kafka(&node, "kafka-topics", &["--delete", "--topic", "t"], "");
    let left = kafka(&node, "kafka-topics", &["--list"], "");
    assert!(!left.lines().any(|line| line == "t"), "{left}");
}

/// Lines `key:value` for the console producer.
fn lines(count: usize) -> String {
    (0..count).map(|number| format!("k{number}:{number:0>200}\n")).collect()
}

#[test]
fn console_clients_offsets_groups_and_every_file_kind_on_disk() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let node = launch.start().expect("a node");
    kafka(&node, "kafka-topics", &["--create", "--topic", "t", "--partitions", "1"], "");
    let keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"];
    let produce = [&["--topic", "t"][..], &keyed].concat();
    kafka(&node, "kafka-console-producer", &produce, &lines(2000));
    assert_eq!(kafka(&node, "kafka-get-offsets", &["--topic", "t"], "").trim(), "t:0:2000");
    let consume = [
        "--topic",
        "t",
        "--group",
        "g",
        "--from-beginning",
        "--max-messages",
        "2000",
        "--formatter-property",
        "print.key=true",
        "--formatter-property",
        "print.offset=true",
    ];
    let consumed = kafka(&node, "kafka-console-consumer", &consume, "");
    assert_eq!(consumed.lines().filter(|line| line.starts_with("Offset:")).count(), 2000);
    has_row(&consumed, &["Offset:1999", "k1999", &format!("{:0>200}", 1999)]);
    has_row(&kafka(&node, "kafka-consumer-groups", &["--list"], ""), &["g"]);
    let described = kafka(&node, "kafka-consumer-groups", &["--describe", "--group", "g"], "");
    has_row(&described, &["g", "t", "0", "2000", "2000", "0"]);
    positions_in_consumer_offsets(&node);
    let reset = ["--reset-offsets", "--to-earliest", "--topic", "t", "--group", "g", "--execute"];
    has_row(&kafka(&node, "kafka-consumer-groups", &reset, ""), &["g", "t", "0", "0"]);
    has_row(&kafka(&node, "kafka-groups", &["--list"], ""), &["g", "Classic", "consumer"]);
    let state = ["--describe", "--group", "g", "--state"];
    has_row(&kafka(&node, "kafka-consumer-groups", &state, ""), &["g", "Empty", "0"]);
    let deleted = kafka(&node, "kafka-consumer-groups", &["--delete", "--group", "g"], "");
    assert!(deleted.contains("was successful"), "{deleted}");
    assert!(node.stop().expect("the node stops").success());
    dump_every_file(&launch.data_dir());
}

/// The stock formatter reads the group's position from the internal topic.
fn positions_in_consumer_offsets(node: &Node) {
    let topic = "__consumer_offsets";
    let ends = kafka(node, "kafka-get-offsets", &["--topic", topic], "");
    let mut ends = ends.lines().filter_map(|line| line.rsplit_once(':'));
    let (place, end) = ends.find(|(_, end)| *end != "0").expect("a group's partition");
    let partition = place.rsplit(':').next().unwrap_or_default();
    let formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter";
    // The formatter is silent about what is no position, but counts it.
    let from = ["--topic", topic, "--partition", partition, "--offset", "earliest"];
    let arguments = [&from[..], &["--max-messages", end, "--formatter", formatter]].concat();
    let printed = kafka(node, "kafka-console-consumer", &arguments, "");
    has_part(&printed, r#""group":"g","topic":"t","partition":0"#);
    has_part(&printed, r#""offset":2000,"#);
}

#[track_caller]
fn has_part(text: &str, part: &str) {
    assert!(text.contains(part), "no {part} in:\n{text}");
}

/// Files below the directory with that extension, joined by commas as the tool takes them.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
    found
}

fn dump(paths: &[PathBuf], flags: &[&str]) -> String {
    let list: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let list = list.join(",");
    let arguments = [&["--files", list.as_str()][..], flags].concat();
    let text = kafka_tool(DUMP_LOG, &arguments, "").expect("exit code 0");
    for word in COMPLAINTS {
        assert!(!text.contains(word), "{flags:?}: {word}:\n{text}");
    }
    text
}

fn dump_every_file(data: &Path) {
    let logs = files(data, "log");
    let text = dump(&logs, &["--deep-iteration", "--print-data-log"]);
    assert!(text.contains("key: k1999 payload: "), "the last record:\n{text}");
    let indexes = [files(data, "index"), files(data, "timeindex")].concat();
    assert_eq!(indexes.len(), 2 * logs.len(), "two indexes for each segment");
    let text = dump(&indexes, &["--index-sanity-check"]);
    // Of a partition without records the offset index is empty.
    let judged = ["passed sanity check.", "is empty."].map(|word| text.matches(word).count());
    assert_eq!(judged[0] + judged[1], indexes.len(), "{text}");
    for extension in ["index", "timeindex"] {
        has_part(&text, &format!("t-0/00000000000000000000.{extension} passed sanity check."));
    }
    for index in files(data, "txnindex") {
        dump(&[index], &[]);
    }
    let snapshots = files(data, "snapshot");
    assert!(!snapshots.is_empty(), "the idempotent producer's state was written at the stop");
    let text = dump(&snapshots, &[]);
    assert!(text.contains("producerId: "), "{text}");
    let offsets: Vec<PathBuf> = logs
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("__consumer_offsets-"))
        .collect();
    let text = dump(&offsets, &["--offsets-decoder"]);
    assert!(text.contains(r#""group":"g","topic":"t","partition":0"#), "{text}");
}
