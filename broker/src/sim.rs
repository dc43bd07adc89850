//! `duolog sim`: runs of simulated replicas, to be read.

use std::io::{self, BufWriter, Write};

use duolog_log_core::replication::partition::Role;
use duolog_sim::case;
use duolog_sim::plan::Planted;
use duolog_sim::run::Builder;
use duolog_sim::timeline::{self, Detail};
use duolog_sim::trace::{Line, Recording, ReplicaView};
use serde_json::{Value, json};

use crate::config::args::{Case, ReplayArgs, SimArgs, SimCommand};

/// Runs what was asked for. A reader that goes away (`| head`) ends it without an error.
pub fn run(args: &SimArgs) -> anyhow::Result<()> {
    let SimCommand::Replay(args) = &args.command;
    let mut out = BufWriter::new(io::stdout().lock());
    match replay(&mut out, args).and_then(|()| Ok(out.flush()?)) {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        outcome => outcome,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn replay(out: &mut impl Write, args: &ReplayArgs) -> anyhow::Result<()> {
    let detail = if args.all { Detail::Full } else { Detail::Usual };
    if let Some(Case::HwTruncation) = args.case {
        let scenes = case::hw_truncation();
        if !args.json {
            return Ok(timeline::write_scenes(out, &scenes, detail)?);
        }
        for scene in &scenes {
            write_lines(out, &scene.lines)?;
            let (acknowledged, kept) = (&scene.acknowledged, &scene.kept);
            let end = json!({"scene": scene.title, "acknowledged": acknowledged, "kept": kept,
                "lost": scene.lost(), "violation": scene.violation});
            writeln!(out, "{end}")?;
        }
        return Ok(());
    }
    let planted = match &args.plant {
        None => None,
        Some(name) => Some(fault(name)?),
    };
    let seed = args.seed.unwrap_or_default();
    let recording = Recording::On;
    let report = Builder { seed, planted, recording, ..Builder::default() }.run();
    if args.json {
        write_lines(out, &report.lines)?;
        let end = json!({"seed": seed, "trace": format!("{:016x}", report.trace_hash),
            "violation": report.violation.map(|violation| violation.to_string())});
        writeln!(out, "{end}")?;
    } else {
        timeline::write_report(out, &report, detail)?;
    }
    Ok(())
}

fn fault(name: &str) -> anyhow::Result<Planted> {
    let known = Planted::ALL.map(Planted::name).join(", ");
    let found = Planted::ALL.into_iter().find(|fault| fault.name() == name);
    found.ok_or_else(|| anyhow::anyhow!("no fault is called {name}; there are {known}"))
}

/// One JSON object a line: the event as `/events` tells it, and all replicas after it.
fn write_lines(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    for line in lines {
        let event = &line.event;
        let replicas: Vec<_> = line.replicas.iter().map(replica).collect();
        let object = json!({
            "seq": event.seq, "time": event.time_ms, "node": event.node.0,
            "kind": event.kind.name(), "topic": event.topic.as_deref(), "partition": event.partition,
            "offset": event.offset.map(|offset| offset.0), "epoch": event.epoch.map(|epoch| epoch.0),
            "cause": event.cause.as_deref(), "replicas": replicas,
        });
        writeln!(out, "{object}")?;
    }
    Ok(())
}

fn replica(view: &ReplicaView) -> Value {
    let role = match view.role {
        None => "down",
        Some(Role::Offline) => "offline",
        Some(Role::Leader) => "leader",
        Some(Role::Follower(_)) => "follower",
    };
    let isr: Vec<_> = view.in_sync_replicas.iter().map(|node| node.0).collect();
    json!({"node": view.node.0, "role": role, "leaderEpoch": view.leader_epoch.0,
        "logStartOffset": view.log_start_offset.0, "highWatermark": view.high_watermark.0,
        "logEndOffset": view.log_end_offset.0, "isr": isr})
}

#[cfg(test)]
mod tests;
