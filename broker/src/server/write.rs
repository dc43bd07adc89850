//! Writing a list of segments to a socket without joining them.

use std::io::{self, IoSlice};

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;

/// Segments that one system call takes along.
const SLICES_MAX: usize = 64;

/// Writes every byte of `segments`, in order, in as few calls as possible.
pub async fn write_segments(socket: &mut OwnedWriteHalf, segments: &[Bytes]) -> io::Result<()> {
    let mut next = 0;
    let mut offset = 0;
    while next < segments.len() {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut filled = 0;
        for (slice, segment) in slices.iter_mut().zip(segments.iter().skip(next)) {
            let skipped = if filled == 0 { offset } else { 0 };
            *slice = IoSlice::new(segment.get(skipped..).unwrap_or_default());
            filled += 1;
        }
        let written = socket.write_vectored(slices.get(..filled).unwrap_or_default()).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        offset += written;
        while let Some(segment) = segments.get(next).filter(|segment| offset >= segment.len()) {
            offset -= segment.len();
            next += 1;
        }
    }
    Ok(())
}
