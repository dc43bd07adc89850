//! Kafka's command line tools by one script (`tests/interop/kafka-tools.txt`), on Duolog and on a real Kafka.
//!
//! All tools run in one process, that of a [`Driver`], which also holds the clients that they look at. What they printed is
//! masked ([`mask`]) and held against the golden files, which a real Kafka's answers made; what differs on purpose stands in
//! `tests/interop/kafka-tools-differences.txt` with its reason ([`differences`]).

pub mod differences;
pub mod mask;
pub mod script;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use regex::Regex;
use tempfile::TempDir;

use self::mask::Mask;
use self::script::{Action, Section};
use crate::stock::{Client, Driver, kafka_tool_in, workspace};
use crate::wait;

/// For what a tool shows only after a while.
const LIMIT: Duration = Duration::from_secs(120);
/// What a real Kafka's tools printed, a file for each section.
const GOLDEN: &str = "tests/golden/kafka-tools";
/// What another node is started with, so that both have the same to tell.
pub const SETTINGS: [(&str, &str); 3] = [
    ("group.initial.rebalance.delay.ms", "0"),
    ("offsets.topic.num.partitions", "4"),
    ("transaction.state.log.num.partitions", "4"),
];

/// What the tools printed, by section.
pub type Told = BTreeMap<String, String>;

/// The node that the tools are run against.
struct Stage {
    driver: Driver,
    names: BTreeMap<String, String>,
    files: TempDir,
    mask: Mask,
}

/// Runs these sections against the node at that address with its data in that folder.
pub fn run(address: &str, data: &Path, sections: &[Section]) -> anyhow::Result<Told> {
    let files = tempfile::tempdir()?;
    let mut stage = Stage {
        driver: Driver::start(Client::Kafka431, address)?,
        names: BTreeMap::from([
            ("B".to_owned(), format!("--bootstrap-server {address}")),
            ("A".to_owned(), address.to_owned()),
            ("D".to_owned(), data.display().to_string()),
        ]),
        mask: Mask::new(address, data, files.path())?,
        files,
    };
    let mut told = Told::new();
    for section in sections {
        let text = stage.section(section).with_context(|| section.name.clone())?;
        told.insert(section.name.clone(), text);
    }
    Ok(told)
}

impl Stage {
    fn section(&mut self, section: &Section) -> anyhow::Result<String> {
        let mut text = String::new();
        for step in &section.steps {
            match &step.action {
                Action::File { name, content } => {
                    let path = self.files.path().join(name);
                    fs::write(&path, self.filled(content).replace("\\n", "\n"))?;
                    self.names.insert(name.clone(), path.display().to_string());
                }
                Action::Client(command) => {
                    let command = self.filled(command);
                    if command.starts_with("send ") {
                        self.driver.tell(&command)?;
                    } else {
                        self.driver.call(&command).with_context(|| step.text.clone())?;
                    }
                }
                Action::Tool { words, input, until } => {
                    let words: Vec<String> = words.iter().map(|word| self.filled(word)).collect();
                    let words: Vec<&str> = words.iter().flat_map(|word| bootstrap(word)).collect();
                    let (code, printed) = self
                        .tool(&words, &self.filled(input), until.as_ref())
                        .with_context(|| step.text.clone())?;
                    for (name, expression) in &step.takes {
                        let found = expression.captures(&printed).and_then(|found| found.get(1));
                        let found =
                            found.with_context(|| format!("no {expression}:\n{printed}"))?;
                        self.names.insert(name.clone(), found.as_str().to_owned());
                    }
                    writeln!(text, "$ {}", step.text)?;
                    text.push_str(&self.mask.apply(&printed, step.sorted, step.shape));
                    if code != 0 {
                        writeln!(text, "= {code}")?;
                    }
                }
            }
        }
        Ok(text)
    }

    fn tool(
        &mut self,
        words: &[&str],
        input: &str,
        until: Option<&Regex>,
    ) -> anyhow::Result<(i64, String)> {
        let (name, arguments) = words.split_first().context("the name of a tool")?;
        wait::until("the tool tells it", LIMIT, || {
            // What fails is no matter of time.
            let told = kafka_tool_in(&mut self.driver, name, arguments, input);
            let Ok((_, printed)) = &told else { return Ok(told) };
            if let Some(wanted) = until {
                ensure!(wanted.is_match(printed), "no {wanted} in:\n{printed}");
            }
            Ok(told)
        })?
    }

    fn filled(&self, text: &str) -> String {
        let put = |text: String, (name, value): (&String, &String)| {
            text.replace(&format!("{{{name}}}"), value)
        };
        self.names.iter().fold(text.to_owned(), put)
    }
}

/// `{B}` is two words.
fn bootstrap(word: &str) -> Vec<&str> {
    match word.split_once(' ') {
        Some((option @ "--bootstrap-server", address)) => vec![option, address],
        _ => vec![word],
    }
}

/// Writes down what a real Kafka's tools printed.
pub fn bless(told: &Told) -> anyhow::Result<()> {
    for (name, text) in told {
        fs::write(golden(name), text)?;
    }
    Ok(())
}

fn golden(section: &str) -> PathBuf {
    workspace().join(GOLDEN).join(section).with_extension("txt")
}

/// Holds what was told against the golden files as they are.
pub fn compare_peer(told: &Told) -> anyhow::Result<()> {
    compare(told, &differences::Differences::default())
}

/// Holds what Duolog told against the golden files, but for what differs on purpose.
pub fn compare_duolog(told: &Told) -> anyhow::Result<()> {
    compare(told, &differences::Differences::read()?)
}

/// The error tells each tool that printed something else; all that was printed is then below `target/kafka-tools`.
fn compare(told: &Told, differences: &differences::Differences) -> anyhow::Result<()> {
    let mut wrong = String::new();
    for (name, text) in told {
        let expected = fs::read_to_string(golden(name)).with_context(|| name.clone())?;
        let expected = differences.apply(name, &expected)?;
        for (theirs, ours) in blocks(&expected, text) {
            if theirs != ours {
                writeln!(wrong, "-- {name}, expected:\n{theirs}-- but was:\n{ours}")?;
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let folder = workspace().join("target/kafka-tools");
    fs::create_dir_all(&folder)?;
    for (name, text) in told {
        fs::write(folder.join(name).with_extension("txt"), text)?;
    }
    anyhow::bail!("{wrong}see {}", folder.display())
}

/// Both texts, run by run of a tool; runs that only one has are beside nothing.
fn blocks(expected: &str, told: &str) -> Vec<(String, String)> {
    let (theirs, ours) = (runs(expected), runs(told));
    let count = theirs.len().max(ours.len());
    let at = |runs: &[String], index: usize| runs.get(index).cloned().unwrap_or_default();
    (0..count).map(|index| (at(&theirs, index), at(&ours, index))).collect()
}

fn runs(text: &str) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("$ ") || runs.is_empty() {
            runs.push(String::new());
        }
        if let Some(run) = runs.last_mut() {
            run.push_str(line);
            run.push('\n');
        }
    }
    runs
}

#[cfg(test)]
mod tests;
