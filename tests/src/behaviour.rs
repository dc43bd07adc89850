//! The behaviour suite: what each case of `tests/interop/java/suite` sees of a RocketMQ node, in words, against what it saw
//! of a real RocketMQ 5.5.0 (`tests/golden/rocketmq-behaviour`).

pub mod known;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::cluster::Launch;
use crate::stock::{self, Client};

/// For a whole run; each wait inside has a limit of its own.
const LIMIT: Duration = Duration::from_secs(3_000);

/// What both a real broker and a node are set to for the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings {
    /// Delays of seconds, and half messages that are asked about soon.
    Short,
    /// RocketMQ's own timings.
    Stock,
}

impl Settings {
    /// As the suite's `--settings` and the recorded file are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Stock => "stock",
        }
    }

    /// The broker's settings by RocketMQ's names.
    pub fn values(self) -> Vec<(&'static str, &'static str)> {
        let both = [("recallMessageEnable", "true"), ("traceTopicEnable", "true")];
        let short = [
            ("messageDelayLevel", "1s 2s 3s 4s 1s 1s 2s 2s 1s 1s 1s 1s 1s 1s 1s 1s 1s 2s"),
            ("transactionTimeOut", "1000"),
            ("transactionCheckInterval", "3000"),
            ("transactionCheckMax", "4"),
        ];
        let short = if self == Self::Short { &short[..] } else { &[] };
        both.iter().chain(short).copied().collect()
    }

    /// A node with these settings.
    pub fn apply(self, launch: Launch) -> Launch {
        let values = self.values().into_iter();
        values.fold(launch, |launch, (key, value)| launch.set(&format!("rocketmq.{key}"), value))
    }

    fn file(self) -> PathBuf {
        stock::workspace().join(format!("tests/golden/rocketmq-behaviour/{}.txt", self.name()))
    }
}

/// Case by case, the statements of its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts(BTreeMap<String, Vec<String>>);

impl Verdicts {
    /// Runs the suite against a node; `arguments` choose among its cases.
    pub fn of(namesrv: &str, settings: Settings, arguments: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = stock::program(Client::Rocketmq550.name(), "suite.Suite");
        // Where broadcasting consumers keep their positions.
        let offsets = format!("-Drocketmq.client.localOffsetStoreDir={}", folder.path().display());
        // Queues are looked at often, and one request that takes long takes no others with it.
        let options = format!(
            "-Xmx512m -Drocketmq.client.rebalance.waitInterval=3000 \
             -Dcom.rocketmq.remoting.client.closeSocketIfTimeout=false \
             -Dcom.rocketmq.remoting.client.connect.timeout=60000 {offsets}"
        );
        command.env("JDK_JAVA_OPTIONS", options);
        command.arg(namesrv).args(["--settings", settings.name()]).args(arguments);
        let output = stock::run(command, "", LIMIT)?;
        ensure!(output.status.success(), "{}: {}\n{}", output.status, output.stdout, output.stderr);
        let verdicts = Self::printed(&output.stdout)?;
        ensure!(!verdicts.0.is_empty(), "no case ran: {}", output.stderr);
        for (case, statements) in &verdicts.0 {
            let failed = statements.iter().find(|statement| statement.starts_with("FAILED"));
            if let Some(failed) = failed {
                bail!("{case}: {failed}\n{}", output.stderr);
            }
        }
        Ok(verdicts)
    }

    fn printed(lines: &str) -> anyhow::Result<Self> {
        let mut verdicts = BTreeMap::new();
        for line in lines.lines() {
            let (case, verdict) = line.split_once('\t').context("a case and its verdict")?;
            let statements = verdict.split('\t').map(str::to_owned).collect();
            let twice = verdicts.insert(case.to_owned(), statements);
            ensure!(twice.is_none(), "{case} is there twice");
        }
        Ok(Self(verdicts))
    }

    /// What a real broker with these settings was seen to do.
    pub fn recorded(settings: Settings) -> anyhow::Result<Self> {
        let file = settings.file();
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let mut verdicts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut case = "";
        for line in text.lines() {
            if let Some(statement) = line.strip_prefix("  ") {
                verdicts.entry(case.to_owned()).or_default().push(statement.to_owned());
            } else {
                case = line;
            }
        }
        Ok(Self(verdicts))
    }

    /// Writes these over the recorded ones; cases that did not run keep what is there.
    pub fn record(&self, settings: Settings) -> anyhow::Result<()> {
        let mut all =
            if settings.file().exists() { Self::recorded(settings)? } else { Self::default() };
        all.0.extend(self.0.clone());
        let mut text = String::new();
        for (case, statements) in &all.0 {
            writeln!(text, "{case}")?;
            for statement in statements {
                writeln!(text, "  {statement}")?;
            }
        }
        Ok(fs::write(settings.file(), text)?)
    }

    /// Whether a case's verdict has that statement.
    pub fn says(&self, case: &str, statement: &str) -> bool {
        self.0.get(case).is_some_and(|statements| statements.iter().any(|one| one == statement))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Where these differ from recorded ones otherwise than on purpose, and cases that only one of them has.
    pub fn differences(&self, recorded: &Self, wanted: Wanted) -> Vec<String> {
        let mut differences = Vec::new();
        for (case, statements) in &self.0 {
            match recorded.0.get(case) {
                None => differences.push(format!("{case}: not recorded")),
                Some(expected) => {
                    differences.extend(compare(case, &known::expected(case, expected), statements))
                }
            }
        }
        if wanted == Wanted::All {
            let missing = recorded.0.keys().filter(|case| !self.0.contains_key(*case));
            differences.extend(missing.map(|case| format!("{case}: did not run")));
        }
        differences
    }
}

/// Whether every recorded case must have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    All,
    Some,
}

fn compare(case: &str, expected: &[String], found: &[String]) -> Vec<String> {
    let mut differences = Vec::new();
    for place in 0..expected.len().max(found.len()) {
        let none = String::from("(nothing)");
        let expected = expected.get(place).unwrap_or(&none);
        let found = found.get(place).unwrap_or(&none);
        if expected != found {
            differences.push(format!("{case}:\n  RocketMQ: {expected}\n  Duolog:   {found}"));
        }
    }
    differences
}
