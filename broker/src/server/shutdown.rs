//! The signals that end a node.

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at SIGINT or SIGTERM.
///
/// Errors: the system does not let us listen for them.
pub async fn signalled() -> std::io::Result<&'static str> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
    })
}
