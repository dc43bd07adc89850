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
mod tests {
    use super::*;

    fn replayed(args: &ReplayArgs) -> Vec<Value> {
        let mut out = Vec::new();
        replay(&mut out, args).expect("memory");
        let text = String::from_utf8(out).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn a_seed_is_told_as_json_lines() {
        let args = ReplayArgs { seed: Some(7), json: true, ..ReplayArgs::default() };
        let lines = replayed(&args);
        assert_eq!(lines[0]["seq"], 0);
        assert!(lines.iter().any(|line| line["kind"] == "leader.elect"));
        assert_eq!(lines.last().expect("an end")["seed"], 7);
        assert_eq!(lines, replayed(&args), "the same again");
    }

    #[test]
    fn the_course_example_ends_each_scene_with_what_was_lost() {
        let case = Some(Case::HwTruncation);
        let args = ReplayArgs { case, json: true, ..ReplayArgs::default() };
        let lines = replayed(&args);
        let lost: Vec<_> = lines.iter().filter_map(|line| line["lost"].as_array()).collect();
        assert_eq!(lost.iter().map(|lost| lost.len()).collect::<Vec<_>>(), [3, 0, 3, 0]);
    }

    #[test]
    fn an_unknown_fault_is_refused_with_the_known_ones() {
        let plant = Some("gremlins".to_owned());
        let args = ReplayArgs { plant, ..ReplayArgs::default() };
        let error = replay(&mut Vec::new(), &args).expect_err("no such fault");
        assert!(error.to_string().contains("forget-epochs"), "{error}");
    }

    #[test]
    fn a_reader_that_goes_away_is_no_error() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow::anyhow!("something else")));
    }
}
