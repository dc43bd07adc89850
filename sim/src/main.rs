//! `duolog-sim`: many seeds, one after the other, until one breaks a promise. Enough of them must exercise everything.

use std::process::ExitCode;

use duolog_sim::coverage::Coverage;
use duolog_sim::plan::Planted;
use duolog_sim::run::Builder;
use duolog_sim::timeline::{self, Detail};
use duolog_sim::trace::Recording;

const USAGE: &str = "usage: duolog-sim [--seeds COUNT] [--first SEED] [--failures COUNT] [--plant FAULT] [--replay SEED]";

struct Args {
    first: u64,
    count: u64,
    /// It goes on until so many have broken a promise.
    failures_max: u64,
    planted: Option<Planted>,
    replay: Option<u64>,
}

fn main() -> ExitCode {
    match args(std::env::args().skip(1)) {
        Ok(Args { replay: Some(seed), planted, .. }) => replay(seed, planted),
        Ok(args) => run(&args),
        Err(wrong) => {
            eprintln!("duolog-sim: {wrong}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn args(mut given: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args { first: 0, count: 1_000, failures_max: 1, planted: None, replay: None };
    while let Some(flag) = given.next() {
        let value = given.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{flag} takes a number, not {value}"));
        match flag.as_str() {
            "--seeds" => args.count = number()?,
            "--first" => args.first = number()?,
            "--failures" => args.failures_max = number()?,
            "--replay" => args.replay = Some(number()?),
            "--plant" => {
                let fault = Planted::ALL.into_iter().find(|fault| fault.name() == value);
                args.planted = Some(fault.ok_or_else(|| format!("no fault is called {value}"))?);
            }
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    Ok(args)
}

fn run(args: &Args) -> ExitCode {
    let mut coverage = Coverage::default();
    let mut failures = 0;
    let steps_of_progress = (args.count / 20).max(1);
    for (done, seed) in (args.first..args.first.saturating_add(args.count)).enumerate() {
        let report = Builder { seed, planted: args.planted, ..Builder::default() }.run();
        coverage.add(&report.coverage);
        if let Some(violation) = report.violation {
            println!("seed {seed}: {violation}");
            println!("replay it with: duolog sim replay {seed}");
            failures += 1;
            if failures >= args.failures_max {
                println!("{coverage}");
                return ExitCode::FAILURE;
            }
        }
        if (done as u64 + 1).is_multiple_of(steps_of_progress) {
            eprintln!("{} of {} seeds", done + 1, args.count);
        }
    }
    let last = args.first.saturating_add(args.count).saturating_sub(1);
    let outcome = match failures {
        0 => "all promises kept".to_owned(),
        failures => format!("{failures} broke a promise"),
    };
    println!("seeds {} to {last}: {outcome}", args.first);
    print!("{coverage}");
    let missed = coverage.missed(args.count);
    if !missed.is_empty() {
        println!("never exercised, so nothing is proven about it: {}", missed.join("; "));
    }
    if failures == 0 && missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64, planted: Option<Planted>) -> ExitCode {
    let recording = Recording::On;
    let report = Builder { seed, planted, recording, ..Builder::default() }.run();
    // A reader that goes away has seen enough.
    _ = timeline::write_report(&mut std::io::stdout().lock(), &report, Detail::Full);
    if report.violation.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
