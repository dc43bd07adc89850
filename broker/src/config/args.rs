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
    /// Take over the topics of a stopped Kafka broker from its log directories.
    ///
    /// Folders are copied; those of the broker stay as they are. What cannot be taken over is refused
    /// before anything is written. Transactions that are open are ended in the copies: committed
    /// where that was decided, else aborted. Run it again if it was stopped: the node does not start
    /// before it has come to its end. What has been imported before stays as it is.
    Import(ImportArgs),
    /// Explain how the two protocols meet.
    Explain(ExplainArgs),
    /// Simulate replicas of a partition and the faults they survive.
    Sim(SimArgs),
}

/// Options of `duolog serve`.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// TOML file of config keys; RocketMQ's names stand under [rocketmq].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of all data, or several, separated by commas [default: ./duolog-data].
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

/// Options of `duolog import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// The log directories of the stopped broker, all that its log.dirs names; they stay as they are.
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Where to, and the settings of the node.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
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

/// Options of `duolog sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// What `duolog sim` can do.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run one seed, or a case from the course, and print what happened.
    Replay(ReplayArgs),
}

/// Options of `duolog sim replay`.
#[derive(Debug, Default, Args)]
pub struct ReplayArgs {
    /// The seed: everything in the run follows from it.
    #[arg(required_unless_present = "case", conflicts_with = "case")]
    pub seed: Option<u64>,
    /// A scripted case instead.
    #[arg(long, value_name = "NAME")]
    pub case: Option<Case>,
    /// Plant a fault into the rules: truncate-to-hw, shrink-at-once, ack-after-newer-epoch, growth-at-once, forget-epochs,
    /// leave-before-in-sync, minimum-at-once.
    #[arg(long, value_name = "FAULT", conflicts_with = "case")]
    pub plant: Option<String>,
    /// Print every event, fetches too.
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// A scripted case of `duolog sim replay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// m5 to m7 are acknowledged and lost, or not: acks=1, acks=all, high watermarks and leader epochs.
    HwTruncation,
}
