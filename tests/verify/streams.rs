//! Kafka Streams counts words exactly once while the application and the node are killed in turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::hex::hex;
use duolog_tests::program::Program;
use duolog_tests::raw_client::Connection;
use duolog_tests::seed::Seeded;
use duolog_tests::show;
use duolog_tests::stock::{Client, Driver, program, turn};
use duolog_tests::topics::{COMMITTED, create_kafka_topic, end_offset};
use duolog_tests::wait;

const LIMIT: Duration = Duration::from_secs(300);
const PARTITIONS: i32 = 4;
const KILLS_OF_EACH: usize = 10;
const LINES_EACH: usize = 100;
const WORDS_EACH: usize = 5;
/// Counts that must have been committed between two kills.
const PROGRESS: i64 = 25;

struct Stage {
    launch: Launch,
    node: Node,
    state: tempfile::TempDir,
    application: Program,
    writer: Driver,
    random: Seeded,
    /// What must come out.
    counts: BTreeMap<String, usize>,
    lines: usize,
}

fn start(node: &Node, state: &Path) -> anyhow::Result<Program> {
    let mut command = program("streams-4.3.1", "WordCount");
    command.arg(node.kafka()).arg(state).args(["lines", "counts"]);
    Program::start(command)
}

impl Stage {
    fn open(folder: &Path) -> anyhow::Result<Self> {
        let launch = Launch::new(folder)?.set("group.initial.rebalance.delay.ms", 0);
        let node = launch.start()?;
        for topic in ["lines", "counts"] {
            create_kafka_topic(&node.kafka(), topic, PARTITIONS)?;
        }
        let state = tempfile::tempdir()?;
        let application = start(&node, state.path())?;
        let mut writer = Driver::start(Client::Kafka431, &node.kafka())?;
        writer.call("producer id=w c.linger.ms=0 c.batch.size=200")?;
        let (random, counts) = (Seeded::new(1), BTreeMap::new());
        Ok(Self { launch, node, state, application, writer, random, counts, lines: 0 })
    }

    /// Gives lines to the producer, which is idempotent: it sends again what a killed node did not answer.
    fn write(&mut self) -> anyhow::Result<()> {
        for _ in 0..LINES_EACH {
            let words: Vec<String> =
                (0..WORDS_EACH).map(|_| format!("word{}", self.random.within(0..40))).collect();
            let line = hex(words.join(" ").as_bytes());
            for word in words {
                *self.counts.entry(word).or_default() += 1;
            }
            let partition = self.lines % usize::try_from(PARTITIONS)?;
            self.lines += 1;
            self.writer
                .tell(&format!("send id=w topic=lines partition={partition} value={line}"))?;
        }
        Ok(())
    }

    /// Waits until the application has committed some more counts since they ended at `before`.
    fn await_progress(&mut self, before: i64) -> anyhow::Result<()> {
        let Self { application, node, .. } = self;
        wait::until("some words are counted", LIMIT, || {
            application.lives()?;
            let now = committed(node)?;
            ensure!(now >= before + PROGRESS, "{now} counts, {before} before");
            Ok(())
        })
        .with_context(|| application.log())
    }

    fn kill_application(mut self) -> anyhow::Result<Self> {
        self.application.kill()?;
        self.application = start(&self.node, self.state.path())?;
        Ok(self)
    }

    fn kill_node(mut self) -> anyhow::Result<Self> {
        self.node.kill()?;
        self.node = self.launch.start()?;
        Ok(self)
    }

    /// Every word's counts are 1, 2, 3 … without a gap or a repeat.
    fn judge(&mut self) -> anyhow::Result<()> {
        let answers = self.writer.call("flush id=w")?;
        ensure!(answers.len() == self.lines, "{} answers", answers.len());
        ensure!(answers.iter().all(|answer| answer["offset"].is_i64()), "a line was refused");
        let words = self.lines * WORDS_EACH;
        let lines = wait::until("every word is counted", LIMIT, || {
            self.application.lives()?;
            let read = "read topic=counts c.isolation.level=read_committed";
            let lines = self.writer.call(read)?;
            ensure!(lines.len() >= words, "{} of {words}", lines.len());
            Ok(lines)
        })?;
        let mut told: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for line in &lines {
            let text = |name: &str| line[name].as_str().context("a text");
            told.entry(text("key")?).or_default().push(text("value")?.to_owned());
        }
        ensure!(told.len() == self.counts.len(), "{} words", told.len());
        for (word, count) in &self.counts {
            let expected: Vec<String> =
                (1..=*count).map(|number| hex(number.to_string().as_bytes())).collect();
            let found = told.get(hex(word.as_bytes()).as_str());
            ensure!(found == Some(&expected), "{word}: {found:?} instead of {expected:?}");
        }
        Ok(())
    }
}

/// Where the counts end for readers of what is committed, summed over the partitions.
fn committed(node: &Node) -> anyhow::Result<i64> {
    let mut connection = Connection::open(&node.kafka(), LIMIT)?;
    (0..PARTITIONS)
        .map(|partition| end_offset(&mut connection, "counts", partition, COMMITTED))
        .sum()
}

#[test]
fn streams_count_every_word_once_though_application_and_node_are_killed_ten_times() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = Stage::open(folder.path()).expect("a stage");
    for round in 0..2 * KILLS_OF_EACH {
        let before = committed(&stage.node).expect("the end");
        stage.write().expect("lines");
        stage.await_progress(before).unwrap_or_else(|error| panic!("round {round}: {error:#}"));
        let kill = if round % 2 == 0 { Stage::kill_application } else { Stage::kill_node };
        stage = kill(stage).expect("it starts again");
    }
    stage.judge().expect("exact counts");
    show(&format!("{} lines, {} words", stage.lines, stage.lines * WORDS_EACH)).expect("shown");
    stage.application.stop().expect("the application ends");
}
