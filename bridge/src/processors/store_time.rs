//! When a message was stored.

use super::Refusal;
use crate::backend::{Backend, BackendError, ReadRequest, Topic};
use crate::dispatch::Shared;
use crate::translate::message;

impl<B: Backend> Shared<B> {
    /// Store time of the last message at or before `offset`, milliseconds since 1970; `None` if
    /// there is no message at hand: deleted, or never there.
    pub(crate) async fn store_time_ms(
        &self,
        topic: &Topic,
        queue_id: i32,
        offset: i64,
    ) -> Result<Option<i64>, Refusal> {
        if offset < 0 {
            return Ok(None);
        }
        let (bytes_max, records_max) = (1, 1);
        let request =
            ReadRequest { topic, partition: queue_id, offset, bytes_max, records_max, tags: None };
        let read = match self.backend.read(request).await {
            Ok(read) => read,
            Err(
                BackendError::OffsetOutOfRange { .. }
                | BackendError::UnknownTopic { .. }
                | BackendError::UnknownPartition { .. }
                | BackendError::NotLeader { .. },
            ) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let batch = read.batches.first();
        Ok(batch.and_then(|batch| {
            let record = batch.decoded().record_at(offset)?;
            Some(message::store_time_ms(&record, batch.append_time_ms()))
        }))
    }
}
