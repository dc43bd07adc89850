//! The script: sections of steps, one a line.
//!
//! ```text
//! # a remark
//! = NAME [long]            a section, and the name of its golden file; a long one is left to `make verify`
//! TOOL ARGUMENT...         a run of a tool; an argument with spaces stands in double quotes
//!   < TEXT                 a line of the standard input of the tool before
//!   until REGEX            it is run again until it prints that
//!   take NAME REGEX        {NAME} is from then on what the first group matched
//!   sorted                 the order of its lines means nothing
//!   shape                  nor do its numbers
//! @ COMMAND                a command of the client driver (`tests/interop/java/KafkaDriver.java`)
//! file NAME TEXT           writes a file, whose path is {NAME} from then on; `\n` ends a line
//! ```
//!
//! `{A}` is the node's address, `{B}` the same as an option, `{D}` its data directory.

use std::fs;

use anyhow::{Context, bail};
use regex::Regex;

use crate::stock::workspace;

const SCRIPT: &str = "tests/interop/kafka-tools.txt";

#[derive(Debug)]
pub struct Section {
    pub name: String,
    pub long: bool,
    pub steps: Vec<Step>,
}

#[derive(Debug)]
pub struct Step {
    /// As it stands in the script.
    pub text: String,
    pub action: Action,
    /// Names and the expressions that give them.
    pub takes: Vec<(String, Regex)>,
    pub sorted: bool,
    pub shape: bool,
}

#[derive(Debug)]
pub enum Action {
    File { name: String, content: String },
    Client(String),
    Tool { words: Vec<String>, input: String, until: Option<Regex> },
}

/// All of the script.
pub fn read() -> anyhow::Result<Vec<Section>> {
    parse(&fs::read_to_string(workspace().join(SCRIPT))?)
}

/// What `make test` runs of it.
pub fn short() -> anyhow::Result<Vec<Section>> {
    Ok(read()?.into_iter().filter(|section| !section.long).collect())
}

pub fn parse(text: &str) -> anyhow::Result<Vec<Section>> {
    let mut sections = Vec::new();
    for line in text.lines() {
        if !line.is_empty() && !line.starts_with('#') {
            take(&mut sections, line).with_context(|| line.to_owned())?;
        }
    }
    Ok(sections)
}

fn take(sections: &mut Vec<Section>, line: &str) -> anyhow::Result<()> {
    if let Some(heading) = line.strip_prefix("= ") {
        let (name, long) = heading.strip_suffix(" long").map_or((heading, false), |n| (n, true));
        sections.push(Section { name: name.to_owned(), long, steps: Vec::new() });
        return Ok(());
    }
    let steps = &mut sections.last_mut().context("a section first")?.steps;
    match line.strip_prefix("  ") {
        Some(more) => add(steps.last_mut().context("a tool first")?, more),
        None => {
            steps.push(step(line)?);
            Ok(())
        }
    }
}

fn step(line: &str) -> anyhow::Result<Step> {
    let action = if let Some(command) = line.strip_prefix("@ ") {
        Action::Client(command.to_owned())
    } else if let Some(file) = line.strip_prefix("file ") {
        let (name, content) = file.split_once(' ').context("file NAME TEXT")?;
        Action::File { name: name.to_owned(), content: content.to_owned() }
    } else {
        Action::Tool { words: words(line), input: String::new(), until: None }
    };
    Ok(Step { text: line.to_owned(), action, takes: Vec::new(), sorted: false, shape: false })
}

/// What belongs to the run of a tool.
fn add(step: &mut Step, more: &str) -> anyhow::Result<()> {
    let Action::Tool { input, until, .. } = &mut step.action else { bail!("no run of a tool") };
    match more.split_once(' ').unwrap_or((more, "")) {
        ("<", line) => {
            input.push_str(line);
            input.push('\n');
        }
        ("until", expression) => *until = Some(Regex::new(expression)?),
        ("take", named) => {
            let (name, expression) = named.split_once(' ').context("take NAME REGEX")?;
            step.takes.push((name.to_owned(), Regex::new(expression)?));
        }
        ("sorted", "") => step.sorted = true,
        ("shape", "") => step.shape = true,
        _ => bail!("what is that?"),
    }
    Ok(())
}

/// Words between spaces; what stands in double quotes is one, without them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
