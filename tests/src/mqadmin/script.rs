//! The text of a script: what is run, and what it printed.
//!
//! ```text
//! # a remark
//! % mask REGEX          what concerns the next command; see [`Step`]
//! > COMMAND ARGS        mqadmin's; `@METHOD ARGS` is a call of DefaultMQAdminExt, `!VERB` a client beside or a file
//!   what RocketMQ prints, masked
//! = what Duolog prints, where it differs on purpose
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

/// A line of a script, or several.
pub(super) enum Line {
    Remark(String),
    Step(Box<Step>),
}

#[derive(Default)]
pub(super) struct Step {
    /// The lines with `%`, as they are written.
    settings: Vec<String>,
    pub(super) command: String,
    /// `as NAME REGEX`: the first group of a match in what is printed is {NAME} from here on.
    pub(super) takes: Vec<(String, String)>,
    /// `mask REGEX`: what matches is not compared.
    pub(super) masks: Vec<String>,
    /// `skip REGEX`: a line with a match is not compared.
    pub(super) skips: Vec<String>,
    /// `keep REGEX`: a line without a match is not compared.
    pub(super) keep: Option<String>,
    /// `until REGEX`: asked again until what is printed has a match.
    pub(super) until: Option<String>,
    /// `stop REGEX`: interrupted once what is printed has a match.
    pub(super) stop: Option<String>,
    /// `differs ROW`: Duolog prints something else on purpose, for the reason in that row of docs/differences.md, or because it does not
    /// serve that request code.
    pub(super) differs: Option<String>,
    /// `sorted`: the order of lines is a Java hash map's.
    pub(super) sorted: bool,
    /// `subset`: each line that Duolog prints must be one of RocketMQ's.
    pub(super) subset: bool,
    pub(super) theirs: Vec<String>,
    pub(super) ours: Vec<String>,
}

impl Step {
    fn set(&mut self, text: &str) -> anyhow::Result<()> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.to_owned();
        match word {
            "as" => {
                let (name, expression) = rest.split_once(' ').context("as NAME REGEX")?;
                self.takes.push((name.to_owned(), expression.to_owned()));
            }
            "mask" => self.masks.push(rest),
            "skip" => self.skips.push(rest),
            "keep" => self.keep = Some(rest),
            "until" => self.until = Some(rest),
            "stop" => self.stop = Some(rest),
            "differs" => self.differs = Some(rest),
            "sorted" => self.sorted = true,
            "subset" => self.subset = true,
            _ => bail!("what is {text}?"),
        }
        self.settings.push(text.to_owned());
        Ok(())
    }
}

pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Line>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut next = Step::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (mark, rest) = line.split_at_checked(2).with_context(|| line.to_owned())?;
        match (mark, lines.last_mut()) {
            ("# ", _) => lines.push(Line::Remark(rest.to_owned())),
            ("% ", _) => next.set(rest)?,
            ("> ", _) => {
                next.command = rest.to_owned();
                lines.push(Line::Step(Box::new(std::mem::take(&mut next))));
            }
            ("  ", Some(Line::Step(step))) => step.theirs.push(rest.to_owned()),
            ("= ", Some(Line::Step(step))) => step.ours.push(rest.to_owned()),
            _ => bail!("what is {line}?"),
        }
    }
    Ok(lines)
}

pub(super) fn write(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let step = match line {
            Line::Remark(remark) => {
                text += &format!("# {remark}\n");
                continue;
            }
            Line::Step(step) => step,
        };
        for setting in &step.settings {
            text += &format!("% {setting}\n");
        }
        text += &format!("> {}\n", step.command);
        for theirs in &step.theirs {
            text += &format!("  {theirs}\n");
        }
        for ours in &step.ours {
            text += &format!("= {ours}\n");
        }
        text.push('\n');
    }
    text
}

/// The words of a command, as a shell takes them apart: blanks within single quotes do not.
pub(super) fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None;
    let mut quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_written_as_it_was_read() {
        let text = "# one\n% sorted\n% as X (a)\n> a 'b c' ''\n  x\n  # y\n= z\n\n";
        let lines = parse(text).expect("a script");
        assert_eq!(write(&lines), text);
        assert_eq!(words("a 'b c' '' d"), ["a", "b c", "", "d"]);
        assert!(parse("nonsense\n").is_err());
        assert!(parse("% nonsense\n").is_err());
    }
}
