//! What the bridge needs of a node, from the node's own parts.
//!
//! RocketMQ's sends, pulls, positions and heartbeats end in the same partitions, the same metadata
//! and the same coordinators as Kafka's.

mod append;
mod batches;
mod config;
mod earliest;
mod error;
mod groups;
mod half;
mod pop;
mod positions;
mod rates;
mod read;
mod timers;
mod topics;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use duolog_bridge::backend::{
    Appended, Backend, BackendError, Boundary, ClientFacts, CommittedOffset, ConsumerHeartbeat,
    Durability, GroupChange, GroupView, HalfEnding, HalfView, KeyHits, LOOK_FOR_TOPIC, Member,
    NewHalf, NewRecords, NodeConfig, PartitionView, Passage, QueueKey, ReadAnswer, ReadRequest,
    Recall, Result, RuntimeCounters, SubscriptionGroup, TimedRecord, Topic, TopicSpec, Wake,
};
use duolog_bridge::dispatch::Dispatcher;
use duolog_bridge::session::SessionId;
use duolog_coordinator::group::event::{ChannelId, ConsumerLeave, Event, MemberNotices};
use duolog_coordinator::group::response::Response;
use duolog_log_core::event::Events;
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::TopicId;

use self::batches::BatchCache;
use self::config::Configured;
use self::earliest::EarliestAppends;
use self::groups::Groups;
use self::half::CheckBack;
use self::pop::InflightNews;
pub use self::rates::Rates;
use crate::clock;
use crate::instruments;
use crate::limits::DECODED_CACHE_BYTES;
use crate::node::Node;
use crate::partitions::{Partition, Registration};

/// The node as the bridge sees it.
pub struct BridgeBackend {
    node: Arc<Node>,
    config: Configured,
    batches: BatchCache,
    earliest: EarliestAppends,
    groups: Arc<Groups>,
    rates: Arc<Rates>,
}

impl BridgeBackend {
    /// Builds the bridge over `node`, whose broker is reached at `broker_address`.
    pub fn dispatcher(node: Arc<Node>, broker_address: SocketAddr) -> Dispatcher<Self> {
        let groups = Arc::new(Groups::default());
        let rates = Rates::start(node.metrics.clone(), node.stopping.clone());
        let backend = Self {
            config: Configured::new(&node, broker_address),
            batches: BatchCache::new(DECODED_CACHE_BYTES),
            earliest: EarliestAppends::default(),
            groups: groups.clone(),
            rates,
            node: node.clone(),
        };
        let dispatcher = Dispatcher::new(backend);
        groups.connect(dispatcher.clone());
        node.coordinators.set_notices(groups);
        let checks = CheckBack::new(node.clone());
        checks.connect(dispatcher.clone());
        node.halves.set_checks(checks);
        let news = InflightNews::new(node.clone());
        news.connect(dispatcher.clone());
        node.inflight.start(news);
        dispatcher
    }

    /// Partition `index` of `topic` as it was looked up.
    fn find(&self, topic: &Topic, index: i32) -> Result<Arc<Partition>> {
        self.node.partitions.find(topic.id, index).ok_or_else(|| {
            let name = topic.name.to_string();
            if self.node.controller.image().topic_by_id(topic.id).is_none() {
                BackendError::UnknownTopic { topic: name }
            } else {
                BackendError::UnknownPartition { topic: name, partition: index }
            }
        })
    }

    fn view(partition: &Partition) -> PartitionView {
        let offsets = partition.offsets();
        PartitionView {
            log_start_offset: offsets.log_start,
            last_stable_offset: offsets.last_stable,
            bytes: partition.bytes(),
            number: partition.number,
        }
    }

    /// The group's own word on whether its members hear of changes.
    fn notices(&self, group: &str) -> MemberNotices {
        let image = self.node.controller.image();
        let own =
            image.subscription_group(group).is_none_or(|config| config.notify_consumer_ids_changed);
        if own && self.config().notify_consumer_ids_changed {
            MemberNotices::On
        } else {
            MemberNotices::Off
        }
    }
}

impl Backend for BridgeBackend {
    fn now_ms(&self) -> i64 {
        clock::now_ms()
    }

    fn events(&self) -> &Events {
        &self.node.instruments.events
    }

    async fn pass_gate(&self, point: GatePoint, subject: GateSubject<'_>) -> Passage {
        match self.node.instruments.pass(point, subject).await {
            instruments::Passage::Go => Passage::Go,
            instruments::Passage::Drop => Passage::Drop,
            instruments::Passage::Fail => Passage::Fail,
        }
    }

    fn config(&self) -> Arc<NodeConfig> {
        self.config.get(&self.node)
    }

    async fn counters(&self) -> RuntimeCounters {
        let metrics = &self.node.metrics;
        let mut counters = RuntimeCounters {
            started_ms: self.rates.started_ms(),
            records_in: metrics.records_in.value(),
            records_out: metrics.records_out(),
            bytes_in: metrics.bytes_in.value(),
            bytes_out: metrics.bytes_out(),
            earliest_append_ms: self.earliest.over_all(&self.node).await,
            disk_used_ratio: crate::system::disk_used_ratio(self.node.config.data_dir()),
            disk_bytes: crate::system::disk_bytes(self.node.config.data_dir()),
            data_dir: self.node.config.data_dir().display().to_string(),
            ..RuntimeCounters::default()
        };
        self.rates.fill(&mut counters);
        counters
    }

    fn count_delivered(&self, records: usize, bytes: usize) {
        self.node.metrics.rocketmq_out.add(records as u64, bytes as u64);
    }

    fn entry_address(&self, _client: SocketAddr) -> SocketAddr {
        self.config().broker_address
    }

    fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        self.node.controller.image().topic_by_alias(name).map(|topic| topic.queues.clone())
    }

    fn route(&self, topic: &Arc<Topic>) -> Option<Arc<Topic>> {
        self.node.controller.routes().shown(topic)
    }

    fn topics(&self) -> Vec<Arc<Topic>> {
        let topics = self.node.controller.image().topics_sorted();
        topics.iter().map(|topic| topic.queues.clone()).collect()
    }

    fn partition_by_number(&self, number: u32) -> Option<(Arc<Topic>, i32)> {
        let image = self.node.controller.image();
        image.topics().find_map(|topic| {
            let index = topic.numbers.iter().position(|known| *known == number)?;
            Some((topic.queues.clone(), i32::try_from(index).ok()?))
        })
    }

    async fn create_topic(&self, spec: TopicSpec) -> Result<Arc<Topic>> {
        topics::create(&self.node, &spec).await
    }

    async fn put_topic(&self, spec: TopicSpec) -> Result<Arc<Topic>> {
        topics::put(&self.node, &spec).await
    }

    async fn delete_topic(&self, topic: &Topic) -> Result<()> {
        self.batches.forget(topic.id);
        let deleted = self.node.delete_topic(topic.id).await;
        deleted.map_err(|error| error::of_controller(&topic.name, &error))
    }

    async fn append(
        &self,
        topic: &Topic,
        partition: i32,
        records: NewRecords,
        durability: Durability,
    ) -> Result<Appended> {
        self.append_now(topic, partition, records, durability).await
    }

    async fn append_timed(
        &self,
        topic: &Topic,
        partition: i32,
        timed: TimedRecord,
        durability: Durability,
    ) -> Result<Appended> {
        self.append_later(topic, partition, timed, durability).await
    }

    async fn recall_timed(&self, topic: &Topic, recall: Recall<'_>) -> Result<bool> {
        timers::recall(&self.node, topic, recall).await
    }

    fn has_locked_queues(&self, group: &str) -> bool {
        self.node.coordinators.has_locked_queues(group)
    }

    async fn store_half(&self, half: NewHalf, durability: Durability) -> Result<Appended> {
        self.put_half(half, durability).await
    }

    async fn half(&self, partition_number: u32, offset: i64) -> Result<Option<HalfView>> {
        self.find_half(partition_number, offset).await
    }

    async fn end_half(
        &self,
        half: &HalfView,
        ending: HalfEnding,
        client: Arc<str>,
    ) -> Result<bool> {
        self.decide_half(half, ending, client).await
    }

    async fn partition(&self, topic: &Topic, partition: i32) -> Option<PartitionView> {
        let partition = self.node.partitions.find(topic.id, partition)?;
        if !partition.offsets_are_known() {
            // Only the log knows its end.
            partition.reader().await.ok()?;
        }
        Some(Self::view(&partition))
    }

    async fn deliverable_end(&self, topic: &Topic, partition: i32, end: i64) -> Result<i64> {
        let partition = self.find(topic, partition)?;
        read::deliverable_end(&partition, end).await
    }

    async fn read(&self, request: ReadRequest<'_>) -> Result<ReadAnswer> {
        let partition = self.find(request.topic, request.partition)?;
        read::read(&self.node, &self.batches, &partition, &request).await
    }

    async fn wait_beyond(&self, topic: &Topic, partition: i32, offset: i64) -> Wake {
        let stopping = &self.node.stopping;
        if topic.id == TopicId::ZERO {
            return tokio::select! {
                () = tokio::time::sleep(LOOK_FOR_TOPIC) => Wake::Gone,
                () = stopping.cancelled() => Wake::Stopping,
            };
        }
        let Some(partition) = self.node.partitions.find(topic.id, partition) else {
            return Wake::Gone;
        };
        loop {
            let registration = Registration::new(vec![partition.clone()]);
            if partition.offsets().last_stable > offset {
                return Wake::Advanced;
            }
            if partition.is_gone() || partition.is_offline() {
                return Wake::Gone;
            }
            tokio::select! {
                () = registration.moved() => {}
                () = stopping.cancelled() => return Wake::Stopping,
            }
        }
    }

    async fn search_append_time(
        &self,
        topic: &Topic,
        partition: i32,
        time_ms: i64,
        boundary: Boundary,
    ) -> Result<Option<i64>> {
        let partition = self.find(topic, partition)?;
        read::search_append_time(&partition, time_ms, boundary).await
    }

    async fn find_key(
        &self,
        topic: &Topic,
        partition: i32,
        hash: u32,
        range: Range<i64>,
    ) -> Result<KeyHits> {
        let partition = self.find(topic, partition)?;
        read::find_key(&partition, topic.key_index.rule(), hash, range).await
    }

    async fn committed_offset(
        &self,
        group: &str,
        topic: &Topic,
        partition: i32,
    ) -> Result<Option<i64>> {
        positions::committed(&self.node, group, topic, partition).await
    }

    async fn committed_offsets(&self, group: &str) -> Result<Vec<CommittedOffset>> {
        positions::all(&self.node, group).await
    }

    fn groups_with_any_position(&self) -> Vec<String> {
        positions::groups(&self.node, |image| !image.offsets.is_empty())
    }

    fn groups_with_positions(&self, topic: &Topic) -> Vec<String> {
        positions::groups(&self.node, |image| image.offsets.contains_key(&topic.name))
    }

    async fn delete_positions(&self, group: &str) -> Result<()> {
        positions::delete(&self.node, group).await
    }

    async fn commit_offset(
        &self,
        group: &str,
        topic: &Topic,
        partition: i32,
        offset: i64,
    ) -> Result<()> {
        self.open_coordinators(group).await?;
        positions::commit(&self.node, group, topic, (partition, offset)).await
    }

    fn commit_offset_unanswered(&self, group: &str, topic: &Topic, partition: i32, offset: i64) {
        positions::commit_unanswered(&self.node, group, topic, (partition, offset));
    }

    async fn consumer_heartbeat(&self, heartbeat: ConsumerHeartbeat) -> Result<GroupChange> {
        self.open_coordinators(&heartbeat.group).await?;
        let group = heartbeat.group.clone();
        let event = groups::heartbeat(heartbeat);
        match self.node.coordinators.request(&group, event).await {
            Ok(Response::ConsumerHeartbeat(change)) => {
                Ok(GroupChange { members: change.members, subscriptions: change.subscriptions })
            }
            Ok(_) => Err(BackendError::CoordinatorNotReady { group: group.to_string() }),
            Err(error) => Err(error::of_group(&group, &error)),
        }
    }

    async fn consumer_leave(&self, group: &str, client_id: &str) -> Result<()> {
        if !self.node.coordinators.exist() {
            return Ok(());
        }
        let event = Event::ConsumerLeave(ConsumerLeave {
            group: group.into(),
            client: client_id.into(),
            notices: self.notices(group),
        });
        let answer = self.node.coordinators.request(group, event).await;
        answer.map(|_| ()).map_err(|error| error::of_group(group, &error))
    }

    async fn producer_heartbeat(&self, group: &str, client: ClientFacts) -> Result<()> {
        self.open_coordinators(group).await?;
        groups::producer_heartbeat(&self.node, group, client).await
    }

    async fn producer_leave(&self, group: &str, client_id: &str) -> Result<()> {
        groups::producer_leave(&self.node, group, client_id).await
    }

    async fn producer_group(&self, group: &str) -> Result<Vec<Member>> {
        groups::producer_group(&self.node, group).await
    }

    async fn lock_queues(
        &self,
        group: &str,
        client_id: &str,
        queues: Vec<QueueKey>,
    ) -> Result<Vec<bool>> {
        self.open_coordinators(group).await?;
        let event = Event::LockQueues(groups::lock_request(group, client_id, queues));
        match self.node.coordinators.request(group, event).await {
            Ok(Response::LockQueues(held)) => Ok(held),
            Ok(_) => Err(BackendError::CoordinatorNotReady { group: group.to_owned() }),
            Err(error) => Err(error::of_group(group, &error)),
        }
    }

    async fn unlock_queues(
        &self,
        group: &str,
        client_id: &str,
        queues: Vec<QueueKey>,
    ) -> Result<()> {
        if !self.node.coordinators.exist() {
            return Ok(());
        }
        let event = Event::UnlockQueues(groups::lock_request(group, client_id, queues));
        let answer = self.node.coordinators.request(group, event).await;
        answer.map(|_| ()).map_err(|error| error::of_group(group, &error))
    }

    fn session_closed(&self, session: SessionId) {
        self.node.coordinators.channel_closed(ChannelId(session.0));
    }

    fn group(&self, name: &str) -> Option<Arc<GroupView>> {
        self.groups.view(name)
    }

    fn subscription_group(&self, name: &str) -> Option<Arc<SubscriptionGroup>> {
        self.node.controller.image().subscription_group(name).cloned()
    }

    fn subscription_groups(&self) -> Vec<Arc<SubscriptionGroup>> {
        self.node.controller.image().subscription_groups()
    }

    async fn delete_subscription_group(&self, name: &str) -> Result<()> {
        let deleted = self.node.controller.delete_subscription_group(name).await;
        deleted.map_err(|error| error::of_controller(name, &error))
    }

    async fn put_subscription_group(&self, config: SubscriptionGroup) -> Result<()> {
        let name = config.name.clone();
        let put = self.node.controller.put_subscription_group(config).await;
        put.map_err(|error| error::of_controller(&name, &error))
    }

    fn settings(&self) -> BTreeMap<String, String> {
        config::all(&self.node)
    }

    async fn put_settings(&self, settings: BTreeMap<String, String>) -> Result<()> {
        config::put(&self.node, settings).await
    }

    fn apply_retention(&self) {
        crate::partitions::housekeeping::keep_house_now(&self.node);
    }

    fn has_kv_configs(&self, namespace: &str) -> bool {
        self.node.controller.image().has_kv_of(namespace)
    }

    fn kv_config(&self, namespace: &str, key: &str) -> Option<String> {
        self.node.controller.image().kv(namespace, key).cloned()
    }

    fn kv_configs(&self, namespace: &str) -> BTreeMap<String, String> {
        self.node.controller.image().kv_of(namespace)
    }

    async fn put_kv_config(&self, namespace: &str, key: &str, value: Option<String>) -> Result<()> {
        let put = self.node.controller.put_kv(namespace, key, value).await;
        put.map_err(|error| error::of_controller(key, &error))
    }
}

impl BridgeBackend {
    async fn open_coordinators(&self, group: &str) -> Result<()> {
        let opened = self.node.open_coordinators().await;
        opened.map_err(|_| BackendError::CoordinatorNotReady { group: group.to_owned() })
    }
}

#[cfg(test)]
mod tests;
