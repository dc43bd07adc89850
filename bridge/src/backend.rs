//! The port: what the bridge needs from a node, in the log's terms and not in those of the wire.
//!
//! The crate that puts a node together implements [`Backend`]; tests implement it in memory. Names
//! of topics are stored names (`translate` turns RocketMQ's `%RETRY%g` into them), partitions are
//! queues, offsets are queue offsets. What the hot paths ask (a topic, a partition's offsets, a
//! group, the configuration) is a published snapshot and answered at once; everything that may
//! touch a disk, a coordinator or another node is a future.
//!
//! A future may be dropped at any point (the client went away). What it had asked for may then
//! still happen.

mod batch;
mod error;
mod group;
mod half;
mod node;
mod pop;
mod record;
mod topic;

pub use batch::SharedBatch;
pub use error::{BackendError, Result};
pub use group::{
    ClientFacts, ConsumeFromWhere, ConsumeType, ConsumerHeartbeat, GroupChange, GroupView, Member,
    MessageModel, QueueKey, Subscription, SubscriptionGroup,
};
pub use half::{HalfEnding, HalfView, NewHalf};
pub use node::{NodeConfig, RuntimeCounters};
pub use pop::{PopAgain, PopBackend, PopFresh, PopOffsets, PopOrder, PopPlan, PopQueue, PopTake};
pub use record::{
    Appended, Boundary, CommittedOffset, Durability, LOOK_FOR_TOPIC, NewRecord, NewRecords,
    PartitionView, ReadAnswer, ReadRequest, Recall, Stored, TimedRecord, Wake,
};
pub use topic::{PERM_INHERIT, PERM_READ, PERM_WRITE, Topic, TopicSpec};

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::gate::{GatePoint, GateSubject};
pub use duolog_log_core::storage::keys::KeyHits;

use crate::session::SessionId;

/// What may go on after a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Passage {
    /// As if there were no gate.
    Go,
    /// Nothing more happens, nobody is told.
    Drop,
    /// The request is refused.
    Fail,
}

/// A node as the bridge sees it.
pub trait Backend: PopBackend {
    /// Wall clock, milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Where the node tells what happens; the bridge adds what happens at its doors.
    fn events(&self) -> &Events;

    /// Waits at a gate for as long as it says. One relaxed load when none is armed.
    fn pass_gate(
        &self,
        point: GatePoint,
        subject: GateSubject<'_>,
    ) -> impl Future<Output = Passage> + Send;

    /// The configuration in force.
    fn config(&self) -> Arc<NodeConfig>;

    /// What the node has done since it started.
    fn counters(&self) -> impl Future<Output = RuntimeCounters> + Send;

    /// Counts `records` of together `bytes` (keys, values, headers) that leave for a consumer.
    fn count_delivered(&self, records: usize, bytes: usize);

    /// `ip:port` of the broker that a client at `client` shall talk to; the same for every topic
    /// while that node lives (mapping, section 2, option C).
    fn entry_address(&self, client: SocketAddr) -> SocketAddr;

    /// Finds a topic by its stored name; or, if none has it, the one whose name differs only in `.`
    /// where `name` has `_` (Kafka refuses a second topic of that kind, so there is at most one).
    fn topic(&self, name: &str) -> Option<Arc<Topic>>;

    /// What the name server shows of `topic`: nearly always the topic itself, an older state of it or
    /// nothing while its route is on its way there.
    fn route(&self, topic: &Arc<Topic>) -> Option<Arc<Topic>>;

    /// All topics, sorted by stored name; internal ones too.
    fn topics(&self) -> Vec<Arc<Topic>>;

    /// The topic and partition that have this cluster-wide number.
    fn partition_by_number(&self, number: u32) -> Option<(Arc<Topic>, i32)>;

    /// Creates a topic, or returns the one that is there, unchanged. Creations of one name are
    /// serialised, so that concurrent first sends see one topic with one partition count.
    /// Errors: `InvalidTopic`, `NotWritable`.
    fn create_topic(&self, spec: TopicSpec) -> impl Future<Output = Result<Arc<Topic>>> + Send;

    /// Creates a topic, or changes it to `spec`: partitions grow to the larger of both queue counts
    /// and never shrink.
    /// Errors: `InvalidTopic`, `NotWritable`.
    fn put_topic(&self, spec: TopicSpec) -> impl Future<Output = Result<Arc<Topic>>> + Send;

    /// Deletes a topic with its log and the positions committed on it.
    /// Errors: `UnknownTopic`.
    fn delete_topic(&self, topic: &Topic) -> impl Future<Output = Result<()>> + Send;

    /// Appends to the log's end. The first poll hands the records to their partition, so that calls
    /// first polled in some order are appended in it; dropping the future then loses the answer
    /// alone. The node gathers what waits for one partition into one batch.
    /// Errors: `UnknownTopic`, `UnknownPartition`, `RecordTooLarge`, `NotWritable`, `NotLeader`.
    fn append(
        &self,
        topic: &Topic,
        partition: i32,
        records: NewRecords,
        durability: Durability,
    ) -> impl Future<Output = Result<Appended>> + Send;

    /// Stores a record until its time; then it is appended to the partition, as safe as the
    /// partition makes it, once, with a store timestamp of that moment. What is not there any more
    /// by then gets nothing. The answer's offset and partition number are those of the record among
    /// all that wait.
    /// Errors: `RecordTooLarge`, `LimitReached`: too many wait; `NotWritable`.
    fn append_timed(
        &self,
        topic: &Topic,
        partition: i32,
        timed: TimedRecord,
        durability: Durability,
    ) -> impl Future<Output = Result<Appended>> + Send;

    /// Takes back what waits for a topic; returns whether there was anything.
    /// Errors: `NotWritable`.
    fn recall_timed(
        &self,
        topic: &Topic,
        recall: Recall<'_>,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Whether a client of a group holds the lock of any queue.
    fn has_locked_queues(&self, group: &str) -> bool;

    /// Stores a half message where nobody sees it; the answer tells offset and partition there.
    /// Errors: as [`Self::append`]; `LimitReached`: too many are open.
    fn store_half(
        &self,
        half: NewHalf,
        durability: Durability,
    ) -> impl Future<Output = Result<Appended>> + Send;

    /// The half message at an offset of the partition with this cluster-wide number, open or not;
    /// `None` if there is none, or no more.
    /// Errors: `NotWritable`: it cannot be looked up just now.
    fn half(
        &self,
        partition_number: u32,
        offset: i64,
    ) -> impl Future<Output = Result<Option<HalfView>>> + Send;

    /// Decides how a half message ends, at the word of `client`; resolves once that is stored, and
    /// tells whether it was this call that decided. A committed message then comes to its queue once.
    /// Errors: `NotWritable`, `NotEnoughReplicas`.
    fn end_half(
        &self,
        half: &HalfView,
        ending: HalfEnding,
        client: Arc<str>,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// A partition's published offsets; `None` if this node does not serve it. Waits only for a log
    /// that was not opened since the node started.
    fn partition(
        &self,
        topic: &Topic,
        partition: i32,
    ) -> impl Future<Output = Option<PartitionView>> + Send;

    /// One past the last record below `end`, or below the LSO if that is earlier, that a reader
    /// gets; what follows up to there are markers and aborted data. The log start if there is no
    /// such record.
    /// Errors: `UnknownTopic`, `UnknownPartition`, `CorruptBatch`.
    fn deliverable_end(
        &self,
        topic: &Topic,
        partition: i32,
        end: i64,
    ) -> impl Future<Output = Result<i64>> + Send;

    /// Reads whole batches.
    /// Errors: `UnknownTopic`, `UnknownPartition`, `OffsetOutOfRange` (below the log start or above
    /// the LSO), `CorruptBatch`.
    fn read(&self, request: ReadRequest<'_>) -> impl Future<Output = Result<ReadAnswer>> + Send;

    /// Resolves when the partition's LSO is above `offset`, at once if it is already. Waits on the
    /// published offsets; an unresolved wait costs no timer and no task.
    /// Of a built-in topic that nobody has sent to yet (its id is zero): `Gone` after [`LOOK_FOR_TOPIC`],
    /// since it may be there by then.
    fn wait_beyond(
        &self,
        topic: &Topic,
        partition: i32,
        offset: i64,
    ) -> impl Future<Output = Wake> + Send;

    /// Searches below the LSO by append time, which never falls along a log.
    /// `Lower`: the first batch appended at or after `time_ms`; its base offset, or the log start
    /// if that is later.
    /// `Upper`: the last batch appended at or before `time_ms`; its last offset. `None`: there is
    /// no such batch.
    fn search_append_time(
        &self,
        topic: &Topic,
        partition: i32,
        time_ms: i64,
        boundary: Boundary,
    ) -> impl Future<Output = Result<Option<i64>>> + Send;

    /// Where records with a key of this hash ([`crate::translate::keys::key_hash`]) may be, from
    /// `from` up to `end`, which is not above the LSO. By the node's index of keys, which is made as it
    /// is asked for: what it does not say is found by reading.
    /// Errors: `UnknownTopic`, `UnknownPartition`, `OffsetOutOfRange`.
    fn find_key(
        &self,
        topic: &Topic,
        partition: i32,
        hash: u32,
        range: Range<i64>,
    ) -> impl Future<Output = Result<KeyHits>> + Send;

    /// A group's committed position.
    /// Errors: `CoordinatorNotReady`.
    fn committed_offset(
        &self,
        group: &str,
        topic: &Topic,
        partition: i32,
    ) -> impl Future<Output = Result<Option<i64>>> + Send;

    /// All positions that a group has committed, sorted by topic and partition.
    /// Errors: `CoordinatorNotReady`.
    fn committed_offsets(
        &self,
        group: &str,
    ) -> impl Future<Output = Result<Vec<CommittedOffset>>> + Send;

    /// The groups of either protocol that have a position on any topic; sorted.
    fn groups_with_any_position(&self) -> Vec<String>;

    /// The groups of either protocol that have a position on a topic; sorted.
    fn groups_with_positions(&self, topic: &Topic) -> Vec<String>;

    /// Deletes all positions of a group without live members.
    /// Errors: `CoordinatorNotReady`, `GroupKindConflict`: it has some.
    fn delete_positions(&self, group: &str) -> impl Future<Output = Result<()>> + Send;

    /// Commits a position; resolves when it is as safe as `__consumer_offsets` makes it.
    /// Errors: `CoordinatorNotReady`, `GroupKindConflict`.
    fn commit_offset(
        &self,
        group: &str,
        topic: &Topic,
        partition: i32,
        offset: i64,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Commits a position that nobody waits for (one-way requests and pulls): handed to the
    /// coordinator before this returns, in order with this thread's other calls for the group.
    /// Dropped when the coordinator's queue is full.
    fn commit_offset_unanswered(&self, group: &str, topic: &Topic, partition: i32, offset: i64);

    /// Registers or renews one member of one group. Expiry after `channelExpiredTimeout` is the
    /// coordinator's. On a change that the members must know of, the node calls
    /// `session::Sessions::notify_consumer_ids_changed` where each member is connected.
    /// Errors: `CoordinatorNotReady`, `GroupKindConflict`.
    fn consumer_heartbeat(
        &self,
        heartbeat: ConsumerHeartbeat,
    ) -> impl Future<Output = Result<GroupChange>> + Send;

    /// A member leaves its group. Leaving a group one is not in is no error.
    fn consumer_leave(
        &self,
        group: &str,
        client_id: &str,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Registers or renews one member of a producer group: whom the node may ask how a half message
    /// ended. It expires after `channelExpiredTimeout`, and when its connection closes.
    /// Errors: `CoordinatorNotReady`.
    fn producer_heartbeat(
        &self,
        group: &str,
        client: ClientFacts,
    ) -> impl Future<Output = Result<()>> + Send;

    /// A member leaves its producer group. Leaving a group one is not in is no error.
    fn producer_leave(
        &self,
        group: &str,
        client_id: &str,
    ) -> impl Future<Output = Result<()>> + Send;

    /// The live members of a producer group, sorted by client id.
    /// Errors: `CoordinatorNotReady`.
    fn producer_group(&self, group: &str) -> impl Future<Output = Result<Vec<Member>>> + Send;

    /// Locks those of `queues` that are free for a client of a group, and renews those that it holds;
    /// tells for each, in order, whether it holds it now. A lock lapses 60 s after it was last asked
    /// for, and is not kept over a change of the group's coordinator.
    /// Errors: `CoordinatorNotReady`.
    fn lock_queues(
        &self,
        group: &str,
        client_id: &str,
        queues: Vec<QueueKey>,
    ) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Frees those of `queues` that the client holds; others stay as they are.
    /// Errors: `CoordinatorNotReady`.
    fn unlock_queues(
        &self,
        group: &str,
        client_id: &str,
        queues: Vec<QueueKey>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// A connection closed: all its members leave. Does not wait.
    fn session_closed(&self, session: SessionId);

    /// A RocketMQ group with at least one live member, as last published.
    fn group(&self, name: &str) -> Option<Arc<GroupView>>;

    /// A group's configuration.
    fn subscription_group(&self, name: &str) -> Option<Arc<SubscriptionGroup>>;

    /// All groups' configurations, by name.
    fn subscription_groups(&self) -> Vec<Arc<SubscriptionGroup>>;

    /// Deletes a group's configuration, which is no error if there is none.
    /// Errors: `NotWritable`.
    fn delete_subscription_group(&self, name: &str) -> impl Future<Output = Result<()>> + Send;

    /// Creates or changes a group's configuration.
    /// Errors: `NotWritable`.
    fn put_subscription_group(
        &self,
        config: SubscriptionGroup,
    ) -> impl Future<Output = Result<()>> + Send;

    /// The settings of the node by RocketMQ's own names, with what is set while it runs.
    fn settings(&self) -> BTreeMap<String, String>;

    /// Changes settings, all or none.
    /// Errors: `InvalidSetting`, `NotWritable`.
    fn put_settings(
        &self,
        settings: BTreeMap<String, String>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Has every log look for what is too old to be kept; does not wait.
    fn apply_retention(&self);

    /// A value of the NameServer's key/value store.
    fn kv_config(&self, namespace: &str, key: &str) -> Option<String>;

    /// Whether a namespace holds any value; pulls ask this.
    fn has_kv_configs(&self, namespace: &str) -> bool;

    /// All values of a namespace, by key.
    fn kv_configs(&self, namespace: &str) -> BTreeMap<String, String>;

    /// Stores a value; `None` deletes it, which is no error if there is none.
    /// Errors: `NotWritable`.
    fn put_kv_config(
        &self,
        namespace: &str,
        key: &str,
        value: Option<String>,
    ) -> impl Future<Output = Result<()>> + Send;
}
