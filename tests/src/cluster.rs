//! The built `duolog` executable as a process of its own: free loopback ports, a data directory, a
//! log.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use kafka_protocol::messages::ApiVersionsRequest;
use rustix::process::{Pid, Signal, kill_process};

use crate::raw_client::Connection;
use crate::wait;

/// A cold start takes well below a second; a loaded machine may need far more.
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(120);
/// For one answer of a node that starts.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Below Linux's range for outgoing connections, so that no client takes a port between its choice
/// and its use.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const PORTS_EACH: u16 = 8;
/// GET_BROKER_CLUSTER_INFO to the name server, GET_BROKER_RUNTIME_INFO to the broker.
const CLUSTER_INFO: i32 = 106;
const RUNTIME_INFO: i32 = 28;

/// The executable under test: `$TESTED_DUOLOG`, or the workspace's own, built now if it is not fresh.
///
/// The build names the whole workspace, so that it has the features of `cargo test --workspace` and
/// reuses what that has compiled.
pub fn executable() -> &'static Path {
    static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();
    EXECUTABLE.get_or_init(|| build().expect("the duolog executable"))
}

fn build() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("TESTED_DUOLOG") {
        return Ok(path.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--workspace", "--bin", "duolog", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.output().context("cargo build")?;
    ensure!(output.status.success(), "cargo build: {}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout)?;
    for line in messages.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        if message["target"]["name"] == "duolog" && message["executable"].is_string() {
            return Ok(message["executable"].as_str().unwrap_or_default().into());
        }
    }
    bail!("cargo named no executable")
}

/// The ports of one node.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    pub kafka: u16,
    pub namesrv: u16,
    pub broker: u16,
    /// `broker - 2`: where clients with the VIP channel go.
    pub broker_vip: u16,
    pub http: u16,
}

impl Ports {
    /// Ports that nothing listens on now and that no other node of this process gets.
    pub fn reserve() -> anyhow::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let blocks = (PORTS.end - PORTS.start) / PORTS_EACH;
        let first = u16::try_from(std::process::id() % u32::from(blocks))?;
        for _ in 0..blocks {
            let block = (first + NEXT.fetch_add(1, Ordering::Relaxed) % blocks) % blocks;
            let base = PORTS.start + block * PORTS_EACH;
            let ports = Self {
                kafka: base,
                namesrv: base + 1,
                broker_vip: base + 2,
                http: base + 3,
                broker: base + 4,
            };
            if ports.all().iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()) {
                return Ok(ports);
            }
        }
        bail!("no free ports in {PORTS:?}")
    }

    fn all(&self) -> [u16; 5] {
        [self.kafka, self.namesrv, self.broker, self.broker_vip, self.http]
    }
}

/// How to start a node; the same launch starts it again over the same data.
#[derive(Clone, Debug)]
pub struct Launch {
    directory: PathBuf,
    ports: Ports,
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    flags: Vec<String>,
    /// Names of the log directories below `directory`.
    data: Vec<String>,
    /// What a shell does before it becomes the node.
    before: Option<String>,
}

impl Launch {
    /// A node with its data and log below `directory`, on free ports.
    pub fn new(directory: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            directory: directory.to_owned(),
            ports: Ports::reserve()?,
            settings: Vec::new(),
            environment: Vec::new(),
            flags: Vec::new(),
            data: vec!["data".to_owned()],
            before: None,
        })
    }

    /// Adds `--set key=value`.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// Has a shell do `command` in the process that becomes the node, such as `ulimit`.
    pub fn under(mut self, command: &str) -> Self {
        self.before = Some(command.to_owned());
        self
    }

    /// Adds an environment variable.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a flag of `duolog serve`, such as `--control`.
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Has the node keep its data in several log directories, by their names.
    pub fn data_in(mut self, names: &[&str]) -> Self {
        self.data = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    pub fn data_dir(&self) -> PathBuf {
        self.data_dirs().swap_remove(0)
    }

    pub fn data_dirs(&self) -> Vec<PathBuf> {
        self.data.iter().map(|name| self.directory.join(name)).collect()
    }

    /// The command line, for tests that expect the start to fail.
    pub fn command(&self) -> Command {
        let mut command = match &self.before {
            None => Command::new(executable()),
            Some(before) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(executable());
                shell
            }
        };
        let dirs: Vec<_> = self.data_dirs().iter().map(|dir| dir.display().to_string()).collect();
        command.arg("serve").arg("--data-dir").arg(dirs.join(","));
        let listeners = [
            ("listeners", format!("PLAINTEXT://127.0.0.1:{}", self.ports.kafka)),
            ("rocketmq.namesrvListenPort", self.ports.namesrv.to_string()),
            ("rocketmq.listenPort", self.ports.broker.to_string()),
            ("http.port", self.ports.http.to_string()),
        ];
        for (key, value) in listeners {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        for (key, value) in &self.settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        // The node reads settings from the environment, too.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DUOLOG_") {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(&self.flags).current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    /// Starts the node and waits until all its listeners answer.
    pub fn start(&self) -> anyhow::Result<Node> {
        let log = self.directory.join("duolog.log");
        let output = File::options().create(true).append(true).open(&log)?;
        let child = self.command().stdout(output.try_clone()?).stderr(output).spawn()?;
        let mut node = Node { child, ports: self.ports, log };
        let answered = wait::until("the node answers", START_LIMIT, || {
            // A process that ended answers no later either: this ends the wait.
            Ok(match node.child.try_wait()? {
                Some(status) => Err(anyhow!("the process ended with {status}")),
                None => Ok(node.answers()?),
            })
        });
        answered.and_then(|outcome| outcome).with_context(|| node.log())?;
        Ok(node)
    }
}

/// A running node. Dropping it kills the process; a failing test then shows the end of its log.
pub struct Node {
    child: Child,
    ports: Ports,
    log: PathBuf,
}

impl Node {
    /// Kafka's bootstrap address.
    pub fn kafka(&self) -> String {
        local(self.ports.kafka)
    }

    pub fn namesrv(&self) -> String {
        local(self.ports.namesrv)
    }

    /// The RocketMQ broker's address.
    pub fn broker(&self) -> String {
        local(self.ports.broker)
    }

    /// The HTTP listener's address: metrics, and with `--control` gates and events.
    pub fn http(&self) -> String {
        local(self.ports.http)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the process has written to its standard output and error so far.
    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// Whether the process still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// How the process ended, if it has.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    fn answers(&self) -> anyhow::Result<()> {
        let limit = ANSWER_LIMIT;
        Connection::open(&self.kafka(), limit)?.kafka(0, &ApiVersionsRequest::default())?;
        Connection::open(&self.namesrv(), limit)?.remoting(CLUSTER_INFO, &[], &[])?;
        Connection::open(&self.broker(), limit)?.remoting(RUNTIME_INFO, &[], &[])?;
        Ok(())
    }

    /// Stops the node as an operator does, by SIGTERM, and waits for its end.
    pub fn stop(mut self) -> anyhow::Result<ExitStatus> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).context("a process id")?;
        kill_process(pid, Signal::TERM)?;
        wait::until("the node stops", STOP_LIMIT, || {
            self.child.try_wait()?.context("still running")
        })
    }

    /// Ends the process at once, as kill -9 does.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already; then both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.len().saturating_sub(40);
            eprintln!("--- end of {}\n{}", self.log.display(), lines[tail..].join("\n"));
        }
    }
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
