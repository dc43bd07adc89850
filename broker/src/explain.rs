//! `duolog explain`: what becomes of each field and concept of one protocol in the other.

use std::io::{self, Write};

use duolog_bridge::translate::explain::{ROWS, Row};

use crate::config::args::{ExplainArgs, Subject};

/// Prints what was asked for.
pub fn run(args: &ExplainArgs) -> io::Result<()> {
    let Subject::Mapping = args.subject;
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, ROWS)?;
        return writeln!(out);
    }
    print(&mut out, ROWS)
}

fn print(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut part = None;
    for row in rows {
        if part != Some(row.part) {
            let gap = if part.is_some() { "\n" } else { "" };
            let title = row.part.title();
            writeln!(out, "{gap}{title}\n{}", "=".repeat(title.len()))?;
            part = Some(row.part);
        }
        writeln!(out)?;
        for (label, text) in [
            ("RocketMQ", row.rocketmq),
            ("Kafka", row.kafka),
            ("-> Kafka", row.to_kafka),
            ("-> RocketMQ", row.to_rocketmq),
            ("lost", row.loss),
        ] {
            if !text.is_empty() {
                entry(out, label, text)?;
            }
        }
    }
    Ok(())
}

/// Columns of a line.
const WIDTH: usize = 100;
/// Columns of a label with what follows it.
const LABEL: usize = 14;

fn entry(out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
    let mut line = format!("  {label:LABEL$}");
    let indent = " ".repeat(2 + LABEL);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line.clone_from(&indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests;
