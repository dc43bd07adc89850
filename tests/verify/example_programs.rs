//! RocketMQ's own example programs of 5.5.0, as they are. Most take the name server from `NAMESRV_ADDR`; those that have
//! 127.0.0.1:9876 built in reach the node by a socket that listens there meanwhile and hands everything on.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::program::Program;
use duolog_tests::stock::{Client, Driver, mqadmin, program, turn};
use duolog_tests::wait;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(180);
const BUILT_IN: &str = "127.0.0.1:9876";

/// Starts one of the programs.
fn start(node: &Node, name: &str) -> Program {
    let class = format!("org.apache.rocketmq.example.{name}");
    let mut command = program(Client::Rocketmq550.name(), &class);
    command.env("NAMESRV_ADDR", node.namesrv());
    Program::start(command).unwrap_or_else(|error| panic!("{name}: {error:#}"))
}

/// Runs one that ends by itself; how often what it printed has `word`.
fn run(node: &Node, name: &str, word: &str) -> usize {
    let told = start(node, name).stop().unwrap_or_else(|error| panic!("{name}: {error:#}"));
    count(&told, word)
}

fn count(told: &[Value], word: &str) -> usize {
    told.iter().map(|line| line.to_string().matches(word).count()).sum()
}

/// Waits until a running one has printed `word` so often, and ends it.
fn await_and_kill(running: Program, name: &str, word: &str, times: usize) {
    assert_eq!(await_at_least(running, name, word, times), times, "{name}: {word}");
}

/// Waits until a running one has printed `word` at least so often, and ends it; how often it has in the end.
fn await_at_least(mut running: Program, name: &str, word: &str, times: usize) -> usize {
    let waited = wait::until("what it prints", LIMIT, || {
        running.lives()?;
        let seen = count(&running.events(), word);
        ensure!(seen >= times, "{name}: {seen} times {word}");
        Ok(())
    });
    waited.unwrap_or_else(|error| panic!("{error:#}\n{}", running.log()));
    count(&running.kill().expect("it ends"), word)
}

/// All messages of a topic, by its queues' ends.
fn written(node: &Node, topic: &str) -> anyhow::Result<usize> {
    let text = mqadmin(&node.namesrv(), "topicStatus", &["-t", topic])?;
    // Broker, queue, first, end, time of the last.
    let rows = text.lines().filter(|line| line.starts_with("broker-a"));
    let ends = rows.map(|row| row.split_whitespace().nth(3).context("an end"));
    ends.map(|end| -> anyhow::Result<usize> { Ok(end?.parse()?) }).sum()
}

/// A stage with a node at its stock timings but for transactions.
fn stage() -> (Node, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let launch = launch
        .set("rocketmq.traceTopicEnable", true)
        .set("rocketmq.transactionTimeOut", 1_000)
        .set("rocketmq.transactionCheckInterval", 1_000);
    (launch.start().expect("a node"), folder)
}

#[test]
fn quickstart_order_broadcast_and_trace() {
    let _turn = turn();
    let (node, _folder) = stage();
    assert_eq!(run(&node, "quickstart.Producer", "SEND_OK"), 1_000);
    let group = start(&node, "quickstart.Consumer");
    await_and_kill(group, "quickstart.Consumer", "Receive New Messages", 1_000);
    let ordered = start(&node, "ordermessage.Consumer");
    // It puts some off and sees them again.
    await_at_least(ordered, "ordermessage.Consumer", "Receive New Messages", 1_000);
    let both = ["one", "other"].map(|_| start(&node, "broadcast.PushConsumer"));
    for member in both {
        await_and_kill(member, "broadcast.PushConsumer", "Receive New Messages", 1_000);
    }
    assert_eq!(run(&node, "ordermessage.Producer", "SEND_OK"), 100);
    assert_eq!(run(&node, "tracemessage.TraceProducer", "SEND_OK"), 128);
    let traced = start(&node, "tracemessage.TracePushConsumer");
    await_and_kill(traced, "tracemessage.TracePushConsumer", "Receive New Messages", 1_128);
    assert!(written(&node, "RMQ_SYS_TRACE_TOPIC").expect("a status") > 0);
    let simple = start(&node, "simple.PushConsumer");
    await_and_kill(simple, "simple.PushConsumer", "Receive New Messages", 1_128);
    let lite = start(&node, "simple.LitePullConsumerSubscribe");
    await_and_kill(lite, "simple.LitePullConsumerSubscribe", "MessageExt [", 1_128);
}

#[test]
fn filters_transactions_and_batches() {
    let _turn = turn();
    let (node, _folder) = stage();
    assert_eq!(run(&node, "filter.TagFilterProducer", "SEND_OK"), 60);
    let tags = start(&node, "filter.TagFilterConsumer");
    await_and_kill(tags, "filter.TagFilterConsumer", "Receive New Messages", 40);
    assert_eq!(run(&node, "filter.SqlFilterProducer", "SEND_OK"), 10);
    let sql = start(&node, "filter.SqlFilterConsumer");
    await_and_kill(sql, "filter.SqlFilterConsumer", "Receive New Messages", 3);
    // Ten messages about which the producer knows nothing until it is asked: every third one is committed then.
    let transactor = start(&node, "transaction.TransactionProducer");
    let mut driver = Driver::start(Client::Rocketmq550, &node.namesrv()).expect("a driver");
    wait::until("the committed ones", LIMIT, || {
        let committed = driver.call("read topic=TopicTest1234")?.len();
        ensure!(committed == 3, "{committed}");
        Ok(())
    })
    .expect("three of ten");
    await_and_kill(transactor, "transaction.TransactionProducer", "SEND_OK", 10);
    let batch = start(&node, "batch.SimpleBatchProducer");
    wait::until("a batch", LIMIT, || {
        let written = written(&node, "BatchTest")?;
        ensure!(written == 3, "{written}");
        Ok(())
    })
    .expect("three messages");
    batch.kill().expect("it ends");
    let large = start(&node, "batch.SplitBatchProducer");
    wait::until("many batches", LIMIT, || {
        let written = written(&node, "BatchTest")?;
        ensure!(written == 100_003, "{written}");
        Ok(())
    })
    .expect("a hundred thousand messages");
    large.kill().expect("it ends");
}

#[test]
fn messages_that_wait() {
    let _turn = turn();
    let (node, _folder) = stage();
    // `print` without an end of line: it is seen when the program has ended.
    assert_eq!(run(&node, "schedule.ScheduledMessageProducer", "SEND_OK"), 100);
    assert_eq!(run(&node, "schedule.TimerMessageProducer", "SEND_OK"), 10);
    let scheduled = start(&node, "schedule.ScheduledMessageConsumer");
    let timed = start(&node, "schedule.TimerMessageConsumer");
    await_and_kill(scheduled, "schedule.ScheduledMessageConsumer", "Receive message", 100);
    await_and_kill(timed, "schedule.TimerMessageConsumer", "Receive message", 10);
}

/// Listens at the address that programs have built in and hands what comes on to the node.
fn forward(node: &Node) {
    let listener = TcpListener::bind(BUILT_IN);
    let listener = listener.unwrap_or_else(|error| {
        panic!("{BUILT_IN}, which RocketMQ's examples have built in, cannot be had: {error}")
    });
    let namesrv = node.namesrv();
    // It ends with the process: nothing else of it wants the port.
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(&namesrv) else { continue };
            let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
                continue;
            };
            thread::spawn(move || pass(from_client, to_server));
            thread::spawn(move || pass(server, client));
        }
    });
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    // Either end may go at any time; then so does the other.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn requests_and_pulls_at_the_built_in_address() {
    let _turn = turn();
    let (node, _folder) = stage();
    forward(&node);
    assert_eq!(run(&node, "simple.OnewayProducer", "Exception"), 0);
    wait::until("what was sent one way", LIMIT, || {
        let written = written(&node, "TopicTest")?;
        ensure!(written == 100, "{written}");
        Ok(())
    })
    .expect("a hundred messages");
    let puller = start(&node, "simple.PullConsumer");
    wait::until("its positions", LIMIT, || {
        let arguments = ["-g", "please_rename_unique_group_name_5"];
        let text = mqadmin(&node.namesrv(), "consumerProgress", &arguments)?;
        ensure!(text.contains("TopicTest") && text.contains("Consume Diff Total: 0"), "{text}");
        Ok(())
    })
    .expect("it pulled all");
    puller.kill().expect("it ends");
    // Its first request makes the topic; those that nobody answers within three seconds fail.
    run(&node, "rpc.RequestProducer", "replyMessage");
    let responder = start(&node, "rpc.ResponseConsumer");
    wait::until("a reply", LIMIT, || {
        ensure!(run(&node, "rpc.RequestProducer", "replyMessage: Message") == 1, "no reply");
        Ok(())
    })
    .expect("a reply");
    assert!(count(&responder.kill().expect("it ends"), "reply to") > 0);
}
