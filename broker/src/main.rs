//! `duolog`: arguments, then configuration, then run.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use duolog_broker::config::Config;
use duolog_broker::config::args::{Cli, Command, ImportArgs, ServeArgs};
use duolog_broker::{explain, import, limits, serve, sim};
use tracing_subscriber::EnvFilter;

/// A request makes some thirty small allocations and one of 8 KiB, often freed by another thread. The
/// C library's allocator takes a third of a RocketMQ send's time for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    abort_on_panic();
    let cli = Cli::parse();
    let outcome = match cli.command {
        Some(Command::Explain(args)) => printed(explain::run(&args)),
        Some(Command::Import(args)) => take_over(&args),
        Some(Command::Sim(args)) => sim::run(&args),
        Some(Command::Serve(args)) => run(&args),
        None => run(&cli.serve),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("duolog: {}", words(&error));
            ExitCode::FAILURE
        }
    }
}

/// A broken invariant stops the process, whichever task finds it: recovery reads the log again.
fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// Whoever reads what a command prints may have read enough: `duolog explain mapping | head`.
fn printed(outcome: io::Result<()>) -> anyhow::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// An error and its causes, without what an error has said already of its cause.
fn words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(cause.trim_end()) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// What is written to standard error. Errors: `DUOLOG_LOG` says nothing that makes sense.
fn log_filter() -> anyhow::Result<EnvFilter> {
    match std::env::var("DUOLOG_LOG") {
        Ok(text) => EnvFilter::builder().parse(&text).map_err(|error| {
            anyhow::anyhow!(
                "invalid value {text:?} for DUOLOG_LOG: {error}; expected a level such as debug, \
                 or target=level, separated by commas"
            )
        }),
        Err(_) => Ok("warn,duolog=info,duolog_broker=info".into()),
    }
}

/// The configuration by file, environment and flags; what is told goes to standard error.
fn configured(args: &ServeArgs) -> anyhow::Result<Config> {
    tracing_subscriber::fmt().with_env_filter(log_filter()?).with_writer(std::io::stderr).init();
    let environment = std::env::vars().filter(|(name, _)| name != "DUOLOG_LOG");
    Ok(Config::load(args, environment)?)
}

fn take_over(args: &ImportArgs) -> anyhow::Result<()> {
    let config = configured(&args.serve)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let imported = runtime.block_on(import::run(config, &args.dirs))?;
    printed(import::print(&imported, args.json))
}

fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let config = configured(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(limits::BLOCKING_THREADS_MAX)
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve::run(config));
    if served.is_err() {
        // A disk that has failed may never answer.
        runtime.shutdown_background();
    }
    Ok(served?)
}
