//! Half messages between the bridge's words and the coordinators'.

mod check_back;

use std::sync::Arc;

use duolog_bridge::backend::{
    Appended, BackendError, Durability, HalfEnding, HalfView, NewHalf, Result, Stored,
};
use duolog_coordinator::delivery::StoredMessage;
use duolog_coordinator::record::half::{HalfMessage, Immunity};
use duolog_coordinator::txn::rocketmq::error::HalfError;
use duolog_coordinator::txn::rocketmq::event::Ending;
use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::ids::{Offset, TopicPartition};

pub(super) use self::check_back::CheckBack;
use super::BridgeBackend;
use crate::clock;
use crate::node::Node;
use crate::partitions::append::Flush;

impl BridgeBackend {
    pub(super) async fn put_half(&self, half: NewHalf, durability: Durability) -> Result<Appended> {
        let target = TopicPartition::new(&*half.topic, half.queue_id);
        let (group, client) = (half.group.clone(), half.client_id.clone());
        let message = HalfMessage {
            target: target.clone(),
            group: half.group,
            client: half.client_id,
            immunity: Immunity::of_property(half.immunity.as_deref()),
            born_ms: half.born_ms,
            message: StoredMessage {
                timestamp_ms: half.record.timestamp_ms,
                payload: half.record.payload,
            },
        };
        let stored = self.node.halves.store(message).await;
        let stored =
            stored.map_err(|error| refusal(self.node.config.rocketmq.max_message_size, &error))?;
        let told = (EventKind::HalfStore, &target, stored.offset);
        tell(&self.node, told, client, || format!("group {group}"));
        let flushed = match self.flush(durability) {
            Flush::Now => self.wait_synced(&stored.partition, stored.offset + 1).await?,
            Flush::Within(_) | Flush::Topic => Stored::Ok,
        };
        Ok(Appended {
            base_offset: stored.offset,
            append_time_ms: clock::now_ms(),
            partition_number: stored.partition.number,
            stored: flushed,
        })
    }

    pub(super) async fn find_half(&self, number: u32, offset: i64) -> Result<Option<HalfView>> {
        let halves = &self.node.halves;
        let Some(index) = halves.index_of(number) else { return Ok(None) };
        let found = halves.find(index, &[offset]).await;
        let found = found
            .map_err(|error| refusal(self.node.config.rocketmq.max_message_size, &error))?
            .pop()
            .flatten();
        Ok(found.map(|half| HalfView {
            partition_number: number,
            offset,
            topic: half.target.topic,
            queue_id: half.target.partition,
            group: half.group,
            born_ms: half.born_ms,
            unasked_ms: halves.unasked_ms(half.immunity),
        }))
    }

    pub(super) async fn decide_half(
        &self,
        half: &HalfView,
        ending: HalfEnding,
        client: Arc<str>,
    ) -> Result<bool> {
        let halves = &self.node.halves;
        let Some(index) = halves.index_of(half.partition_number) else { return Ok(false) };
        let target = TopicPartition::new(&*half.topic, half.queue_id);
        let (kind, ending) = match ending {
            HalfEnding::Commit => (EventKind::HalfCommit, Ending::Commit(target.clone())),
            HalfEnding::Rollback => (EventKind::HalfRollback, Ending::Rollback),
        };
        let ended = halves.end(index, half.offset, ending).await;
        let ended =
            ended.map_err(|error| refusal(self.node.config.rocketmq.max_message_size, &error))?;
        if ended {
            let told = (kind, &target, half.offset);
            tell(&self.node, told, client, || format!("group {}", half.group));
        }
        Ok(ended)
    }
}

/// Tells what happened to a half message: the kind, where it goes, where it lies.
fn tell(
    node: &Node,
    (kind, target, offset): (EventKind, &TopicPartition, i64),
    client: Arc<str>,
    cause: impl FnOnce() -> String,
) {
    node.instruments.events.emit(|| {
        Event::new(kind, clock::now_ms())
            .at(&target.topic, target.partition)
            .offset(Offset(offset))
            .protocol(Protocol::RocketMq)
            .client(client)
            .cause(cause())
    });
}

/// What a coordinator's refusal is, where a body may have so many bytes.
fn refusal(message_size_max: i32, error: &HalfError) -> BackendError {
    match error {
        HalfError::TooMany => BackendError::LimitReached { reason: error.to_string() },
        HalfError::TooLarge => {
            let bytes_max = usize::try_from(message_size_max).unwrap_or_default();
            BackendError::RecordTooLarge { bytes: bytes_max.saturating_add(1), bytes_max }
        }
        HalfError::NotCoordinator | HalfError::Loading | HalfError::NotAvailable => {
            BackendError::NotWritable { reason: error.to_string() }
        }
    }
}

#[cfg(test)]
mod tests;
