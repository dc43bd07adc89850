//! Commands of stock mqadmin 5.5.0 and calls of the dashboard, in one process against one node, and what they print: held against what
//! they printed against a real RocketMQ 5.5.0 (`tests/golden/mqadmin`).

mod mask;
pub(crate) mod process;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use regex::Regex;

use self::mask::Masks;
use self::process::Admins;
use self::script::{Line, Step};
use crate::stock::workspace;
use crate::wait;

/// The scripts, in the order in which they run against one node.
const SCRIPTS: [&str; 5] = ["topics", "messages", "groups", "node", "dashboard"];
/// For a command that is asked again until it prints something.
const UNTIL_LIMIT: Duration = Duration::from_secs(120);
/// Commands that write messages.
const WRITERS: [&str; 4] = ["sendMessage", "sendMsgStatus", "checkMsgSendRT", "clusterRT"];
/// How often a command is run again that had no answer in time.
const ATTEMPTS: usize = 5;

fn golden(script: &str) -> PathBuf {
    workspace().join("tests/golden/mqadmin").join(format!("{script}.txt"))
}

/// Runs all scripts, and writes what was printed into them: for a real peer.
pub fn record(namesrv: &str, broker: &str) -> anyhow::Result<()> {
    let mut run = Run::new(namesrv, broker)?;
    for name in SCRIPTS {
        let mut lines = script::read(&golden(name))?;
        for line in &mut lines {
            if let Line::Step(step) = line {
                step.theirs = run.step(step)?;
            }
        }
        fs::write(golden(name), script::write(&lines))?;
    }
    Ok(())
}

/// Runs all scripts, and tells everything that is not as recorded. With `bless` the answers of steps that differ on purpose are
/// written into the scripts instead.
pub fn compare(namesrv: &str, broker: &str, bless: bool) -> anyhow::Result<()> {
    let papers = Papers::read()?;
    let mut run = Run::new(namesrv, broker)?;
    let mut wrong = String::new();
    for name in SCRIPTS {
        let mut lines = script::read(&golden(name))?;
        for line in &mut lines {
            let Line::Step(step) = line else { continue };
            let got = run.step(step)?;
            if let (Some(row), false) = (&step.differs, got == step.ours) {
                if bless {
                    step.ours = got;
                    continue;
                }
                ensure!(!row.is_empty(), "{}: which row?", step.command);
                wrong += &complaint(name, step, &step.ours, &got);
            } else if let Some(row) = &step.differs {
                if got == step.theirs {
                    writeln!(wrong, "{name}> {}\n differs no more", step.command)?;
                }
                if !papers.list(row) {
                    writeln!(wrong, "{name}> {}\n  the papers have no row {row}", step.command)?;
                }
            } else if step.subset {
                let theirs: BTreeSet<_> = step.theirs.iter().collect();
                let more: Vec<_> =
                    got.iter().filter(|line| !theirs.contains(line)).cloned().collect();
                wrong += &complaint(name, step, &[], &more);
            } else {
                wrong += &complaint(name, step, &step.theirs, &got);
            }
        }
        if bless {
            fs::write(golden(name), script::write(&lines))?;
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}

/// What is said in docs/ about differences.
struct Papers {
    /// docs/differences.md.
    differences: String,
    /// docs/compatibility.md: what is only missing.
    compatibility: String,
}

impl Papers {
    fn read() -> anyhow::Result<Self> {
        let text = |name| fs::read_to_string(workspace().join("docs").join(name));
        Ok(Self { differences: text("differences.md")?, compatibility: text("compatibility.md")? })
    }

    /// Whether there is a row with that first column, or that is a request code which is not served.
    fn list(&self, row: &str) -> bool {
        let starts = |line: &&str| line.starts_with(&format!("| {row} |"));
        self.differences.lines().any(|line| starts(&line))
            || self.compatibility.lines().filter(starts).any(|line| line.contains("| not yet |"))
    }
}

/// The lines that are in one and not in the other; nothing if there are none and their order is the same.
fn complaint(script: &str, step: &Step, wanted: &[String], got: &[String]) -> String {
    if wanted == got {
        return String::new();
    }
    let mut text = format!("{script}> {}\n", step.command);
    let mut told = false;
    for (mark, lines, others) in [('-', wanted, got), ('+', got, wanted)] {
        for line in lines.iter().filter(|line| !others.contains(line)) {
            told = true;
            text += &format!("  {mark} {line}\n");
        }
    }
    if !told {
        text += &format!("  order or number of lines: {got:?}\n");
    }
    text
}

/// One process of mqadmin, and what is known by name.
struct Run {
    admins: Admins,
    names: BTreeMap<String, String>,
    masks: Masks,
    folder: tempfile::TempDir,
}

impl Run {
    fn new(namesrv: &str, broker: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().display().to_string();
        let names: BTreeMap<String, String> =
            [("BROKER", broker), ("NAMESRV", namesrv), ("DIR", &path)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
        let masks = Masks::new(&names)?;
        let admins = Admins::start(namesrv, folder.path())?;
        Ok(Self { admins, names, masks, folder })
    }

    /// What one step prints, as it is compared.
    fn step(&mut self, step: &Step) -> anyhow::Result<Vec<String>> {
        let out = match &step.until {
            None => self.once(step)?,
            Some(until) => {
                let until = Regex::new(&self.filled(until))?;
                wait::until(&step.command, UNTIL_LIMIT, || {
                    let out = self.once(step)?;
                    ensure!(until.is_match(&out), "{out}");
                    Ok(out)
                })?
            }
        };
        for (name, expression) in &step.takes {
            let found = Regex::new(expression)?.captures(&out).and_then(|found| found.get(1));
            let found =
                found.with_context(|| format!("{}: no {expression}: {out}", step.command))?;
            self.names.insert(name.clone(), found.as_str().to_owned());
        }
        let mut lines = self.masks.lines(&out, &step.masks, &step.skips)?;
        if let Some(keep) = &step.keep {
            let keep = Regex::new(keep)?;
            lines.retain(|line| keep.is_match(line));
        }
        if step.sorted {
            lines.sort();
        }
        Ok(lines)
    }

    fn once(&mut self, step: &Step) -> anyhow::Result<String> {
        let command = self.filled(&step.command);
        let words = script::words(&command);
        let (first, rest) = words.split_first().context("a command")?;
        let told = || command.clone();
        if let Some(call) = first.strip_prefix('@') {
            return self.admins.call(call, rest).with_context(told);
        }
        let Some(verb) = first.strip_prefix('!') else {
            return self.command(&words, step.stop.as_deref()).with_context(told);
        };
        match (verb, rest) {
            ("write", [file, ..]) => {
                let text = command.splitn(3, ' ').last().unwrap_or_default();
                fs::write(self.folder.path().join(file), text)?;
                Ok(String::new())
            }
            ("show", [file]) => Ok(fs::read_to_string(self.folder.path().join(file))?),
            ("write" | "show", _) => bail!("which file: {command}"),
            _ => self.admins.beside(command.trim_start_matches('!')).with_context(told),
        }
    }

    /// mqadmin waits five seconds for an answer, which may be too few on a busy machine: then it is run
    /// again, unless it writes messages.
    fn command(&mut self, words: &[String], stop: Option<&str>) -> anyhow::Result<String> {
        let mut out = self.admins.run(words, stop)?;
        let is_repeated = !words.iter().any(|word| WRITERS.contains(&word.as_str()));
        for _ in 0..ATTEMPTS {
            if !is_repeated || !out.contains("RemotingTimeoutException") {
                break;
            }
            out = self.admins.run(words, stop)?;
        }
        Ok(out)
    }

    fn filled(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }
}
