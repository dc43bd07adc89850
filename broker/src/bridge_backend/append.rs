//! Sends: what is appended now, and what a timer keeps until its time.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use duolog_bridge::backend::{
    Appended, Durability, NewRecords, Result, Stored, TimedRecord, Topic,
};
use duolog_log_core::replication::partition::Acks;

use super::{BridgeBackend, error, timers};
use crate::clock;
use crate::config::FlushDiskType;
use crate::partitions::Partition;
use crate::partitions::append::{AppendError, Flush, Payload};

impl BridgeBackend {
    pub(super) async fn append_now(
        &self,
        topic: &Topic,
        partition: i32,
        records: NewRecords,
        durability: Durability,
    ) -> Result<Appended> {
        let partition = self.find(topic, partition)?;
        let flush = self.flush(durability);
        let bytes = records.as_slice().iter().map(|record| record.payload.len()).sum();
        // Placed in the first poll: nothing is awaited before this.
        let placed = partition
            .try_append(Payload::Records(records), bytes, Acks::Leader, flush)
            .map_err(|error| error::of(&partition, &error))?;
        begin_the_others().await;
        let answer = placed.begin().await.unwrap_or(Err(AppendError::Stopping));
        let appended = answer.map_err(|error| error::of(&partition, &error))?;
        let stored = match flush {
            Flush::Now => self.wait_synced(&partition, appended.last_offset + 1).await?,
            Flush::Within(_) | Flush::Topic => Stored::Ok,
        };
        Ok(Appended {
            base_offset: appended.base_offset,
            append_time_ms: appended.append_time_ms,
            partition_number: partition.number,
            stored,
        })
    }

    pub(super) async fn append_later(
        &self,
        topic: &Topic,
        partition: i32,
        timed: TimedRecord,
        durability: Durability,
    ) -> Result<Appended> {
        self.find(topic, partition)?;
        let stored = timers::store(&self.node, topic, partition, timed).await?;
        let append_time_ms = clock::now_ms();
        let outcome = match self.flush(durability) {
            Flush::Now => self.wait_synced(&stored.partition, stored.offset + 1).await?,
            Flush::Within(_) | Flush::Topic => Stored::Ok,
        };
        Ok(Appended {
            base_offset: stored.offset,
            append_time_ms,
            partition_number: stored.partition.number,
            stored: outcome,
        })
    }

    /// How soon a RocketMQ-written record has to be on disk, and whether the answer waits for it.
    pub(super) fn flush(&self, durability: Durability) -> Flush {
        let config = &self.node.config.rocketmq;
        match (config.flush_disk_type, durability) {
            (FlushDiskType::Sync, Durability::Configured) => Flush::Now,
            _ => Flush::Within(config.flush_interval_ms),
        }
    }

    /// Waits for the disk for as long as `syncFlushTimeout` says.
    pub(super) async fn wait_synced(&self, partition: &Arc<Partition>, end: i64) -> Result<Stored> {
        let config = &self.node.config.rocketmq;
        let timeout = Duration::from_millis(config.sync_flush_timeout_ms.max(0).unsigned_abs());
        match tokio::time::timeout(timeout, partition.synced_to(end)).await {
            Ok(Ok(())) => Ok(Stored::Ok),
            Ok(Err(error)) => Err(error::of(partition, &error)),
            Err(_) => Ok(Stored::FlushDiskTimeout),
        }
    }
}

/// Pending once. What the connection has read behind this request gets its place in the meantime
/// and is written with it.
async fn begin_the_others() {
    let mut begun = false;
    poll_fn(|context| {
        if mem::replace(&mut begun, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
