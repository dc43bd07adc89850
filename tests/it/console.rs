//! What a node says on its console: each thing once, in words.

use std::process::Command;
use std::time::Duration;

use duolog_tests::cluster::{Launch, executable};
use duolog_tests::raw_client::Connection;
use duolog_tests::wait;

const LIMIT: Duration = Duration::from_secs(120);
const POP_LITE_MESSAGE: i32 = 200_070;
const LITE_SUBSCRIPTION_CTL: i32 = 200_071;

/// How many lines hold all of `words`.
fn lines(log: &str, words: &[&str]) -> usize {
    log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
}

#[test]
fn what_a_stock_client_hides_is_said_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    for _ in 0..2 {
        // As a client does that comes again on a new connection.
        let mut client = Connection::open(&node.broker(), LIMIT).expect("connected");
        let answer = client.remoting(POP_LITE_MESSAGE, &[("consumerGroup", "popping")], b"");
        let answer = answer.expect("an answer");
        assert_eq!(answer.code().expect("a code"), 3);
        assert_eq!(answer.remark(), " request type 200070 not supported");
    }
    let mut client = Connection::open(&node.broker(), LIMIT).expect("connected");
    client.remoting(LITE_SUBSCRIPTION_CTL, &[("consumerGroup", "g")], b"").expect("an answer");
    // The line is written before the answer.
    let log = node.log();
    assert_eq!(lines(&log, &["WARN", "POP_LITE_MESSAGE is not supported", "popping"]), 1, "{log}");
    assert_eq!(lines(&log, &["WARN", "LITE_SUBSCRIPTION_CTL is not supported"]), 1, "{log}");
    assert_eq!(lines(&log, &["WARN"]), 2, "{log}");
}

#[test]
fn a_client_of_another_protocol_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    for (address, bytes) in [
        (node.kafka(), b"GET / HTTP/1.1\r\n\r\n".as_slice()),
        (node.kafka(), b"GET / HTTP/1.1\r\n\r\n"),
        (node.namesrv(), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    ] {
        let mut client = Connection::open(&address, LIMIT).expect("connected");
        client.send(bytes).expect("sent");
        assert!(client.closed_by_peer().expect("an end"), "{address}");
    }
    let count = |words: &[&str]| lines(&node.log(), words);
    wait::until("both are said", LIMIT, || {
        let said = [count(&["Kafka", "speaks HTTP"]), count(&["RocketMQ", "speaks TLS"])];
        (said == [1, 1]).then_some(()).ok_or_else(|| anyhow::anyhow!("{said:?}"))
    })
    .expect("one line each");
}

#[test]
fn an_error_at_start_is_said_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("some.toml");
    std::fs::write(&file, "num.partitions = = 3\n").expect("written");
    let [missing, file] = [folder.path().join("missing.toml"), file]
        .map(|path| path.to_str().expect("text").to_owned());
    for (arguments, filter, once) in [
        (["--config", missing.as_str()], "info", "No such file"),
        (["--config", file.as_str()], "info", "num.partitions = = 3"),
        (["--data-dir", file.as_str()], "info", "os error"),
        (["--data-dir", "unused"], "notalevel,,=[", "DUOLOG_LOG"),
    ] {
        let mut command = Command::new(executable());
        command.arg("serve").args(arguments).env("DUOLOG_LOG", filter).current_dir(&folder);
        let free = ["rocketmq.listenPort=0", "rocketmq.namesrvListenPort=0", "http.port=0"];
        for setting in free.into_iter().chain(["listeners=PLAINTEXT://127.0.0.1:0"]) {
            command.args(["--set", setting]);
        }
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert_eq!(text.matches(once).count(), 1, "{arguments:?}: {text}");
    }
}
