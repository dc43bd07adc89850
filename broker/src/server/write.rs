//! Writing a list of segments to a socket without joining them.

use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio_util::sync::CancellationToken;

/// Segments that one system call takes along.
const SLICES_MAX: usize = 64;

/// How long a peer may take nothing of what is written to it.
#[derive(Clone, Debug)]
pub struct Patience {
    /// As long as it may be silent.
    pub idle: Duration,
    /// Set when the node stops: then no longer than [`STOPPING_PATIENCE`] from now.
    pub stopping: CancellationToken,
}

/// A peer that takes nothing does not hold up a stop for longer.
const STOPPING_PATIENCE: Duration = Duration::from_secs(2);

impl Patience {
    async fn over(&self) {
        let stopped = async {
            self.stopping.cancelled().await;
            tokio::time::sleep(STOPPING_PATIENCE).await;
        };
        tokio::select! {
            () = tokio::time::sleep(self.idle) => {}
            () = stopped => {}
        }
    }
}

/// Writes every byte of `segments`, in order, in as few calls as possible.
pub async fn write_segments(socket: &mut OwnedWriteHalf, segments: &[Bytes]) -> io::Result<()> {
    let mut written = Written::default();
    while written.segments < segments.len() {
        written.go_on(socket, segments).await?;
    }
    Ok(())
}

/// As [`write_segments`]. Errors: the socket's, and `TimedOut` when the peer takes nothing for as long as
/// `patience` lasts.
pub async fn write_patiently(
    socket: &mut OwnedWriteHalf,
    segments: &[Bytes],
    patience: &Patience,
) -> io::Result<()> {
    let mut written = Written::default();
    while written.segments < segments.len() {
        tokio::select! {
            biased;
            went_on = written.go_on(socket, segments) => went_on?,
            () = patience.over() => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes no answers"));
            }
        }
    }
    Ok(())
}

/// How far a list of segments is written.
#[derive(Debug, Default)]
struct Written {
    /// Whole segments.
    segments: usize,
    /// Bytes of the one behind them.
    bytes: usize,
}

impl Written {
    /// Writes some more.
    async fn go_on(&mut self, socket: &mut OwnedWriteHalf, segments: &[Bytes]) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut filled = 0;
        for (slice, segment) in slices.iter_mut().zip(segments.iter().skip(self.segments)) {
            let skipped = if filled == 0 { self.bytes } else { 0 };
            *slice = IoSlice::new(segment.get(skipped..).unwrap_or_default());
            filled += 1;
        }
        let taken = socket.write_vectored(slices.get(..filled).unwrap_or_default()).await?;
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes += taken;
        while let Some(segment) = segments.get(self.segments).filter(|s| self.bytes >= s.len()) {
            self.bytes -= segment.len();
            self.segments += 1;
        }
        Ok(())
    }
}
