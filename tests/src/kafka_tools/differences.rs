//! What the tools print of Duolog otherwise than of a real Kafka, and why.
//!
//! ```text
//! = SECTION
//! ? why, for the runs below
//! $ the run, as in the script; in the order of the script
//! - a line of Kafka's
//! + a line of Duolog's in its place
//! ```

use std::fs;

use anyhow::{Context, bail, ensure};

use crate::stock::workspace;

const FILE: &str = "tests/interop/kafka-tools-differences.txt";

#[derive(Debug, Default)]
pub struct Differences(Vec<Run>);

#[derive(Debug)]
struct Run {
    section: String,
    /// As the golden file shows it.
    command: String,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Default)]
struct Hunk {
    theirs: Vec<String>,
    ours: Vec<String>,
}

impl Differences {
    pub fn read() -> anyhow::Result<Self> {
        Self::parse(&fs::read_to_string(workspace().join(FILE))?)
    }

    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut runs: Vec<Run> = Vec::new();
        let (mut section, mut reason) = ("", false);
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            match kind {
                "=" => (section, reason) = (rest, false),
                "?" => reason = true,
                "$" => {
                    ensure!(reason, "no reason before {line}");
                    let (section, command) = (section.to_owned(), line.to_owned());
                    runs.push(Run { section, command, hunks: Vec::new() });
                }
                "-" | "+" => {
                    let hunks = &mut runs.last_mut().context("a run first")?.hunks;
                    // Lines of Kafka's behind some of Duolog's are another place.
                    if hunks.last().is_none_or(|last| kind == "-" && !last.ours.is_empty()) {
                        hunks.push(Hunk::default());
                    }
                    let last = hunks.last_mut().context("just made")?;
                    let side = if kind == "-" { &mut last.theirs } else { &mut last.ours };
                    side.push(rest.to_owned());
                }
                _ => bail!("what is {line}?"),
            }
        }
        Ok(Self(runs))
    }

    /// What is expected of Duolog where a real Kafka's tools print `theirs`. What differs no longer fails.
    pub fn apply(&self, section: &str, theirs: &str) -> anyhow::Result<String> {
        let mut lines: Vec<String> = theirs.lines().map(str::to_owned).collect();
        let mut at = 0;
        for run in self.0.iter().filter(|run| run.section == section) {
            let place = || format!("{section}: {run:?}");
            at +=
                lines.iter().skip(at).position(|line| *line == run.command).with_context(place)?
                    + 1;
            for hunk in &run.hunks {
                let rest = lines.get(at..).unwrap_or_default();
                let end = rest.iter().position(|line| line.starts_with("$ "));
                let rest = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                let span = hunk.theirs.len();
                ensure!(span > 0, "nothing of Kafka's: {}", place());
                let found = rest.windows(span).position(|lines| lines == hunk.theirs);
                let found = at + found.with_context(place)?;
                lines.splice(found..found + span, hunk.ours.iter().cloned());
                at = found + hunk.ours.len();
            }
        }
        Ok(lines.iter().map(|line| format!("{line}\n")).collect())
    }
}
