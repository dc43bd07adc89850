//! What `make demo` and `make bench` run, so that a broken script is seen.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use duolog_tests::cluster::executable;
use duolog_tests::stock::{interop, turn, workspace};

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .env("TESTED_DUOLOG", executable())
        .current_dir(workspace())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The demonstration with the executable under test: five records, each as both protocols see it.
#[test]
fn the_demonstration_shows_both_views_of_every_record() {
    interop();
    let _turn = turn();
    let output = run(&workspace().join("scripts/demo"), &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let has = |left: &str, right: &str| {
        let found = text.lines().any(|line| {
            line.trim_start().strip_prefix(left).is_some_and(|rest| rest.trim() == right)
        });
        assert!(found, "no line {left:?} beside {right:?} in:\n{text}");
    };
    has("seen by Kafka (kafka-clients 4.3.1)", "seen by RocketMQ (rocketmq-client 5.5.0)");
    for (partition, records) in [(0, 3), (1, 2)] {
        for offset in 0..records {
            has(
                &format!("partition {partition}, offset {offset}"),
                &format!("queueId {partition}, queueOffset {offset}"),
            );
        }
        has(
            &format!("kafka_readers at {records} of {records}, partition {partition}"),
            &format!("rocketmq_readers at {records} of {records}, queueId {partition}"),
        );
    }
    for (key, value, tag) in [
        ("order-1", "two books", "paid"),
        ("order-2", "a lamp", "open"),
        ("order-1", "shipped", "paid"),
        ("order-3", "a chair", "open"),
        ("order-4", "tea", "paid"),
    ] {
        has(&format!("value      {value}"), &format!("body        {value}"));
        has(&format!("key        {key}"), &format!("KEYS        {key}"));
        has(&format!("header     TAGS={tag}"), &format!("TAGS        {tag}"));
    }
    for city in ["Zürich", "東京"] {
        has(&format!("header     city={city}"), &format!("property    city={city}"));
    }
    for hint in ["serve", "explain mapping", "make test", "make bench"] {
        assert!(text.lines().any(|line| line.trim().ends_with(hint)), "no {hint} in:\n{text}");
    }
}

#[test]
fn the_benchmark_names_its_workloads_and_options() {
    let bench = workspace().join("scripts/bench");
    let list = run(&bench, &["--list"]);
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    for words in [["kafka produce", "100 b"], ["kafka consume", "1 kib"], ["rocketmq send", "64"]] {
        let found = text.lines().any(|line| {
            let line = line.to_lowercase();
            words.iter().all(|word| line.contains(word))
        });
        assert!(found, "no workload of {words:?} in:\n{text}");
    }
    for target in ["demo", "bench"] {
        let told = run(Path::new("make"), &["--dry-run", target]);
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.status.success() && text.contains(&format!("scripts/{target}")), "{text}");
    }
}
