//! A node in memory, for this crate's tests.

mod backend;
mod client;
mod groups;
mod pop;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use duolog_log_core::event::{Event, EventSink, Events};
use duolog_log_core::gate::GatePoint;
use duolog_log_core::ids::NodeId;
use duolog_log_core::record::{Header, NewRecord};
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) use self::client::Client;
use self::state::State;
use crate::backend::{
    Backend, ClientFacts, ConsumeFromWhere, ConsumeType, ConsumerHeartbeat, Durability, HalfEnding,
    MessageModel, NewHalf, NewRecord as StoredRecord, NodeConfig, PERM_READ, PERM_WRITE, Passage,
    Result, Stored, Subscription, TimedRecord, Topic,
};
use crate::session::SessionId;
use crate::translate::delay::DelayRules;
use crate::translate::origin::with_store_timestamp;

/// Handles to one node.
#[derive(Clone)]
pub(crate) struct FakeBackend {
    state: Arc<Mutex<State>>,
    config: Arc<Mutex<Arc<NodeConfig>>>,
    now_ms: Arc<AtomicI64>,
    changed: Arc<watch::Sender<u64>>,
    events: Arc<Events>,
    told: Told,
}

/// What the node told: kind, topic and partition, offset, client, cause.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl EventSink for Told {
    fn accept(&self, event: &Event) {
        let place = event.topic.as_ref().zip(event.partition);
        let place = place.map(|(topic, partition)| format!(" {topic}-{partition}"));
        let offset = event.offset.map(|offset| format!(" @{offset}"));
        let cause = event.cause.as_ref().map(|cause| format!(" {cause}"));
        let client = event.client.as_deref().unwrap_or("nobody");
        let [place, offset, cause] = [place, offset, cause].map(Option::unwrap_or_default);
        self.0.lock().push(format!("{}{place}{offset} {client}{cause}", event.kind));
    }
}

/// The configuration of the tests.
pub(crate) fn config() -> NodeConfig {
    NodeConfig {
        cluster_name: "DefaultCluster".into(),
        broker_name: "broker-a".into(),
        broker_address: "127.0.0.1:10911".parse().expect("an address"),
        region_id: "DefaultRegion".into(),
        trace_on: true,
        trace_topic: false,
        store_replies: true,
        server_side_reset: true,
        order_messages: false,
        broker_permission: PERM_READ | PERM_WRITE,
        auto_create_topic: true,
        auto_create_subscription_group: true,
        default_topic_queues: 8,
        message_bytes_max: 4 * 1024 * 1024,
        long_polling: true,
        property_filter: true,
        short_polling_ms: 1000,
        transfer_bytes_max: 256 * 1024,
        transfer_records_max: 32,
        in_memory_bytes_max: 1 << 30,
        notify_consumer_ids_changed: true,
        delays: DelayRules {
            levels_ms: vec![1_000, 5_000, 10_000, 30_000, 60_000],
            max_delay_ms: 259_200_000,
            timers: true,
        },
        recall: true,
    }
}

impl FakeBackend {
    pub(crate) fn new() -> Self {
        let told = Told::default();
        Self {
            events: Arc::new(Events::new(NodeId(1), Box::new(told.clone()))),
            told,
            state: Arc::default(),
            config: Arc::new(Mutex::new(Arc::new(config()))),
            now_ms: Arc::new(AtomicI64::new(1_700_000_000_000)),
            changed: Arc::new(watch::Sender::new(0)),
        }
    }

    pub(crate) fn configure(&self, change: impl FnOnce(&mut NodeConfig)) {
        let mut config = self.config.lock();
        let mut changed = NodeConfig::clone(&config);
        change(&mut changed);
        *config = Arc::new(changed);
    }

    /// How much a group may have in hand of a queue.
    pub(crate) fn set_pop_room(&self, room: usize) {
        self.state.lock().pop_room = Some(room);
    }

    /// While the next pop reads, this one is settled.
    pub(crate) fn settle_meanwhile(&self, offset: i64) {
        self.state.lock().settled_meanwhile = Some(offset);
    }

    pub(crate) fn advance_ms(&self, by: i64) {
        self.now_ms.fetch_add(by, Ordering::Relaxed);
    }

    /// Puts a topic there, read and write queues alike.
    pub(crate) fn add_topic(&self, name: &str, queues: i32) -> Arc<Topic> {
        self.change_topic(name, |topic| {
            (topic.partitions, topic.read_queues, topic.write_queues) = (queues, queues, queues);
        })
    }

    /// Changes a topic, or one of a single queue that is made first.
    pub(crate) fn change_topic(&self, name: &str, change: impl FnOnce(&mut Topic)) -> Arc<Topic> {
        let mut state = self.state.lock();
        let old = state.topics.get(name).cloned();
        let mut topic = old.map_or_else(|| state.new_topic(name), |old| Topic::clone(&old));
        change(&mut topic);
        state.put(topic)
    }

    /// Keeps a topic's route from the name server.
    pub(crate) fn unpublish(&self, name: &str) {
        let mut state = self.state.lock();
        let id = state.topics.get(name).expect("a topic").id;
        state.unpublished.insert(id);
    }

    /// Appends one batch of messages with these tags (none if empty) and bodies.
    pub(crate) fn write_tagged(&self, topic: &str, partition: i32, messages: &[(&str, &str)]) {
        let records = messages.iter().map(|(tag, body)| {
            let headers = [Header { key: b"TAGS", value: Some(tag.as_bytes()) }];
            let headers = if tag.is_empty() { &[] } else { &headers[..] };
            let value = Some(body.as_bytes());
            (BORN_MS, payload(&NewRecord { value, headers, ..NewRecord::default() }))
        });
        self.write(topic, partition, records.collect());
    }

    /// Appends one batch as a Kafka producer would have.
    pub(crate) fn write(&self, topic: &str, partition: i32, records: Vec<(i64, Vec<u8>)>) -> i64 {
        let now = self.now_ms();
        let base = self.state.lock().log(topic, partition).append(now, records);
        self.notify();
        base
    }

    /// Lets `count` offsets pass that hold nothing for readers (markers, aborted records).
    pub(crate) fn skip(&self, topic: &str, partition: i32, count: i64) {
        self.state.lock().log(topic, partition).end += count;
        self.notify();
    }

    /// Deletes what is below `start`.
    pub(crate) fn set_log_start(&self, topic: &str, partition: i32, start: i64) {
        let mut state = self.state.lock();
        let log = state.log(topic, partition);
        log.start = start;
        log.batches.retain(|batch| batch.next_offset() > start);
    }

    /// Damages what this log holds from `offset` on.
    pub(crate) fn spoil(&self, topic: &str, partition: i32, offset: i64) {
        self.state.lock().log(topic, partition).spoilt = Some(offset);
    }

    /// Serves this log no longer.
    pub(crate) fn lose_log(&self, topic: &str, partition: i32) {
        {
            let mut state = self.state.lock();
            let id = state.topics.get(topic).expect("a topic").id;
            state.logs.remove(&(id, partition));
        }
        self.notify();
    }

    /// Acknowledgements of these queues fail.
    pub(crate) fn fail_settling(&self, queues: &[i32]) {
        self.state.lock().unsettled.extend(queues);
    }

    /// Producers can neither be registered nor leave.
    pub(crate) fn refuse_producers(&self) {
        self.state.lock().producers_refused = true;
    }

    /// From now on each of `count` reads takes so long, and another record comes meanwhile.
    pub(crate) fn be_busy(&self, each: Duration, count: usize) {
        self.state.lock().busy_reads = (each, count);
    }

    /// Gives `group` one member and one subscription.
    pub(crate) async fn register(&self, group: &str, subscription: Subscription) {
        let client = ClientFacts {
            client_id: Arc::from("c"),
            language: 0,
            version: 513,
            address: "127.0.0.1:50000".parse().expect("an address"),
            session: SessionId(u64::MAX),
        };
        let heartbeat = ConsumerHeartbeat {
            group: Arc::from(group),
            client,
            consume_type: ConsumeType::Passively,
            message_model: MessageModel::Clustering,
            consume_from_where: ConsumeFromWhere::LastOffset,
            subscriptions: Some(vec![Arc::new(subscription)]),
            notify: true,
        };
        self.consumer_heartbeat(heartbeat).await.expect("registered");
    }

    /// Brings what is due to its topic, in the order of the times; returns how many that were.
    pub(crate) fn fire(&self) -> usize {
        let now_ms = self.now_ms();
        let mut due: Vec<_> = {
            let mut state = self.state.lock();
            let is_due = |timer: &Option<(_, _, TimedRecord)>| {
                timer.as_ref().is_some_and(|(_, _, timed)| timed.due_ms <= now_ms)
            };
            state.timers.iter_mut().filter(|timer| is_due(timer)).filter_map(Option::take).collect()
        };
        due.sort_by_key(|(_, _, timed)| timed.due_ms);
        for (topic, partition, timed) in &due {
            let payload = with_store_timestamp(&timed.record.payload, now_ms);
            self.write(topic, *partition, vec![(now_ms, payload)]);
        }
        due.len()
    }

    /// Listens from now on; see [`Self::told`].
    pub(crate) fn listen(&self) {
        self.events.listen();
    }

    /// What was told since the last call.
    pub(crate) fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.0.lock())
    }

    /// What the gate at `point` does from now on.
    pub(crate) fn arm(&self, point: GatePoint, passage: Passage) {
        self.state.lock().gates.insert(point, passage);
    }

    /// What the next append is answered; a refused one stores nothing.
    pub(crate) fn answer_append(&self, answer: Result<Stored>) {
        self.state.lock().append_answer = Some(answer);
    }

    /// What the appends so far were to wait for.
    pub(crate) fn appends(&self) -> Vec<Durability> {
        self.state.lock().appends.clone()
    }

    /// Sessions whose close was told.
    pub(crate) fn closed_sessions(&self) -> Vec<SessionId> {
        self.state.lock().closed.clone()
    }

    /// The half messages, and how each was ended.
    pub(crate) fn halves(&self) -> Vec<(NewHalf, Option<HalfEnding>)> {
        self.state.lock().halves.clone()
    }

    /// At whose word half messages were ended, each time.
    pub(crate) fn enders(&self) -> Vec<String> {
        self.state.lock().enders.clone()
    }

    /// Appends records as the node itself does.
    pub(crate) fn append(&self, topic: &str, partition: i32, record: &StoredRecord) -> i64 {
        self.write(topic, partition, vec![(record.timestamp_ms, record.payload.to_vec())])
    }

    pub(crate) fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let key = (group.to_owned(), Arc::from(topic), partition);
        self.state.lock().offsets.get(&key).copied()
    }

    /// What the node is set to.
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.state.lock().settings.insert(name.to_owned(), value.to_owned());
    }

    /// Ends the index of keys of every log at this offset.
    pub(crate) fn end_index(&self, end: i64) {
        self.state.lock().index_end = Some(end);
    }

    /// How often logs were told to look for what is too old.
    pub(crate) fn retentions(&self) -> usize {
        self.state.lock().retentions
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stopping = true;
        self.notify();
    }

    fn notify(&self) {
        self.changed.send_modify(|version| *version += 1);
    }
}

/// When the fake's own messages were born.
pub(crate) const BORN_MS: i64 = 1_600_000_000_000;

/// A record's payload.
pub(crate) fn payload(record: &NewRecord<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    record.encode_payload(&mut payload);
    payload
}
