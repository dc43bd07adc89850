//! The stock clients and command line tools.
//!
//! `scripts/setup` provides them below `target/interop`, those of `make verify` if asked to. A [`Driver`] runs one client version under
//! command; the commands are documented in the drivers themselves (`tests/interop`).

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::wait;

mod tools;

pub use tools::{kafka_tool, kafka_tool_in, mqadmin};

/// For one command of a driver, however slow the machine.
const CALL_LIMIT: Duration = Duration::from_secs(180);
/// RocketMQ clients before 5.0 reach into NIO buffers, which JDK 17 allows only by name.
const OPEN_NIO: &str = "--add-opens=java.base/java.nio=ALL-UNNAMED";

/// A stock client library in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    Kafka431,
    Kafka282,
    Librdkafka,
    Kafka392,
    Kafka211,
    KafkaPython,
    Aiokafka,
    FranzGo,
    Sarama,
    KafkaGo,
    Kafkajs,
    Rocketmq550,
    Rocketmq498,
    Rocketmq440,
}

impl Client {
    pub const KAFKA: [Self; 3] = [Self::Kafka431, Self::Kafka282, Self::Librdkafka];
    /// Further clients of Kafka: other versions and other languages.
    pub const FURTHER: [Self; 8] = [
        Self::Kafka392,
        Self::Kafka211,
        Self::KafkaPython,
        Self::Aiokafka,
        Self::FranzGo,
        Self::Sarama,
        Self::KafkaGo,
        Self::Kafkajs,
    ];
    pub const ROCKETMQ: [Self; 3] = [Self::Rocketmq550, Self::Rocketmq498, Self::Rocketmq440];

    /// Name and version, as the folder below `target/interop` is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kafka431 => "kafka-4.3.1",
            Self::Kafka282 => "kafka-2.8.2",
            Self::Librdkafka => "librdkafka",
            Self::Kafka392 => "kafka-3.9.2",
            Self::Kafka211 => "kafka-2.1.1",
            Self::KafkaPython => "kafka-python",
            Self::Aiokafka => "aiokafka",
            Self::FranzGo => "franz-go",
            Self::Sarama => "sarama",
            Self::KafkaGo => "kafka-go",
            Self::Kafkajs => "kafkajs",
            Self::Rocketmq550 => "rocketmq-5.5.0",
            Self::Rocketmq498 => "rocketmq-4.9.8",
            Self::Rocketmq440 => "rocketmq-4.4.0",
        }
    }

    pub fn speaks_kafka(self) -> bool {
        !Self::ROCKETMQ.contains(&self)
    }

    /// What its producer can compress with.
    pub fn compressions(self) -> &'static [&'static str] {
        match self {
            Self::Rocketmq550 | Self::Rocketmq498 => &["none", "zlib", "lz4", "zstd"],
            Self::Rocketmq440 => &["none", "zlib"],
            _ => &["none", "gzip", "snappy", "lz4", "zstd"],
        }
    }

    /// Whether it has a transactional producer.
    pub fn has_transactions(self) -> bool {
        self.speaks_kafka() && self != Self::KafkaGo
    }

    /// Whether its producer takes a header without a value.
    pub fn writes_null_headers(self) -> bool {
        !matches!(self, Self::KafkaPython | Self::Kafkajs)
    }

    /// Whether headers are a list to it, and not a map from names to lists of values.
    pub fn orders_headers(self) -> bool {
        self != Self::Kafkajs
    }

    /// Whether its consumer tells what is empty from what is absent.
    pub fn tells_empty_from_absent(self) -> bool {
        self != Self::KafkaGo
    }

    /// Whether its consumer tells who set a timestamp.
    pub fn tells_timestamp_type(self) -> bool {
        !matches!(self, Self::Sarama | Self::KafkaGo | Self::Kafkajs)
    }

    /// Whether only `scripts/setup --verify` brings it.
    fn only_verified(self) -> bool {
        Self::FURTHER.contains(&self) && !matches!(self, Self::KafkaPython | Self::Aiokafka)
    }

    fn command(self) -> Command {
        if self.only_verified() {
            verified();
        }
        let go = |program: &str| Command::new(interop().join("go").join(program));
        match self {
            Self::Librdkafka => python("driver.py"),
            Self::KafkaPython => python("kafka_python.py"),
            Self::Aiokafka => python("aio.py"),
            Self::FranzGo => go("franzgo"),
            Self::Sarama => go("sarama"),
            Self::KafkaGo => go("kafkago"),
            Self::Kafkajs => {
                let mut command = Command::new("node");
                command
                    .arg(workspace().join("tests/interop/node/driver.js"))
                    .env("MODULES", interop().join("node/node_modules"));
                command
            }
            Self::Kafka431 | Self::Kafka282 | Self::Kafka392 | Self::Kafka211 => {
                java(self.name(), "KafkaDriver")
            }
            Self::Rocketmq550 | Self::Rocketmq498 | Self::Rocketmq440 => {
                java(self.name(), "RocketmqDriver")
            }
        }
    }
}

fn python(driver: &str) -> Command {
    let mut command = Command::new(interop().join("venv/bin/python"));
    command.arg(workspace().join("tests/interop/python").join(driver));
    command
}

/// `target/interop` of this workspace, completed by `scripts/setup` before its first use.
pub fn interop() -> &'static Path {
    static INTEROP: OnceLock<PathBuf> = OnceLock::new();
    INTEROP.get_or_init(|| {
        setup(&[]);
        let interop = workspace().join("target/interop");
        // What RocketMQ clients write to the user's home: logs.
        fs::create_dir_all(interop.join("home")).expect("a folder below target");
        interop
    })
}

/// Completes what [`interop`] holds by what only `make verify` needs.
pub fn verified() {
    static VERIFIED: OnceLock<()> = OnceLock::new();
    VERIFIED.get_or_init(|| setup(&["--verify"]));
}

fn setup(arguments: &[&str]) {
    let mut setup = Command::new(workspace().join("scripts/setup"));
    let done = setup.args(arguments).stdin(Stdio::null()).status().expect("scripts/setup runs");
    assert!(done.success(), "scripts/setup: {done}");
}

/// Taken by every test that runs stock clients, for its whole length: several JVMs of several
/// tests at once would wait for each other until deadlines pass.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace root")
}

/// A Java program of one of the folders below `target/interop`, its jars on the class path.
pub fn program(version: &str, main_class: &str) -> Command {
    if VERIFIED_PROGRAMS.contains(&version) {
        verified();
    }
    java(version, main_class)
}

/// Folders that only `scripts/setup --verify` brings, beside those of [`Client`]s.
const VERIFIED_PROGRAMS: [&str; 2] = ["streams-4.3.1", "connect-4.3.1"];

/// `java` with the class path of that client version, quick to start and small.
pub(crate) fn java(version: &str, main_class: &str) -> Command {
    let folder = interop().join(version);
    let jars = fs::read_to_string(folder.join("classpath.txt")).expect("a class path");
    let mut command = Command::new("java");
    command
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms32m", "-Xmx256m", OPEN_NIO])
        .arg(format!("-Duser.home={}", interop().join("home").display()))
        .arg(format!("-Drocketmq.home.dir={}", interop().join("home").display()))
        .arg(format!(
            "-Dlog4j2.configurationFile={}",
            workspace().join("tests/interop/log4j2.xml").display()
        ))
        .arg("-cp")
        .arg(format!("{}:{}", folder.join("classes").display(), jars.trim()))
        .arg(main_class);
    command
}

/// A running driver. Commands are answered one after another; events of group members come at any
/// time.
pub struct Driver {
    client: Client,
    child: Child,
    commands: ChildStdin,
    answers: Receiver<Value>,
    events: Arc<Mutex<Vec<Value>>>,
    stderr: PathBuf,
    _stderr_folder: tempfile::TempDir,
}

impl Driver {
    /// Starts the client's driver against a bootstrap server, or name server.
    pub fn start(client: Client, address: &str) -> anyhow::Result<Self> {
        Self::start_with(client, address, "")
    }

    /// As [`Self::start`], with further options of Java's.
    pub fn start_with(client: Client, address: &str, java: &str) -> anyhow::Result<Self> {
        Self::spawn(client.command(), client, address, java)
    }

    /// Starts a program that obeys like a driver, as the client whose jars it uses.
    pub(crate) fn spawn(
        mut command: Command,
        client: Client,
        address: &str,
        java: &str,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let stderr = folder.path().join("stderr");
        let mut child = command
            .env("JDK_JAVA_OPTIONS", java)
            .arg(address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr)?)
            .spawn()
            .with_context(|| format!("the driver of {}", client.name()))?;
        let commands = child.stdin.take().context("piped")?;
        let output = BufReader::new(child.stdout.take().context("piped")?);
        let events = Arc::default();
        let answers = sort_lines(output, Arc::clone(&events));
        Ok(Self { client, child, commands, answers, events, stderr, _stderr_folder: folder })
    }

    pub fn client(&self) -> Client {
        self.client
    }

    /// Gives a command that has no answer (`send`).
    pub fn tell(&mut self, command: &str) -> anyhow::Result<()> {
        writeln!(self.commands, "{command}")
            .with_context(|| format!("{}: {}", self.client.name(), self.stderr_tail()))
    }

    /// Gives a command and waits for the lines of its answer.
    pub fn call(&mut self, command: &str) -> anyhow::Result<Vec<Value>> {
        self.tell(command)?;
        self.answer(command.split(' ').next().unwrap_or_default())
    }

    /// The lines of the answer to a command that [`Self::tell`] gave.
    pub fn answer(&mut self, verb: &str) -> anyhow::Result<Vec<Value>> {
        let place = format!("{}: {verb}", self.client.name());
        let deadline = Instant::now() + CALL_LIMIT;
        let mut lines = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.answers.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{place}: no answer within {CALL_LIMIT:?}: {}", self.stderr_tail())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{place}: the driver ended: {}", self.stderr_tail())
                }
            };
            if let Some(error) = line["error"].as_str() {
                bail!("{place}: {error}");
            }
            if line["done"] == true {
                return Ok(lines);
            }
            lines.push(line);
        }
    }

    /// The events so far, oldest first.
    pub fn events(&self) -> MutexGuard<'_, Vec<Value>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the member of a group is assigned now, as `topic-partition`, sorted as text.
    pub fn assignment(&mut self, member: &str) -> anyhow::Result<Vec<String>> {
        let lines = self.call(&format!("assignment name={member}"))?;
        let partitions = lines.first().and_then(|line| line["partitions"].as_array());
        let names = partitions.context("an assignment")?.iter();
        let mut names: Vec<String> =
            names.map(|name| name.as_str().unwrap_or_default().to_owned()).collect();
        names.sort();
        Ok(names)
    }

    fn stderr_tail(&self) -> String {
        let text = fs::read(&self.stderr).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(2000)..]).into_owned()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended already; then both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads JSON lines in a thread until the output ends: events to the list, the rest to the
/// receiver.
fn sort_lines(
    output: impl BufRead + Send + 'static,
    events: Arc<Mutex<Vec<Value>>>,
) -> Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line)
                .unwrap_or_else(|error| serde_json::json!({"error": format!("{error}: {line}")}));
            if line.get("event").is_some() {
                events.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            } else if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What a tool left behind.
#[derive(Debug)]
pub struct ToolOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl ToolOutput {
    /// The standard output of a run that ended well.
    pub fn success(self) -> anyhow::Result<String> {
        ensure!(self.status.success(), "{}: {}\n{}", self.status, self.stdout, self.stderr);
        Ok(self.stdout)
    }
}

/// Runs a command to its end, at most for `limit`.
pub fn run(mut command: Command, input: &str, limit: Duration) -> anyhow::Result<ToolOutput> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let stdout = collect(child.stdout.take().context("piped")?);
    let stderr = collect(child.stderr.take().context("piped")?);
    // A tool that ends without reading its input is no failure of the run.
    let _ = child.stdin.take().context("piped")?.write_all(input.as_bytes());
    let status =
        wait::until("the command ends", limit, || child.try_wait()?.context("still running"));
    if status.is_err() {
        child.kill()?;
        child.wait()?;
    }
    let stdout = stdout.join().unwrap_or_default();
    let stderr = stderr.join().unwrap_or_default();
    let status = status.with_context(|| format!("{command:?}\n{stdout}\n{stderr}"))?;
    Ok(ToolOutput { status, stdout, stderr })
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a broken pipe is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
