//! What follows from news of messages in hand: held pops look again, positions are committed, and what
//! was delivered too often is copied to the dead letters.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use duolog_bridge::backend::{
    Backend, BackendError, PERM_READ, PERM_WRITE, ReadRequest, Topic, TopicSpec,
};
use duolog_bridge::dispatch::Dispatcher;
use duolog_bridge::translate::again::{Again, Grave};
use duolog_bridge::translate::names;
use duolog_coordinator::delivery::StoredMessage;
use duolog_coordinator::group::event::OwnPositions;
use duolog_coordinator::inflight::event::{Ask, Response};
use duolog_coordinator::record::share::SharePartition;
use duolog_log_core::ids::TopicPartition;
use parking_lot::Mutex;

use super::super::{BridgeBackend, positions};
use crate::clock;
use crate::coordinators::inflight::InflightSink;
use crate::node::Node;

/// Between two attempts at what failed.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Positions of one window are committed no oftener.
const PACE: Duration = Duration::from_millis(20);

/// Dead messages that are buried in one go.
const DEAD_AT_ONCE: usize = 32;

/// Acts on news of messages in hand.
pub(in crate::bridge_backend) struct InflightNews {
    node: Arc<Node>,
    dispatcher: OnceLock<Dispatcher<BridgeBackend>>,
    /// Windows whose dead are being buried, and whether there was news since the last look.
    burying: Mutex<BTreeMap<SharePartition, bool>>,
    this: Weak<Self>,
}

impl InflightNews {
    pub(in crate::bridge_backend) fn new(node: Arc<Node>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            node,
            dispatcher: OnceLock::new(),
            burying: Mutex::default(),
            this: this.clone(),
        })
    }

    /// Says, once, through whom held pops are reached.
    pub(in crate::bridge_backend) fn connect(&self, dispatcher: Dispatcher<BridgeBackend>) {
        // There is one bridge.
        let _ = self.dispatcher.set(dispatcher);
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.node.stopping.clone();
        self.node.background.spawn(async move {
            tokio::select! {
                // What is left to do, the next start does.
                () = stopping.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// The topic of a window, as long as there is one.
    fn topic(&self, share: &SharePartition) -> Option<Arc<Topic>> {
        let image = self.node.controller.image();
        image.topic_by_id(share.topic).map(|topic| topic.queues.clone())
    }
}

impl InflightSink for InflightNews {
    fn ready(&self, share: &SharePartition) {
        if let Some(dispatcher) = self.dispatcher.get() {
            dispatcher.pop_ready(&share.group, share.topic, share.partition);
        }
    }

    fn dead(&self, share: SharePartition) {
        let Some(this) = self.this.upgrade() else { return };
        if self.burying.lock().insert(share.clone(), true).is_none() {
            self.spawn(async move { this.bury_all(&share).await });
        }
    }

    fn position(&self, share: SharePartition, own: OwnPositions, offset: i64) {
        let Some(this) = self.this.upgrade() else { return };
        self.spawn(async move {
            while let Err(error) = this.commit(&share, own, offset).await {
                let (group, partition) = (&share.group, share.partition);
                tracing::debug!(%group, partition, offset, %error, "a position is committed later");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        });
    }
}

impl InflightNews {
    async fn commit(
        &self,
        share: &SharePartition,
        own: OwnPositions,
        offset: i64,
    ) -> Result<(), BackendError> {
        let Some(topic) = self.topic(share) else { return Ok(()) };
        let (node, group) = (&self.node, &share.group);
        if !node.inflight.is_committing(share, offset) {
            // Another word came while this was tried.
            return Ok(());
        }
        let position = (share.partition, offset);
        let now = positions::replace(node, group, &topic, position, own).await?;
        let is_own = now == Some(offset);
        if is_own {
            tokio::time::sleep(PACE).await;
        }
        // A power cut brings an older position back, which nobody has set anew.
        let patience_ms = if is_own { node.config.rocketmq.flush_interval_ms } else { 0 };
        positions::on_disk(node, group, patience_ms).await?;
        let word = if is_own { Ask::Committed(offset) } else { Ask::Overruled { offset, by: now } };
        node.inflight
            .ask(share, word)
            .await
            .map(drop)
            .map_err(|error| super::refusal(group, &error))
    }

    async fn bury_all(&self, share: &SharePartition) {
        while self.has_news(share) {
            loop {
                let dead = self.node.inflight.dead(share, DEAD_AT_ONCE);
                if dead.is_empty() {
                    break;
                }
                for (offset, deliveries) in dead {
                    if let Err(error) = self.bury(share, offset, deliveries).await {
                        let (group, partition) = (&share.group, share.partition);
                        tracing::debug!(%group, partition, offset, error, "a message is buried later");
                        tokio::time::sleep(RETRY_DELAY).await;
                    }
                }
            }
        }
    }

    /// Whether there was news of dead since this was asked; if not, nobody looks any more.
    fn has_news(&self, share: &SharePartition) -> bool {
        let mut burying = self.burying.lock();
        let Entry::Occupied(mut entry) = burying.entry(share.clone()) else { return false };
        let has_news = std::mem::take(entry.get_mut());
        if !has_news {
            entry.remove();
        }
        has_news
    }

    /// Errors are in words.
    async fn bury(
        &self,
        share: &SharePartition,
        offset: i64,
        deliveries: u16,
    ) -> Result<(), String> {
        let dispatcher = self.dispatcher.get().ok_or("the bridge is not there yet")?;
        let copy = match self.topic(share) {
            Some(topic) => {
                self.copy(dispatcher.backend(), share, &topic, offset, deliveries).await?
            }
            None => None,
        };
        let group = &share.group;
        let answer = self.node.inflight.ask(share, Ask::Bury { offset, copy: copy.clone() }).await;
        if answer.map_err(|error| error.to_string())? == Response::Buried(true) {
            match copy {
                Some((target, _)) => tracing::debug!(%group, offset, deliveries, %target.topic,
                    "a message was popped too often and goes to the dead letters"),
                None => tracing::warn!(%group, offset, deliveries,
                    "a message was popped too often and there is no copy of it"),
            }
        }
        Ok(())
    }

    /// The copy of a message and where it goes; `None` if there is no such message any more.
    async fn copy(
        &self,
        backend: &BridgeBackend,
        share: &SharePartition,
        topic: &Topic,
        offset: i64,
        deliveries: u16,
    ) -> Result<Option<(TopicPartition, StoredMessage)>, String> {
        let read = backend.read(ReadRequest {
            topic,
            partition: share.partition,
            offset,
            bytes_max: 1,
            records_max: 1,
            tags: None,
        });
        let answer = match read.await {
            Ok(answer) => answer,
            Err(BackendError::OffsetOutOfRange { .. } | BackendError::CorruptBatch { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        };
        let batch = answer.batches.iter().find(|batch| batch.next_offset() > offset);
        let Some((batch, record)) =
            batch.and_then(|batch| Some((batch, batch.decoded().record_at(offset)?)))
        else {
            return Ok(None);
        };
        let again = Again::of(&record, batch.door(&topic.name));
        let again = again.with_reconsume_times(i32::from(deliveries.saturating_sub(1)));
        let grave = Grave {
            topic: &names::shown_topic(&topic.name),
            partition_number: answer.view.number,
            offset,
            store_host: backend.config().broker_address,
        };
        let Some(record) = again.dead(&grave, clock::now_ms()) else { return Ok(None) };
        let shown = format!("%DLQ%{}", share.group);
        let Ok(name) = names::stored_topic(&shown) else { return Ok(None) };
        let spec = TopicSpec {
            name: Arc::from(&*name),
            read_queues: 1,
            write_queues: 1,
            perm: PERM_READ | PERM_WRITE,
            sys_flag: 0,
            order: false,
            attributes: std::collections::BTreeMap::new(),
        };
        let target = backend.create_topic(spec).await.map_err(|error| error.to_string())?;
        let message = StoredMessage { timestamp_ms: record.timestamp_ms, payload: record.payload };
        Ok(Some((TopicPartition::new(&*target.name, 0), message)))
    }
}
