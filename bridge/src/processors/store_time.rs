//! When a message was stored.

use duolog_log_core::ids::TopicId;

use super::Refusal;
use crate::backend::{Backend, BackendError, ReadRequest, Topic};
use crate::dispatch::Shared;
use crate::translate::message;

impl<B: Backend> Shared<B> {
    /// One past the last message below `end`; see [`Backend::deliverable_end`]. 0 of a queue that
    /// is not there or cannot be read there.
    pub(crate) async fn deliverable_end(
        &self,
        topic: &Topic,
        queue_id: i32,
        end: i64,
    ) -> Result<i64, Refusal> {
        // The template has no queues of its own before somebody sends to it.
        if end <= 0 || topic.id == TopicId::ZERO {
            return Ok(0);
        }
        let end = self.backend.deliverable_end(topic, queue_id, end).await;
        Ok(if_readable(end)?.unwrap_or(0))
    }

    /// Store time of the last message below `end`, milliseconds since 1970; `None` if there is none.
    pub(crate) async fn last_store_time_ms(
        &self,
        topic: &Topic,
        queue_id: i32,
        end: i64,
    ) -> Result<Option<i64>, Refusal> {
        let last = self.deliverable_end(topic, queue_id, end).await?.saturating_sub(1);
        if last < 0 { Ok(None) } else { self.store_time_ms(topic, queue_id, last).await }
    }

    /// Store time of the first message at or after `offset`, milliseconds since 1970; `None` if
    /// none is at hand or it cannot be read.
    pub(crate) async fn store_time_ms(
        &self,
        topic: &Topic,
        queue_id: i32,
        offset: i64,
    ) -> Result<Option<i64>, Refusal> {
        let (bytes_max, records_max) = (1, 1);
        let request =
            ReadRequest { topic, partition: queue_id, offset, bytes_max, records_max, tags: None };
        let Some(read) = if_readable(self.backend.read(request).await)? else { return Ok(None) };
        let batch = read.batches.first();
        Ok(batch.and_then(|batch| {
            let record = batch.decoded().iter_from(offset).next()?;
            Some(message::store_time_ms(&record, batch.append_time_ms()))
        }))
    }
}

/// As [`if_there`]; `None` also where the log is damaged: what is said of other queues is true all the
/// same.
pub(super) fn if_readable<T>(found: Result<T, BackendError>) -> Result<Option<T>, Refusal> {
    match found {
        Err(BackendError::CorruptBatch { .. }) => Ok(None),
        found => if_there(found),
    }
}

/// What was found; `None` where there is nothing to find: deleted, moved away, or never there.
pub(super) fn if_there<T>(found: Result<T, BackendError>) -> Result<Option<T>, Refusal> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(
            BackendError::OffsetOutOfRange { .. }
            | BackendError::UnknownTopic { .. }
            | BackendError::UnknownPartition { .. }
            | BackendError::NotLeader { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
