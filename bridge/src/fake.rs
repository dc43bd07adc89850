//! A node in memory, for this crate's tests.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use duolog_log_core::event::{Event, EventSink, Events};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::{NodeId, TopicId};
use duolog_log_core::record::{
    BatchBuilder, BatchParams, DecodedBatch, Decompressor, Header, NewRecord,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use crate::backend::{
    Appended, Backend, BackendError, Boundary, ClientFacts, CommittedOffset, ConsumeFromWhere,
    ConsumeType, ConsumerHeartbeat, Durability, GroupChange, GroupView, Member, MessageModel,
    NewRecords, NodeConfig, PERM_READ, PERM_WRITE, PartitionView, Passage, ReadAnswer, ReadRequest,
    Result, RuntimeCounters, SharedBatch, Stored, Subscription, SubscriptionGroup, Topic,
    TopicSpec, Wake,
};
use crate::dispatch::{Answer, BoxFuture, Dispatched, Dispatcher};
use crate::remoting::{RemotingCommand, SerializeType};
use crate::session::{Door, Session, SessionId};

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

#[derive(Default)]
struct State {
    topics: BTreeMap<Arc<str>, Arc<Topic>>,
    next_topic_id: u8,
    logs: HashMap<(TopicId, i32), Log>,
    offsets: BTreeMap<(String, Arc<str>, i32), i64>,
    groups: HashMap<Arc<str>, GroupView>,
    group_configs: HashMap<Arc<str>, Arc<SubscriptionGroup>>,
    kv: HashMap<(String, String), String>,
    closed: Vec<SessionId>,
    appends: Vec<Durability>,
    append_answer: Option<Result<Stored>>,
    gates: HashMap<GatePoint, Passage>,
    stopping: bool,
}

#[derive(Default)]
struct Log {
    number: u32,
    start: i64,
    end: i64,
    bytes: u64,
    deliverable_end: i64,
    batches: Vec<Arc<SharedBatch>>,
}

/// The configuration of the tests.
pub(crate) fn config() -> NodeConfig {
    NodeConfig {
        cluster_name: "DefaultCluster".into(),
        broker_name: "broker-a".into(),
        broker_address: "127.0.0.1:10911".parse().expect("an address"),
        region_id: "DefaultRegion".into(),
        trace_on: true,
        broker_permission: PERM_READ | PERM_WRITE,
        auto_create_topic: true,
        auto_create_subscription_group: true,
        default_topic_queues: 8,
        message_bytes_max: 4 * 1024 * 1024,
        long_polling: true,
        short_polling_ms: 1000,
        transfer_bytes_max: 256 * 1024,
        transfer_records_max: 32,
        in_memory_bytes_max: 1 << 30,
        notify_consumer_ids_changed: true,
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

    pub(crate) fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let key = (group.to_owned(), Arc::from(topic), partition);
        self.state.lock().offsets.get(&key).copied()
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stopping = true;
        self.notify();
    }

    fn notify(&self) {
        self.changed.send_modify(|version| *version += 1);
    }
}

impl State {
    fn new_topic(&mut self, name: &str) -> Topic {
        self.next_topic_id += 1;
        Topic {
            name: Arc::from(name),
            id: TopicId([self.next_topic_id; 16]),
            partitions: 1,
            read_queues: 1,
            write_queues: 1,
            perm: PERM_READ | PERM_WRITE,
            sys_flag: 0,
            order: false,
            internal: false,
            attributes: BTreeMap::new(),
        }
    }

    fn put(&mut self, topic: Topic) -> Arc<Topic> {
        let topic = Arc::new(topic);
        for partition in 0..topic.partitions {
            let number = u32::try_from(self.logs.len()).expect("few logs");
            let new = || Log { number, ..Log::default() };
            self.logs.entry((topic.id, partition)).or_insert_with(new);
        }
        self.topics.insert(Arc::clone(&topic.name), Arc::clone(&topic));
        topic
    }

    fn log(&mut self, topic: &str, partition: i32) -> &mut Log {
        let id = self.topics.get(topic).expect("a topic").id;
        self.logs.get_mut(&(id, partition)).expect("a log")
    }

    fn served(&self, topic: &Topic, partition: i32) -> Result<&Log> {
        let name = || topic.name.to_string();
        let unknown_partition = || BackendError::UnknownPartition { topic: name(), partition };
        if self.topics.get(&topic.name).is_none_or(|current| current.id != topic.id) {
            return Err(BackendError::UnknownTopic { topic: name() });
        }
        self.logs.get(&(topic.id, partition)).ok_or_else(unknown_partition)
    }

    fn put_spec(&mut self, spec: &TopicSpec) -> Result<Arc<Topic>> {
        if spec.partitions() < 1 {
            return Err(BackendError::InvalidTopic { reason: "no partitions".into() });
        }
        let mut topic = self.new_topic(&spec.name);
        if let Some(old) = self.topics.get(&spec.name) {
            topic.id = old.id;
            topic.partitions = old.partitions;
        }
        topic.partitions = topic.partitions.max(spec.partitions());
        topic.read_queues = spec.read_queues;
        topic.write_queues = spec.write_queues;
        topic.perm = spec.perm;
        topic.sys_flag = spec.sys_flag;
        topic.order = spec.order;
        topic.attributes = spec.attributes.clone();
        Ok(self.put(topic))
    }
}

impl Log {
    fn append(&mut self, now_ms: i64, records: Vec<(i64, Vec<u8>)>) -> i64 {
        let base = self.end;
        let params = BatchParams { base_offset: base, ..BatchParams::default() };
        let mut builder = BatchBuilder::new(params);
        for (timestamp_ms, payload) in records {
            builder.append_encoded(timestamp_ms, &payload).expect("a small batch");
        }
        self.end += i64::from(builder.record_count());
        self.deliverable_end = self.end;
        let batch = builder.finish_uncompressed().expect("a whole batch").freeze();
        self.bytes += batch.len() as u64;
        let decoded = DecodedBatch::decode(&batch, &mut Decompressor::new(), usize::MAX);
        let batch = SharedBatch::new(decoded.expect("a whole batch"), now_ms);
        self.batches.push(Arc::new(batch));
        base
    }

    fn view(&self) -> PartitionView {
        PartitionView {
            log_start_offset: self.start,
            last_stable_offset: self.end,
            deliverable_end: self.deliverable_end.max(self.start),
            bytes: self.bytes,
            number: self.number,
        }
    }

    fn read(&self, request: ReadRequest<'_>) -> Result<ReadAnswer> {
        let view = self.view();
        if !(self.start..=self.end).contains(&request.offset) {
            return Err(BackendError::OffsetOutOfRange {
                offset: request.offset,
                log_start_offset: self.start,
                last_stable_offset: self.end,
            });
        }
        let mut batches = Vec::new();
        let mut next_offset = request.offset;
        let mut records = 0;
        for batch in self.batches.iter().filter(|batch| batch.next_offset() > request.offset) {
            if !batches.is_empty() && records >= request.records_max {
                return Ok(ReadAnswer { batches, next_offset, view });
            }
            records += batch.decoded().len();
            next_offset = batch.next_offset();
            batches.push(Arc::clone(batch));
        }
        Ok(ReadAnswer { batches, next_offset: self.end, view })
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

    fn counters(&self) -> RuntimeCounters {
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

    fn topics(&self) -> Vec<Arc<Topic>> {
        self.state.lock().topics.values().cloned().collect()
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
            Appended { base_offset, append_time_ms, stored }
        };
        self.notify();
        Ok(appended)
    }

    fn partition(&self, topic: &Topic, partition: i32) -> Option<PartitionView> {
        self.state.lock().served(topic, partition).ok().map(Log::view)
    }

    async fn read(&self, request: ReadRequest<'_>) -> Result<ReadAnswer> {
        self.state.lock().served(request.topic, request.partition)?.read(request)
    }

    async fn wait_beyond(&self, topic: &Topic, partition: i32, offset: i64) -> Wake {
        let mut changes = self.changed.subscribe();
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
        let mut state = self.state.lock();
        let now = self.now_ms();
        let view = state.groups.entry(heartbeat.group).or_insert_with(|| GroupView {
            consume_type: heartbeat.consume_type,
            message_model: heartbeat.message_model,
            consume_from_where: heartbeat.consume_from_where,
            members: Vec::new(),
            subscriptions: BTreeMap::new(),
        });
        view.consume_type = heartbeat.consume_type;
        view.message_model = heartbeat.message_model;
        view.consume_from_where = heartbeat.consume_from_where;
        let is_known = |member: &Member| member.client == heartbeat.client;
        let members = !view.members.iter().any(is_known);
        view.members.retain(|member| member.client.client_id != heartbeat.client.client_id);
        view.members.push(Member { client: heartbeat.client, last_heartbeat_ms: now });
        view.members.sort_by(|one, other| one.client.client_id.cmp(&other.client.client_id));
        let mut subscriptions = false;
        if let Some(wanted) = heartbeat.subscriptions {
            let old = std::mem::take(&mut view.subscriptions);
            for new in wanted {
                let kept = old.get(&new.topic).filter(|old| old.version >= new.version);
                let kept = Arc::clone(kept.unwrap_or(&new));
                view.subscriptions.insert(Arc::clone(&new.topic), kept);
            }
            subscriptions = old != view.subscriptions;
        }
        Ok(GroupChange { members, subscriptions })
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

    fn session_closed(&self, session: SessionId) {
        let mut state = self.state.lock();
        state.closed.push(session);
        for view in state.groups.values_mut() {
            view.members.retain(|member| member.client.session != session);
        }
        state.groups.retain(|_, view| !view.members.is_empty());
    }

    fn group(&self, name: &str) -> Option<Arc<GroupView>> {
        self.state.lock().groups.get(name).cloned().map(Arc::new)
    }

    fn subscription_group(&self, name: &str) -> Option<Arc<SubscriptionGroup>> {
        self.state.lock().group_configs.get(name).cloned()
    }

    async fn put_subscription_group(&self, config: SubscriptionGroup) -> Result<()> {
        let mut state = self.state.lock();
        state.group_configs.insert(Arc::clone(&config.name), Arc::new(config));
        Ok(())
    }

    fn kv_config(&self, namespace: &str, key: &str) -> Option<String> {
        self.state.lock().kv.get(&(namespace.to_owned(), key.to_owned())).cloned()
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

/// A client of one connection to a node in memory.
pub(crate) struct Client {
    pub(crate) dispatcher: Dispatcher<FakeBackend>,
    pub(crate) session: Arc<Session>,
    pub(crate) inbox: mpsc::Receiver<RemotingCommand>,
}

impl Client {
    /// Connected to the broker's door of a new dispatcher.
    pub(crate) fn new(backend: FakeBackend) -> Self {
        Self::connect(Dispatcher::new(backend), Door::Broker)
    }

    /// Another connection to the same node.
    pub(crate) fn at(&self, door: Door) -> Self {
        Self::connect(self.dispatcher.clone(), door)
    }

    fn connect(dispatcher: Dispatcher<FakeBackend>, door: Door) -> Self {
        let (outbox, inbox) = mpsc::channel(8);
        let peer = "127.0.0.1:50000".parse().expect("an address");
        let session = dispatcher.open(door, peer, outbox);
        Self { dispatcher, session, inbox }
    }

    /// Dispatches a request without waiting for its answer.
    pub(crate) fn begin(&self, request: RemotingCommand) -> BoxFuture<Option<Answer>> {
        match self.dispatcher.dispatch(&self.session, request) {
            Dispatched::Now(answer) => Box::pin(std::future::ready(answer)),
            Dispatched::Later(answer) => answer,
        }
    }

    /// Sends a request and waits for its answer, if there is one.
    pub(crate) async fn send(&self, request: RemotingCommand) -> Option<RemotingCommand> {
        self.begin(request).await.map(Answer::into_command)
    }

    /// Sends what the Java client would, and waits for the answer that must come.
    pub(crate) async fn call(
        &self,
        code: i32,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> RemotingCommand {
        let mut request = RemotingCommand::request(code, 1, SerializeType::Json);
        request.ext_fields = fields.iter().copied().collect();
        request.body = Bytes::copy_from_slice(body);
        self.send(request).await.expect("an answer")
    }
}
