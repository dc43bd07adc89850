//! The port, as the node in memory implements it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use duolog_log_core::event::Events;
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::TopicId;

use super::FakeBackend;
use super::state::Log;
use crate::backend::{
    Appended, Backend, BackendError, Boundary, ClientFacts, CommittedOffset, ConsumerHeartbeat,
    Durability, GroupChange, GroupView, HalfEnding, HalfView, KeyHits, LOOK_FOR_TOPIC, Member,
    NewHalf, NewRecords, NodeConfig, PartitionView, Passage, QueueKey, ReadAnswer, ReadRequest,
    Recall, Result, RuntimeCounters, Stored, SubscriptionGroup, TimedRecord, Topic, TopicSpec,
    Wake,
};
use crate::session::SessionId;

/// The partition of all that waits.
const TIMERS_NUMBER: u32 = 9;
/// The cluster-wide number of where half messages lie.
const HALF_PARTITION: u32 = 77;

fn payloads(records: &NewRecords) -> Vec<(i64, Vec<u8>)> {
    records.as_slice().iter().map(|one| (one.timestamp_ms, one.payload.to_vec())).collect()
}

impl Backend for FakeBackend {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn events(&self) -> &Events {
        &self.events
    }

    async fn pass_gate(&self, point: GatePoint, _subject: GateSubject<'_>) -> Passage {
        self.state.lock().gates.get(&point).copied().unwrap_or(Passage::Go)
    }

    fn config(&self) -> Arc<NodeConfig> {
        Arc::clone(&self.config.lock())
    }

    fn count_delivered(&self, _records: usize, _bytes: usize) {}

    async fn counters(&self) -> RuntimeCounters {
        RuntimeCounters {
            started_ms: 1_700_000_000_000,
            records_in: 7,
            records_out: 5,
            data_dir: "/data".into(),
            ..RuntimeCounters::default()
        }
    }

    fn entry_address(&self, _client: SocketAddr) -> SocketAddr {
        self.config().broker_address
    }

    fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        let state = self.state.lock();
        let alias = || state.topics.values().find(|topic| topic.name.replace('.', "_") == name);
        state.topics.get(name).or_else(alias).cloned()
    }

    fn route(&self, topic: &Arc<Topic>) -> Option<Arc<Topic>> {
        (!self.state.lock().unpublished.contains(&topic.id)).then(|| Arc::clone(topic))
    }

    fn topics(&self) -> Vec<Arc<Topic>> {
        self.state.lock().topics.values().cloned().collect()
    }

    fn partition_by_number(&self, number: u32) -> Option<(Arc<Topic>, i32)> {
        let state = self.state.lock();
        let ((id, partition), _) = state.logs.iter().find(|(_, log)| log.number == number)?;
        let topic = state.topics.values().find(|topic| topic.id == *id)?;
        Some((Arc::clone(topic), *partition))
    }

    async fn create_topic(&self, spec: TopicSpec) -> Result<Arc<Topic>> {
        let mut state = self.state.lock();
        match state.topics.get(&spec.name).cloned() {
            Some(topic) => Ok(topic),
            None => state.put_spec(&spec),
        }
    }

    async fn put_topic(&self, spec: TopicSpec) -> Result<Arc<Topic>> {
        self.state.lock().put_spec(&spec)
    }

    async fn delete_topic(&self, topic: &Topic) -> Result<()> {
        {
            let mut state = self.state.lock();
            state.served(topic, 0)?;
            state.topics.remove(&topic.name);
            state.logs.retain(|(id, _), _| *id != topic.id);
            state.offsets.retain(|(_, name, _), _| *name != topic.name);
        }
        self.notify();
        Ok(())
    }

    async fn append(
        &self,
        topic: &Topic,
        partition: i32,
        records: NewRecords,
        durability: Durability,
    ) -> Result<Appended> {
        let append_time_ms = self.now_ms();
        let appended = {
            let mut state = self.state.lock();
            state.served(topic, partition)?;
            state.appends.push(durability);
            let stored = state.append_answer.take().unwrap_or(Ok(Stored::Ok))?;
            let log = state.log(&topic.name, partition);
            let base_offset = log.append(append_time_ms, payloads(&records));
            Appended { base_offset, append_time_ms, partition_number: log.number, stored }
        };
        self.notify();
        Ok(appended)
    }

    async fn append_timed(
        &self,
        topic: &Topic,
        partition: i32,
        timed: TimedRecord,
        durability: Durability,
    ) -> Result<Appended> {
        let append_time_ms = self.now_ms();
        let mut state = self.state.lock();
        state.served(topic, partition)?;
        state.appends.push(durability);
        let stored = state.append_answer.take().unwrap_or(Ok(Stored::Ok))?;
        let base_offset = state.timers.len() as i64;
        state.timers.push(Some((topic.name.clone(), partition, timed)));
        Ok(Appended { base_offset, append_time_ms, partition_number: TIMERS_NUMBER, stored })
    }

    async fn recall_timed(&self, topic: &Topic, recall: Recall<'_>) -> Result<bool> {
        let mut state = self.state.lock();
        let is_it = |waiting: &Option<(Arc<str>, i32, TimedRecord)>| {
            waiting.as_ref().is_some_and(|(name, _, timed)| {
                *name == topic.name
                    && *timed.id == *recall.id
                    && (recall.from_ms..recall.to_ms).contains(&timed.due_ms)
            })
        };
        let found = state.timers.iter_mut().find(|waiting| is_it(waiting));
        Ok(found.and_then(Option::take).is_some())
    }

    fn has_locked_queues(&self, group: &str) -> bool {
        self.state.lock().locks.keys().any(|(of, _)| of == group)
    }

    async fn store_half(&self, half: NewHalf, durability: Durability) -> Result<Appended> {
        let mut state = self.state.lock();
        state.appends.push(durability);
        let stored = state.append_answer.take().unwrap_or(Ok(Stored::Ok))?;
        let base_offset = state.halves.len() as i64;
        state.halves.push((half, None));
        let append_time_ms = self.now_ms();
        Ok(Appended { base_offset, append_time_ms, partition_number: HALF_PARTITION, stored })
    }

    async fn half(&self, partition_number: u32, offset: i64) -> Result<Option<HalfView>> {
        let state = self.state.lock();
        let found = usize::try_from(offset).ok().and_then(|offset| state.halves.get(offset));
        Ok(found.filter(|_| partition_number == HALF_PARTITION).map(|(half, _)| HalfView {
            partition_number,
            offset,
            topic: Arc::clone(&half.topic),
            queue_id: half.queue_id,
            group: Arc::clone(&half.group),
            born_ms: half.born_ms,
            unasked_ms: half
                .immunity
                .as_ref()
                .map(|text| (text.parse().unwrap_or(0) * 1_000).max(6_000)),
        }))
    }

    async fn end_half(
        &self,
        half: &HalfView,
        ending: HalfEnding,
        client: Arc<str>,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        state.enders.push(client.to_string());
        let offset = usize::try_from(half.offset).expect("of a half message");
        let (stored, ended) = state.halves.get_mut(offset).expect("a half message");
        if ended.is_some() {
            return Ok(false);
        }
        *ended = Some(ending);
        if ending == HalfEnding::Commit {
            let (topic, queue_id) = (Arc::clone(&stored.topic), stored.queue_id);
            let record = (stored.record.timestamp_ms, stored.record.payload.to_vec());
            state.log(&topic, queue_id).append(self.now_ms(), vec![record]);
        }
        Ok(true)
    }

    async fn partition(&self, topic: &Topic, partition: i32) -> Option<PartitionView> {
        self.state.lock().served(topic, partition).ok().map(Log::view)
    }

    async fn deliverable_end(&self, topic: &Topic, partition: i32, end: i64) -> Result<i64> {
        self.state.lock().served(topic, partition)?.deliverable_end(end)
    }

    async fn read(&self, request: ReadRequest<'_>) -> Result<ReadAnswer> {
        let (name, partition) = (request.topic.name.clone(), request.partition);
        let answer = self.state.lock().served(request.topic, partition)?.read(request);
        let each = self.state.lock().next_busy_read();
        if let Some(each) = each {
            tokio::time::advance(each).await;
            self.write_tagged(&name, partition, &[("A", "meanwhile")]);
        }
        answer
    }

    async fn wait_beyond(&self, topic: &Topic, partition: i32, offset: i64) -> Wake {
        let mut changes = self.changed.subscribe();
        if topic.id == TopicId::ZERO {
            tokio::time::sleep(LOOK_FOR_TOPIC).await;
        }
        loop {
            {
                let state = self.state.lock();
                match state.served(topic, partition) {
                    _ if state.stopping => return Wake::Stopping,
                    Err(_) => return Wake::Gone,
                    Ok(log) if log.end > offset => return Wake::Advanced,
                    Ok(_) => {}
                }
            }
            if changes.changed().await.is_err() {
                return Wake::Stopping;
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
        let state = self.state.lock();
        let log = state.served(topic, partition)?;
        Ok(match boundary {
            Boundary::Lower => log
                .batches
                .iter()
                .find(|batch| batch.append_time_ms() >= time_ms)
                .map(|batch| batch.base_offset().max(log.start)),
            Boundary::Upper => log
                .batches
                .iter()
                .rfind(|batch| batch.append_time_ms() <= time_ms)
                .map(|batch| batch.next_offset() - 1),
        })
    }

    async fn find_key(
        &self,
        topic: &Topic,
        partition: i32,
        hash: u32,
        range: Range<i64>,
    ) -> Result<KeyHits> {
        let state = self.state.lock();
        let log = state.served(topic, partition)?;
        let rule = topic.key_index.rule();
        let mut hits = KeyHits { end_offset: range.start, ..KeyHits::default() };
        if state.index_end.is_some_and(|end| end <= range.start) {
            return Ok(hits);
        }
        hits.end_offset = range.end.min(state.index_end.unwrap_or(i64::MAX));
        for batch in &log.batches {
            for record in batch.decoded() {
                let mut has_it = false;
                (rule.keys_of)(&record, &mut |known| has_it |= known == hash);
                if has_it && (range.start..hits.end_offset).contains(&record.offset) {
                    hits.offsets.push(record.offset);
                }
            }
        }
        Ok(hits)
    }

    async fn committed_offset(
        &self,
        group: &str,
        topic: &Topic,
        partition: i32,
    ) -> Result<Option<i64>> {
        Ok(self.committed(group, &topic.name, partition))
    }

    async fn committed_offsets(&self, group: &str) -> Result<Vec<CommittedOffset>> {
        let state = self.state.lock();
        let of_group = state.offsets.iter().filter(|((name, ..), _)| name == group);
        let committed = of_group.map(|((_, topic, partition), offset)| CommittedOffset {
            topic: Arc::clone(topic),
            partition: *partition,
            offset: *offset,
        });
        Ok(committed.collect())
    }

    fn groups_with_any_position(&self) -> Vec<String> {
        let state = self.state.lock();
        let groups: BTreeSet<String> =
            state.offsets.keys().map(|(group, ..)| group.clone()).collect();
        groups.into_iter().collect()
    }

    fn groups_with_positions(&self, topic: &Topic) -> Vec<String> {
        let state = self.state.lock();
        let on_topic = state.offsets.keys().filter(|(_, name, _)| *name == topic.name);
        let groups: BTreeSet<String> = on_topic.map(|(group, ..)| group.clone()).collect();
        groups.into_iter().collect()
    }

    async fn delete_positions(&self, group: &str) -> Result<()> {
        self.state.lock().offsets.retain(|(name, ..), _| name != group);
        Ok(())
    }

    async fn commit_offset(
        &self,
        group: &str,
        topic: &Topic,
        partition: i32,
        offset: i64,
    ) -> Result<()> {
        self.commit_offset_unanswered(group, topic, partition, offset);
        Ok(())
    }

    fn commit_offset_unanswered(&self, group: &str, topic: &Topic, partition: i32, offset: i64) {
        let key = (group.to_owned(), Arc::clone(&topic.name), partition);
        self.state.lock().offsets.insert(key, offset);
    }

    async fn consumer_heartbeat(&self, heartbeat: ConsumerHeartbeat) -> Result<GroupChange> {
        let now_ms = self.now_ms();
        Ok(self.state.lock().heartbeat(heartbeat, now_ms))
    }

    async fn consumer_leave(&self, group: &str, client_id: &str) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(view) = state.groups.get_mut(group) {
            view.members.retain(|member| &*member.client.client_id != client_id);
            if view.members.is_empty() {
                state.groups.remove(group);
            }
        }
        Ok(())
    }

    async fn producer_heartbeat(&self, group: &str, client: ClientFacts) -> Result<()> {
        let mut state = self.state.lock();
        let last_heartbeat_ms = self.now_ms();
        let members = state.producers_of(group)?;
        members.insert(client.client_id.clone(), Member { client, last_heartbeat_ms });
        Ok(())
    }

    async fn producer_leave(&self, group: &str, client_id: &str) -> Result<()> {
        self.state.lock().producers_of(group)?.remove(client_id);
        Ok(())
    }

    async fn producer_group(&self, group: &str) -> Result<Vec<Member>> {
        let state = self.state.lock();
        let members = state.producers.get(group).into_iter().flat_map(BTreeMap::values);
        Ok(members.cloned().collect())
    }

    async fn lock_queues(
        &self,
        group: &str,
        client_id: &str,
        queues: Vec<QueueKey>,
    ) -> Result<Vec<bool>> {
        let mut state = self.state.lock();
        let held = queues.into_iter().map(|queue| {
            let owner = state.locks.entry((group.to_owned(), queue));
            owner.or_insert_with(|| client_id.to_owned()) == client_id
        });
        Ok(held.collect())
    }

    async fn unlock_queues(
        &self,
        group: &str,
        client_id: &str,
        queues: Vec<QueueKey>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        state.locks.retain(|(of, queue), owner| {
            !(of == group && owner == client_id && queues.contains(queue))
        });
        Ok(())
    }

    fn session_closed(&self, session: SessionId) {
        self.state.lock().close(session);
    }

    fn group(&self, name: &str) -> Option<Arc<GroupView>> {
        self.state.lock().groups.get(name).cloned().map(Arc::new)
    }

    fn subscription_group(&self, name: &str) -> Option<Arc<SubscriptionGroup>> {
        self.state.lock().group_configs.get(name).cloned()
    }

    fn subscription_groups(&self) -> Vec<Arc<SubscriptionGroup>> {
        self.state.lock().group_configs.values().cloned().collect()
    }

    async fn delete_subscription_group(&self, name: &str) -> Result<()> {
        self.state.lock().group_configs.remove(name);
        Ok(())
    }

    async fn put_subscription_group(&self, config: SubscriptionGroup) -> Result<()> {
        let mut state = self.state.lock();
        state.group_configs.insert(Arc::clone(&config.name), Arc::new(config));
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.state.lock().settings.clone()
    }

    async fn put_settings(&self, settings: BTreeMap<String, String>) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(name) = settings.keys().find(|name| !state.settings.contains_key(*name)) {
            let reason = format!("Unknown broker config name: {name}");
            return Err(BackendError::InvalidSetting { reason });
        }
        state.settings.extend(settings);
        Ok(())
    }

    fn apply_retention(&self) {
        self.state.lock().retentions += 1;
    }

    fn kv_config(&self, namespace: &str, key: &str) -> Option<String> {
        self.state.lock().kv.get(&(namespace.to_owned(), key.to_owned())).cloned()
    }

    fn has_kv_configs(&self, namespace: &str) -> bool {
        !self.kv_configs(namespace).is_empty()
    }

    fn kv_configs(&self, namespace: &str) -> BTreeMap<String, String> {
        let state = self.state.lock();
        let of_namespace = state.kv.iter().filter(|((known, _), _)| known == namespace);
        of_namespace.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }

    async fn put_kv_config(&self, namespace: &str, key: &str, value: Option<String>) -> Result<()> {
        let mut state = self.state.lock();
        let key = (namespace.to_owned(), key.to_owned());
        match value {
            Some(value) => state.kv.insert(key, value),
            None => state.kv.remove(&key),
        };
        Ok(())
    }
}
