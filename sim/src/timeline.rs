//! A recorded run as a table that people read: one line an event, and beside it how each replica stands.

use std::io::{self, Write};

use duolog_log_core::event::EventKind;
use duolog_log_core::replication::partition::Role;

use crate::case::Scene;
use crate::run::Report;
use crate::trace::{Line, ReplicaView};

/// Which events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Without fetches and LSO moves, which are most of them and tell little.
    Usual,
    /// All.
    Full,
}

const LEGEND: &str = "Each node: LEO/HW and the leader epoch that it knows; * leads, - is down, ? has no part in it. \
                      In braces: the ISR as the leader knows it.";
const CELL: usize = 12;

/// Writes a seed's run.
pub fn write_report(out: &mut impl Write, report: &Report, detail: Detail) -> io::Result<()> {
    let plan = &report.plan;
    writeln!(
        out,
        "seed {}: {} replicas, min.insync.replicas={}, truncation {:?}, flush {:?}, unclean election {:?}{}",
        report.seed,
        plan.replicas.len(),
        plan.min_insync_replicas,
        plan.truncation,
        plan.flush,
        plan.unclean,
        plan.planted.map(|fault| format!(", planted: {}", fault.name())).unwrap_or_default(),
    )?;
    writeln!(out, "{LEGEND}\n")?;
    write_lines(out, &report.lines, detail)?;
    writeln!(out, "\n{}", report.coverage)?;
    writeln!(out, "trace {:016x}", report.trace_hash)?;
    match &report.violation {
        None => writeln!(out, "every promise was kept"),
        Some(violation) => writeln!(out, "BROKEN {violation}"),
    }
}

/// Writes the scenes of a case, one after the other.
pub fn write_scenes(out: &mut impl Write, scenes: &[Scene], detail: Detail) -> io::Result<()> {
    writeln!(out, "{LEGEND}")?;
    for (number, scene) in (1..).zip(scenes) {
        let title = format!("{number}. {}", scene.title);
        writeln!(out, "\n{title}\n{}\n", "=".repeat(title.chars().count()))?;
        write_lines(out, &scene.lines, detail)?;
        writeln!(out, "\nacknowledged  {}", names(&scene.acknowledged))?;
        writeln!(out, "in the log    {}", names(&scene.kept))?;
        writeln!(out, "lost          {}", names(&scene.lost()))?;
        wrap(out, scene.moral)?;
    }
    Ok(())
}

fn write_lines(out: &mut impl Write, lines: &[Line], detail: Detail) -> io::Result<()> {
    let replicas = lines.iter().find(|line| !line.replicas.is_empty());
    let ids: Vec<_> =
        replicas.map(|line| line.replicas.iter().map(|r| r.node).collect()).unwrap_or_default();
    write!(out, "{:>7} {:>5}  {:<15} {:>6}  {:<44}", "ms", "node", "event", "offset", "")?;
    for id in &ids {
        write!(out, " {:<CELL$}", format!("node {id}"))?;
    }
    writeln!(out)?;
    let quiet = [EventKind::ReplicaFetch, EventKind::LastStableOffsetAdvanced, EventKind::LogFlush];
    for line in lines {
        let event = &line.event;
        if detail == Detail::Usual && quiet.contains(&event.kind) {
            continue;
        }
        let node = if event.node.0 < 0 { "coord".to_owned() } else { event.node.to_string() };
        let offset = event.offset.map(|offset| offset.to_string()).unwrap_or_default();
        let cause = event.cause.as_deref().unwrap_or_default();
        let epoch = match event.epoch {
            Some(epoch) if event.kind == EventKind::LeaderElect => format!(" (epoch {epoch})"),
            _ => String::new(),
        };
        let what: String = format!("{cause}{epoch}").chars().take(44).collect();
        let (time, kind) = (event.time_ms, event.kind.name());
        write!(out, "{time:>7} {node:>5}  {kind:<15} {offset:>6}  {what:<44}")?;
        for replica in line.replicas.iter() {
            write!(out, " {:<CELL$}", cell(replica))?;
        }
        if let Some(isr) = line
            .replicas
            .iter()
            .filter(|r| r.role == Some(Role::Leader))
            .max_by_key(|r| r.leader_epoch)
        {
            let ids: Vec<_> = isr.in_sync_replicas.iter().map(ToString::to_string).collect();
            write!(out, " {{{}}}", ids.join(","))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn cell(replica: &ReplicaView) -> String {
    let mark = match replica.role {
        None => return "-".to_owned(),
        Some(Role::Leader) => "*",
        Some(Role::Follower(_)) => " ",
        Some(Role::Offline) => "?",
    };
    let epoch = replica.leader_epoch.0.max(0);
    format!("{mark}{}/{} e{epoch}", replica.log_end_offset, replica.high_watermark)
}

fn names(values: &[u64]) -> String {
    if values.is_empty() {
        return "nothing".to_owned();
    }
    values.iter().map(|value| format!("m{value}")).collect::<Vec<_>>().join(" ")
}

fn wrap(out: &mut impl Write, text: &str) -> io::Result<()> {
    const WIDTH: usize = 100;
    let mut column = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > WIDTH {
            writeln!(out)?;
            column = 0;
        }
        if column > 0 {
            write!(out, " ")?;
            column += 1;
        }
        write!(out, "{word}")?;
        column += len;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests;
