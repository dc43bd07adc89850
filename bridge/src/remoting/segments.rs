//! Output as a list of segments, so that large bodies reach the socket without being copied.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::limits::SHARED_SEGMENT_BYTES_MIN;

/// Bytes to send: small pieces gathered in an own buffer, large ones kept as they were given.
///
/// It is a [`Buf`], with all its segments in one vectored write.
#[derive(Clone, Debug, Default)]
pub struct SegmentedOut {
    ready: VecDeque<Bytes>,
    ready_bytes: usize,
    tail: BytesMut,
}

impl SegmentedOut {
    /// Empty, with room for `bytes` of copied pieces.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { tail: BytesMut::with_capacity(bytes), ..Self::default() }
    }

    /// Bytes in all segments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready_bytes + self.tail.len()
    }

    /// Nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer that pieces are copied into; what is written to it comes after everything put
    /// before.
    pub fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Copies `bytes`.
    pub fn put_slice(&mut self, bytes: &[u8]) {
        self.tail.put_slice(bytes);
    }

    /// Appends `bytes`; large ones are shared, not copied.
    pub fn put_shared(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_SEGMENT_BYTES_MIN {
            self.tail.put_slice(&bytes);
            return;
        }
        self.seal();
        self.push_ready(bytes);
    }

    /// Appends `part`; shared if it is large and lies in `region`, else copied.
    pub fn put_part(&mut self, region: Option<&Bytes>, part: &[u8]) {
        match region {
            Some(region) if part.len() >= SHARED_SEGMENT_BYTES_MIN && holds(region, part) => {
                self.put_shared(region.slice_ref(part));
            }
            _ => self.put_slice(part),
        }
    }

    /// Takes back everything after the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.ready_bytes {
            self.tail.truncate(length - self.ready_bytes);
            return;
        }
        self.tail.clear();
        while self.ready_bytes > length {
            let Some(mut last) = self.ready.pop_back() else { return };
            self.ready_bytes -= last.len();
            if self.ready_bytes < length {
                last.truncate(length - self.ready_bytes);
                self.push_ready(last);
            }
        }
    }

    /// Appends all of `other`.
    pub fn append(&mut self, mut other: Self) {
        if other.ready.is_empty() && other.tail.len() < SHARED_SEGMENT_BYTES_MIN {
            self.tail.put_slice(&other.tail);
            return;
        }
        self.seal();
        other.seal();
        self.ready_bytes += other.ready_bytes;
        self.ready.append(&mut other.ready);
    }

    /// All segments in order.
    #[must_use]
    pub fn into_segments(mut self) -> VecDeque<Bytes> {
        self.seal();
        self.ready
    }

    /// Everything as one piece; copies when there are several segments.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        let length = self.len();
        self.copy_to_bytes(length)
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let sealed = self.tail.split().freeze();
            self.push_ready(sealed);
        }
    }

    fn push_ready(&mut self, bytes: Bytes) {
        self.ready_bytes += bytes.len();
        self.ready.push_back(bytes);
    }
}

fn holds(region: &Bytes, part: &[u8]) -> bool {
    let (outer, inside) = (region.as_ptr_range(), part.as_ptr_range());
    outer.start <= inside.start && inside.end <= outer.end
}

impl Buf for SegmentedOut {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn chunk(&self) -> &[u8] {
        self.ready.front().map_or(&self.tail[..], |first| &first[..])
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let chunks = self.ready.iter().map(|bytes| &bytes[..]).chain([&self.tail[..]]);
        let mut filled = 0;
        for (slot, chunk) in slices.iter_mut().zip(chunks.filter(|chunk| !chunk.is_empty())) {
            *slot = IoSlice::new(chunk);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len(), "advance past the end");
        while count > 0 {
            let Some(first) = self.ready.front_mut() else {
                self.tail.advance(count);
                return;
            };
            let step = count.min(first.len());
            first.advance(step);
            self.ready_bytes -= step;
            count -= step;
            if first.is_empty() {
                self.ready.pop_front();
            }
        }
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        self.seal();
        if let Some(first) = self.ready.front_mut()
            && first.len() >= length
        {
            let piece = first.split_to(length);
            self.ready_bytes -= length;
            if first.is_empty() {
                self.ready.pop_front();
            }
            return piece;
        }
        let mut whole = BytesMut::with_capacity(length);
        whole.put(self.take(length));
        whole.freeze()
    }
}

#[cfg(test)]
mod tests;
