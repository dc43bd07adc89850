//! Kafka Connect from a file through Duolog to a file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node, Ports};
use duolog_tests::hex::hex;
use duolog_tests::program::Program;
use duolog_tests::stock::{Client, Driver, program, turn};
use duolog_tests::wait;

const LIMIT: Duration = Duration::from_secs(300);
const LINES_EACH: usize = 400;

/// A worker with a source that reads one file and a sink that writes another.
struct Files {
    folder: PathBuf,
    lines: usize,
}

impl Files {
    fn new(folder: &Path, node: &Node) -> anyhow::Result<Self> {
        let files = Self { folder: folder.to_owned(), lines: 0 };
        let rest = Ports::reserve()?.http;
        let worker = [
            format!("bootstrap.servers={}", node.kafka()),
            "key.converter=org.apache.kafka.connect.storage.StringConverter".to_owned(),
            "value.converter=org.apache.kafka.connect.storage.StringConverter".to_owned(),
            format!("offset.storage.file.filename={}", files.path("offsets")),
            "offset.flush.interval.ms=500".to_owned(),
            format!("listeners=http://127.0.0.1:{rest}"),
            "plugin.discovery=service_load".to_owned(),
            // Connect turns it off; with it a batch that a killed node wrote is not written twice.
            "producer.enable.idempotence=true".to_owned(),
        ];
        fs::write(files.path("worker.properties"), worker.join("\n"))?;
        let connector = |name: &str, class: &str, topic: &str| {
            let path = files.path(name);
            let class = format!("org.apache.kafka.connect.file.{class}");
            format!("name={name}\nconnector.class={class}\ntasks.max=1\nfile={path}\n{topic}\n")
        };
        let source = connector("source", "FileStreamSourceConnector", "topic=file-lines");
        let sink = connector("sink", "FileStreamSinkConnector", "topics=file-lines");
        fs::write(files.path("source.properties"), source)?;
        fs::write(files.path("sink.properties"), sink)?;
        Ok(files)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn connect(&self) -> anyhow::Result<Program> {
        let mut command =
            program("connect-4.3.1", "org.apache.kafka.connect.cli.ConnectStandalone");
        let names = ["worker.properties", "source.properties", "sink.properties"];
        command.args(names.map(|name| self.path(name)));
        Program::start(command)
    }

    /// Appends lines to the source's file, of ASCII only: Connect's source counts characters and, when it starts again,
    /// skips so many bytes.
    fn write(&mut self) -> anyhow::Result<()> {
        let lines: String = (self.lines..self.lines + LINES_EACH)
            .map(|number| format!("line {number} of some length\n"))
            .collect();
        self.lines += LINES_EACH;
        let mut file = File::options().create(true).append(true).open(self.path("source"))?;
        Ok(file.write_all(lines.as_bytes())?)
    }

    /// Waits until the sink's file has so many of the source's lines.
    fn await_lines(&self, connect: &mut Program, count: usize) -> anyhow::Result<()> {
        wait::until("the lines arrive", LIMIT, || {
            connect.lives()?;
            let text = fs::read_to_string(self.path("sink"))?;
            let found = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let found = found.collect::<BTreeSet<_>>().len();
            ensure!(found >= count, "{found} of {count} lines");
            Ok(())
        })
        .with_context(|| connect.log())
    }

    /// The sink has each line in the source's order. One that it had not yet committed when the node was killed may be
    /// there again (a file takes no part in a transaction), but nothing is behind what has not been read.
    fn check(&self) -> anyhow::Result<()> {
        let sink = fs::read_to_string(self.path("sink"))?;
        let source = fs::read_to_string(self.path("source"))?;
        let mut rest = source.lines();
        let mut seen = BTreeSet::new();
        for line in sink.lines() {
            if !seen.contains(line) {
                ensure!(rest.next() == Some(line), "{line} comes out of order");
                seen.insert(line);
            }
        }
        ensure!(rest.next().is_none(), "{} lines of {}", seen.len(), self.lines);
        Ok(())
    }
}

#[test]
fn connect_carries_a_file_through_restarts_of_itself_and_of_the_node() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch =
        Launch::new(folder.path()).expect("ports").set("group.initial.rebalance.delay.ms", 0);
    let node = launch.start().expect("a node");
    let mut files = Files::new(folder.path(), &node).expect("its settings");
    files.write().expect("lines");
    let mut connect = files.connect().expect("a worker");
    files.await_lines(&mut connect, LINES_EACH).expect("the first lines");
    // The node goes while lines are on their way.
    files.write().expect("lines");
    files.await_lines(&mut connect, LINES_EACH + 1).expect("some more");
    files.write().expect("lines");
    node.kill().expect("kill -9");
    let node = launch.start().expect("a node");
    files.await_lines(&mut connect, files.lines).expect("all lines so far");
    // The worker goes, and comes back where it was.
    connect.terminate().expect("it stops");
    files.write().expect("lines");
    let mut connect = files.connect().expect("a worker");
    files.await_lines(&mut connect, files.lines).expect("all lines so far");
    // Both go.
    connect.terminate().expect("it stops");
    assert!(node.stop().expect("the node stops").success());
    files.write().expect("lines");
    let node = launch.start().expect("a node");
    let mut connect = files.connect().expect("a worker");
    files.await_lines(&mut connect, files.lines).expect("all lines");
    files.check().with_context(|| connect.log()).expect("the sink's file");
    connect.terminate().expect("it stops");
    // The topic has each line once: no restart had the source send one again.
    let mut driver = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    let records = driver.call("read topic=file-lines").expect("the topic");
    let values: Vec<_> = records.iter().filter_map(|record| record["value"].as_str()).collect();
    let lines = fs::read_to_string(files.path("source")).expect("a file");
    let expected: Vec<_> = lines.lines().map(|line| hex(line.as_bytes())).collect();
    assert!(values == expected, "{} records of {} lines", values.len(), expected.len());
}
