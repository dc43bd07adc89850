//! What a newcomer meets at the executable itself: how it starts, what it refuses, how it ends.

mod memory;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::Context;
use duolog_tests::cluster::{Launch, executable};
use duolog_tests::raw_client::Connection;
use duolog_tests::{http, raw_kafka, wait};
use serde_json::json;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
const SIGABRT: i32 = 6;

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs a start that has to fail, and gives what it says.
fn refusal(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "it started");
    assert_eq!(output.stdout, b"", "nothing is served, nothing is said");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("duolog: ") && text.ends_with('\n'), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn a_start_says_in_six_lines_where_everything_is() {
    let directory = directory();
    let launch = Launch::new(directory.path()).unwrap();
    let ports = launch.ports();
    let mut child = launch.command().stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    while text.lines().count() < 6 || !text.ends_with('\n') {
        let mut bytes = [0; 512];
        let count = stdout.read(&mut bytes).unwrap();
        assert!(count > 0, "it ended: {text}");
        text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    let expected = [
        "duolog 0.1.0, node 1 of cluster ".to_owned(),
        format!("  Kafka                 127.0.0.1:{}", ports.kafka),
        format!("  RocketMQ name server  127.0.0.1:{}", ports.namesrv),
        format!("  RocketMQ broker       127.0.0.1:{} (VIP {})", ports.broker, ports.broker_vip),
        format!("  HTTP                  127.0.0.1:{} (/metrics)", ports.http),
        format!("  data                  {}", launch.data_dir().display()),
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(&expected), "{line} instead of {expected}");
    }
}

#[test]
fn a_taken_port_is_named_with_the_option_that_moves_it() {
    let first = directory();
    let node = Launch::new(first.path()).unwrap().start().unwrap();
    let rows = [
        (
            node.kafka(),
            "listeners=PLAINTEXT://{}",
            "Kafka",
            "--set listeners=PLAINTEXT://HOST:PORT",
        ),
        (
            node.namesrv(),
            "rocketmq.namesrvListenPort={port}",
            "RocketMQ name server",
            "--set rocketmq.namesrvListenPort=PORT",
        ),
        (
            node.broker(),
            "rocketmq.listenPort={port}",
            "RocketMQ broker",
            "--set rocketmq.listenPort=PORT",
        ),
        (node.http(), "http.port={port}", "HTTP", "--set http.port=PORT"),
    ];
    for (address, setting, what, option) in rows {
        let second = directory();
        let launch = Launch::new(second.path()).unwrap();
        let port = address.rsplit(':').next().unwrap();
        let setting = setting.replace("{}", &address).replace("{port}", port);
        let mut command = launch.command();
        command.arg("--set").arg(setting);
        let text = refusal(command);
        let begin = format!("duolog: cannot listen on {address} ({what}): Address already in use");
        let end = format!("; the port is taken: move it with {option}\n");
        assert!(text.starts_with(&begin) && text.ends_with(&end), "{text}");
        assert!(!launch.data_dir().exists(), "a node that cannot be reached touches no data");
    }
}

#[test]
fn a_locked_directory_is_refused_with_the_way_out() {
    let directory = directory();
    let launch = Launch::new(directory.path()).unwrap();
    let data = launch.data_dir();
    let _node = launch.start().unwrap();
    let other = Launch::new(directory.path()).unwrap();
    let text = refusal(other.command());
    assert!(text.contains(&data.display().to_string()), "{text}");
    assert!(text.contains("another") && text.contains("--data-dir"), "{text}");
}

#[test]
fn foreign_or_unreadable_data_is_refused_and_left_alone() {
    let rows: [(&str, &str, &[&str]); 4] = [
        ("notes.txt", "mine", &["notes.txt", "--data-dir"]),
        ("meta.properties", "version=1\nnode.id=7\n", &["meta.properties"]),
        ("meta.properties", "version=99\n", &["meta.properties"]),
        ("meta.properties", "", &["meta.properties"]),
    ];
    for (name, content, words) in rows {
        let directory = directory();
        let launch = Launch::new(directory.path()).unwrap();
        let path = launch.data_dir().join(name);
        std::fs::create_dir_all(launch.data_dir()).unwrap();
        std::fs::write(&path, content).unwrap();
        let text = refusal(launch.command());
        for word in words {
            assert!(text.contains(word), "{name}: {text}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_wherever_they_stand() {
    let directory = directory();
    let launch = Launch::new(directory.path()).unwrap();
    let file = directory.path().join("duolog.toml");
    std::fs::write(&file, "num.partitons = 3\n").unwrap();
    let mut by_file = launch.command();
    by_file.arg("--config").arg(&file);
    let mut by_environment = launch.command();
    by_environment.env("DUOLOG_NUM_PARTITONS", "3");
    let mut by_flag = launch.command();
    by_flag.arg("--set").arg("num.partitons=3");
    for (command, origin) in [
        (by_file, file.display().to_string()),
        (by_environment, "DUOLOG_NUM_PARTITONS".to_owned()),
        (by_flag, "--set".to_owned()),
    ] {
        let text = refusal(command);
        assert!(text.contains("unknown config key \"num.partitons\""), "{text}");
        assert!(text.contains(&origin), "{text}");
        assert!(text.contains("did you mean \"num.partitions\"?"), "{text}");
    }
}

#[test]
fn an_address_beyond_this_machine_needs_its_own_word() {
    let directory = directory();
    let launch = Launch::new(directory.path()).unwrap();
    for setting in ["listeners=PLAINTEXT://0.0.0.0:0", "rocketmq.bindAddress=0.0.0.0"] {
        let mut command = launch.command();
        command.arg("--set").arg(setting);
        let text = refusal(command);
        assert!(
            text.contains("0.0.0.0") && text.contains("allow.insecure.listeners=true"),
            "{text}"
        );
    }
}

/// File, environment and flags in rising priority, a profile below all; seen in what the node does.
#[test]
fn settings_come_from_file_environment_and_flags_in_rising_priority() {
    let directory = directory();
    let file = directory.path().join("duolog.toml");
    let text = "\"num.partitions\" = 2\noffsets.topic.num.partitions = 3\n\
                [rocketmq]\ndefaultTopicQueueNums = 5\nbrokerName = \"from-file\"\n";
    std::fs::write(&file, text).unwrap();
    let rows = [
        (None, None, 2),
        (Some(("DUOLOG_NUM_PARTITIONS", "4")), None, 4),
        (Some(("DUOLOG_NUM_PARTITIONS", "4")), Some("num.partitions=6"), 6),
    ];
    for (environment, flags, partitions) in rows {
        let data = tempfile::tempdir().unwrap();
        let mut launch =
            Launch::new(data.path()).unwrap().flag("--config").flag(file.to_str().unwrap());
        if let Some((name, value)) = environment {
            launch = launch.environment(name, value);
        }
        if let Some(flag) = flags {
            launch = launch.flag("--set").flag(flag);
        }
        let node = launch.start().unwrap();
        let mut connection = Connection::open(&node.kafka(), LIMIT).unwrap();
        assert_eq!(raw_kafka::created_partitions(&mut connection, "t").unwrap(), partitions);
        let mut namesrv = Connection::open(&node.namesrv(), LIMIT).unwrap();
        let info = namesrv.remoting(106, &[], &[]).unwrap();
        let body = String::from_utf8_lossy(&info.body).into_owned();
        assert!(body.contains("from-file"), "{body}");
    }
}

fn output(arguments: &[&str]) -> Output {
    Command::new(executable()).args(arguments).output().unwrap()
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    for arguments in [&["explain", "mapping"][..], &["explain", "mapping", "--json"], &["--help"]] {
        let whole = output(arguments);
        assert!(whole.status.success() && !whole.stdout.is_empty(), "{arguments:?}");
        let mut child = Command::new(executable())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() && said.is_empty(), "{arguments:?}: {status} {said}");
    }
}

/// A broken invariant is our bug: the process ends whichever task finds it, and the next start reads the log again.
#[test]
fn a_panic_in_any_task_ends_the_process_and_loses_nothing_acknowledged() {
    let directory = directory();
    let launch = Launch::new(directory.path()).unwrap().flag("--control");
    let mut node = launch.start().unwrap();
    let mut connection = Connection::open(&node.kafka(), LIMIT).unwrap();
    raw_kafka::create_topic(&mut connection, "t", 1).unwrap();
    let produce = |value: &[u8]| raw_kafka::produce("t", 0, -1, raw_kafka::batch(&[value], None));
    let answer = connection.kafka(9, &produce(b"acknowledged")).unwrap();
    assert_eq!(raw_kafka::produced(answer).unwrap().error_code, 0);
    let crash = json!({ "arm": { "point": "produce.append.before", "action": "crash" } });
    http::gates(&node.http(), &crash).unwrap();
    connection.send_kafka(9, &produce(b"never")).unwrap();
    let status = wait::until("the process ends", LIMIT, || node.ended()?.context("it still runs"));
    assert_eq!(status.unwrap().signal(), Some(SIGABRT));
    assert!(node.log().contains("a gate at produce.append.before ends the process"));
    drop(node);
    let node = launch.start().unwrap();
    let mut connection = Connection::open(&node.kafka(), LIMIT).unwrap();
    let values = raw_kafka::values(&mut connection, "t", 0, 0).unwrap();
    assert_eq!(values, [(0, b"acknowledged".to_vec())]);
    assert!(node.stop().unwrap().success());
}

/// A bound of file sizes (`ulimit -f`) is a full disk for the log and not the end of the process.
#[test]
fn a_file_that_may_not_grow_refuses_writes_and_reads_go_on() {
    let directory = directory();
    // Blocks of 512 or 1024 bytes, whichever the shell has: 1 or 2 MiB.
    let launch = Launch::new(directory.path()).unwrap().under("ulimit -f 2048");
    let mut node = launch.start().unwrap();
    let mut connection = Connection::open(&node.kafka(), LIMIT).unwrap();
    raw_kafka::create_topic(&mut connection, "t", 1).unwrap();
    let large = vec![b'v'; 900_000];
    let mut stored = 0;
    let refused = loop {
        let request = raw_kafka::produce("t", 0, 1, raw_kafka::batch(&[&large], None));
        let answer = raw_kafka::produced(connection.kafka(9, &request).unwrap()).unwrap();
        match answer.error_code {
            0 => stored += 1,
            code => break code,
        }
        assert!(stored < 4, "nothing bounds the file");
    };
    assert_eq!(refused, 56, "KAFKA_STORAGE_ERROR");
    assert!(node.lives());
    let values = raw_kafka::values(&mut connection, "t", 0, 0).unwrap();
    assert_eq!(values.len(), stored);
}
