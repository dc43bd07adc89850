//! What the black-box tests stand on: the built `duolog` executable as a process, connections that
//! speak raw frames of both protocols, and the stock clients and command line tools.

pub mod wait;

pub mod differential;

pub mod cluster;
pub mod hex;
pub mod http;
pub mod peer;
pub mod program;
pub mod raw_client;
pub mod raw_kafka;
pub mod seed;
pub mod stock;
pub mod topics;

pub mod behaviour;
pub mod cases;
pub mod groups;
pub mod hanging;
pub mod kafka_tools;
pub mod matrix;
pub mod mixed;
pub mod mqadmin;
pub mod transfers;

/// Writes to standard error as it is, so that a table is seen when its test passes, too: the handle itself is not captured.
pub fn show(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    Ok(writeln!(std::io::stderr(), "\n{text}")?)
}
