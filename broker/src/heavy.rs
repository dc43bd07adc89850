//! Batches that take long to read: these are decompressed and walked beside the threads that serve connections, a few
//! at a time, so that nobody else waits for them.
//!
//! How large a batch is once decompressed only decompressing it says: it is tried at once as far as a small one goes, and
//! done again aside if there is more.

use std::panic::resume_unwind;
use std::sync::Arc;

use duolog_log_core::record::compression::{Compression, Decompressor};
use duolog_log_core::record::{BatchHeader, RecordError};
use tokio::sync::Semaphore;

use crate::limits::{
    DECOMPRESSED_BYTES_MAX, PROMPT_COMPRESSED_BYTES, PROMPT_DECOMPRESSED_BYTES, PROMPT_PLAIN_BYTES,
};
use crate::pool::Pool;

/// Reads batches, here or aside.
#[derive(Debug)]
pub struct BatchReading {
    decompressors: Arc<Pool<Decompressor>>,
    aside: Arc<Semaphore>,
}

impl Default for BatchReading {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // One core is always left to those who wait for something short.
        let aside = Arc::new(Semaphore::new(cores.saturating_sub(1).max(1)));
        Self { decompressors: Arc::default(), aside }
    }
}

impl BatchReading {
    /// What `read` makes of a batch, given a decompressor and the bytes that its records may have once decompressed; it
    /// may be called twice.
    pub async fn read<T: Send + 'static>(
        &self,
        batch: &[u8],
        read: impl Fn(&mut Decompressor, usize) -> Result<T, RecordError> + Send + 'static,
    ) -> Result<T, RecordError> {
        if let Some(done) = self.read_small(batch, &read) {
            return done;
        }
        let turn = self.aside.clone().acquire_owned().await;
        let decompressors = self.decompressors.clone();
        let reading = tokio::task::spawn_blocking(move || {
            // Given back when the work is done, whether or not anybody still waits for it.
            let _turn = turn;
            decompressors.with(|decompressor| read(decompressor, DECOMPRESSED_BYTES_MAX))
        });
        match reading.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime is going down, and the request with it.
            Err(_) => std::future::pending().await,
        }
    }
}

impl BatchReading {
    /// As [`Self::read`], of a batch that is small; `None` for a large one.
    pub fn read_small<T>(
        &self,
        batch: &[u8],
        read: impl Fn(&mut Decompressor, usize) -> Result<T, RecordError>,
    ) -> Option<Result<T, RecordError>> {
        let limit = prompt_limit(batch)?;
        match self.decompressors.with(|decompressor| read(decompressor, limit)) {
            Err(RecordError::DecompressedTooLarge { .. }) => None,
            done => Some(done),
        }
    }
}

/// How many bytes the records of a batch may have to be read at once; `None`: its header says already that it is a
/// large one.
fn prompt_limit(batch: &[u8]) -> Option<usize> {
    let compression = BatchHeader::parse(batch).and_then(|header| header.compression());
    let (bytes_max, limit) = match compression {
        Ok(Compression::None) => (PROMPT_PLAIN_BYTES, DECOMPRESSED_BYTES_MAX),
        Ok(_) => (PROMPT_COMPRESSED_BYTES, PROMPT_DECOMPRESSED_BYTES),
        // Refused at the first look.
        Err(_) => (usize::MAX, PROMPT_DECOMPRESSED_BYTES),
    };
    (batch.len() <= bytes_max).then_some(limit)
}

#[cfg(test)]
mod tests;
