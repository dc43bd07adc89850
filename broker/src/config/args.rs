//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// One log, two protocols: a Kafka and RocketMQ server over the same bytes.
#[derive(Debug, Parser)]
#[command(name = "duolog", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; `serve` when left out.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `serve`.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// What `duolog` can be asked to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node until SIGINT or SIGTERM (the default).
    Serve(ServeArgs),
    /// Explain how the two protocols meet.
    Explain(ExplainArgs),
}

/// Options of `duolog serve`.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// TOML file of config keys; RocketMQ's names stand under [rocketmq].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of all data [default: ./duolog-data].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Set one config key; wins over file and environment (DUOLOG_NUM_PARTITIONS=3).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
    /// Named set of defaults.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,
    /// Serve /gates and /events on the HTTP port to loopback clients.
    #[arg(long)]
    pub control: bool,
}

/// A named set of defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Short server timings, for tests and lessons.
    Fast,
}

/// Options of `duolog explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// What to explain.
    pub subject: Subject,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What `duolog explain` knows about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// What becomes of each field and concept of one protocol in the other.
    Mapping,
}
