//! The signals that end a node.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A file would grow beyond `ulimit -f`. Linux's number on the platforms that the node is built for.
const SIGXFSZ: i32 = 25;

/// SIGINT and SIGTERM.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Caught and not looked at: a write beyond a bound of file sizes then fails as one on a full disk does.
    _file_too_large: Signal,
}

impl Signals {
    /// Listens from now on: neither signal ends the process any more.
    ///
    /// Errors: the system does not let us.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_too_large: signal(SignalKind::from_raw(SIGXFSZ))?,
        })
    }

    /// Resolves at the first of them, with its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
