//! The stock command line tools, each run as an operator's.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};

use super::{Client, Driver, interop};
use crate::hex::{hex, unhex};
use crate::mqadmin::process::Admins;

/// Kafka's command line tools of 4.3.1, by the names of their scripts.
const KAFKA_TOOLS: [(&str, &str); 34] = [
    ("kafka-acls", "org.apache.kafka.tools.AclCommand"),
    ("kafka-broker-api-versions", "org.apache.kafka.tools.BrokerApiVersionsCommand"),
    ("kafka-client-compatibility-test", "org.apache.kafka.tools.ClientCompatibilityTest"),
    ("kafka-client-metrics", "org.apache.kafka.tools.ClientMetricsCommand"),
    ("kafka-cluster", "org.apache.kafka.tools.ClusterTool"),
    ("kafka-configs", "kafka.admin.ConfigCommand"),
    ("kafka-console-consumer", "org.apache.kafka.tools.consumer.ConsoleConsumer"),
    ("kafka-console-producer", "org.apache.kafka.tools.ConsoleProducer"),
    ("kafka-console-share-consumer", "org.apache.kafka.tools.consumer.ConsoleShareConsumer"),
    ("kafka-consumer-groups", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"),
    ("kafka-consumer-perf-test", "org.apache.kafka.tools.ConsumerPerformance"),
    ("kafka-delegation-tokens", "org.apache.kafka.tools.DelegationTokenCommand"),
    ("kafka-delete-records", "org.apache.kafka.tools.DeleteRecordsCommand"),
    ("kafka-dump-log", "org.apache.kafka.tools.DumpLogSegments"),
    ("kafka-e2e-latency", "org.apache.kafka.tools.EndToEndLatency"),
    ("kafka-features", "org.apache.kafka.tools.FeatureCommand"),
    ("kafka-get-offsets", "org.apache.kafka.tools.GetOffsetShell"),
    ("kafka-groups", "org.apache.kafka.tools.GroupsCommand"),
    ("kafka-leader-election", "org.apache.kafka.tools.LeaderElectionCommand"),
    ("kafka-log-dirs", "org.apache.kafka.tools.LogDirsCommand"),
    ("kafka-metadata-quorum", "org.apache.kafka.tools.MetadataQuorumCommand"),
    ("kafka-producer-perf-test", "org.apache.kafka.tools.ProducerPerformance"),
    ("kafka-reassign-partitions", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"),
    ("kafka-share-consumer-perf-test", "org.apache.kafka.tools.ShareConsumerPerformance"),
    ("kafka-share-groups", "org.apache.kafka.tools.consumer.group.ShareGroupCommand"),
    ("kafka-storage", "kafka.tools.StorageTool"),
    ("kafka-streams-application-reset", "org.apache.kafka.tools.StreamsResetter"),
    ("kafka-streams-groups", "org.apache.kafka.tools.streams.StreamsGroupCommand"),
    ("kafka-topics", "org.apache.kafka.tools.TopicCommand"),
    ("kafka-transactional-message-copier", "org.apache.kafka.tools.TransactionalMessageCopier"),
    ("kafka-transactions", "org.apache.kafka.tools.TransactionsCommand"),
    ("kafka-verifiable-consumer", "org.apache.kafka.tools.VerifiableConsumer"),
    ("kafka-verifiable-producer", "org.apache.kafka.tools.VerifiableProducer"),
    ("kafka-verifiable-share-consumer", "org.apache.kafka.tools.VerifiableShareConsumer"),
];

/// As [`kafka_tool`], in the process of this driver, which has the tools on its class path (4.3.1's): exit code, and all
/// that was printed.
pub fn kafka_tool_in(
    driver: &mut Driver,
    name: &str,
    arguments: &[&str],
    input: &str,
) -> anyhow::Result<(i64, String)> {
    let class = kafka_tool_class(name)?;
    let words: String =
        arguments.iter().map(|argument| format!(" a={}", hex(argument.as_bytes()))).collect();
    let told = driver.call(&format!("tool class={class} in={}{words}", hex(input.as_bytes())))?;
    let told = told.first().context("an answer")?;
    let printed = unhex(told["printed"].as_str().context("what was printed")?)?;
    Ok((told["code"].as_i64().context("a code")?, printed))
}

fn kafka_tool_class(name: &str) -> anyhow::Result<&'static str> {
    let tool = KAFKA_TOOLS.iter().find(|(script, _)| *script == name);
    Ok(tool.with_context(|| format!("no tool {name}"))?.1)
}

/// Runs one of Kafka's command line tools, `input` as its standard input, and returns what it printed if it ended well.
/// All of a test program's runs share one process: the start of Java costs more than most of them.
pub fn kafka_tool(name: &str, arguments: &[&str], input: &str) -> anyhow::Result<String> {
    static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
    let start = || Driver::start(Client::Kafka431, "");
    let run = |driver: &mut Driver| kafka_tool_in(driver, name, arguments, input);
    let (code, printed) = shared(&DRIVER, start, run)?;
    ensure!(code == 0, "{name} ended with {code}:\n{printed}");
    Ok(printed)
}

/// Runs RocketMQ's admin tool of 5.5.0, `mqadmin(namesrv, "topicList", &[])`, and returns what it printed. It waits five
/// seconds for an answer, which may be too few on a busy machine: then it is run again, unless it writes messages.
/// All of a test program's runs share one process, too.
pub fn mqadmin(namesrv: &str, name: &str, arguments: &[&str]) -> anyhow::Result<String> {
    static ADMINS: Mutex<Option<Admins>> = Mutex::new(None);
    let command = [&[name, "-n", namesrv], arguments].concat();
    let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
    let attempts = if name == "sendMessage" { 1 } else { 3 };
    let mut printed = String::new();
    for _ in 0..attempts {
        let start = || Admins::start(namesrv, &interop().join("home"));
        printed = shared(&ADMINS, start, |admins| admins.run(&command, None))?;
        if !printed.contains("RemotingTimeoutException") {
            break;
        }
    }
    ensure!(!printed.contains("[exit "), "{name}:\n{printed}");
    Ok(printed)
}

/// Asks a process that is kept for all that ask; one that did not answer is ended and not asked again.
fn shared<D, A>(
    place: &Mutex<Option<D>>,
    start: impl FnOnce() -> anyhow::Result<D>,
    ask: impl FnOnce(&mut D) -> anyhow::Result<A>,
) -> anyhow::Result<A> {
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    let mut process = match place.take() {
        Some(process) => process,
        None => start()?,
    };
    let answer = ask(&mut process)?;
    *place = Some(process);
    Ok(answer)
}
