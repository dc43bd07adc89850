//! What the node in memory holds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::gate::GatePoint;
use duolog_log_core::ids::TopicId;
use duolog_log_core::record::{BatchBuilder, BatchParams, DecodedBatch, Decompressor};

use super::pop::Window;
use crate::backend::{
    BackendError, Durability, GroupView, HalfEnding, Member, NewHalf, PERM_READ, PERM_WRITE,
    PartitionView, Passage, QueueKey, ReadAnswer, ReadRequest, Result, SharedBatch, Stored,
    SubscriptionGroup, TimedRecord, Topic, TopicSpec,
};
use crate::session::SessionId;
use crate::translate::keys::KeyIndex;
use crate::translate::send::{KeySource, TimestampBounds, Tombstones};

#[derive(Default)]
pub(super) struct State {
    pub(super) settings: BTreeMap<String, String>,
    pub(super) retentions: usize,
    /// Where the index of keys ends; `None`: nowhere.
    pub(super) index_end: Option<i64>,
    pub(super) topics: BTreeMap<Arc<str>, Arc<Topic>>,
    pub(super) next_topic_id: u8,
    pub(super) logs: HashMap<(TopicId, i32), Log>,
    pub(super) offsets: BTreeMap<(String, Arc<str>, i32), i64>,
    pub(super) groups: HashMap<Arc<str>, GroupView>,
    /// Producer groups, by client id.
    pub(super) producers: BTreeMap<String, BTreeMap<Arc<str>, Member>>,
    pub(super) group_configs: BTreeMap<Arc<str>, Arc<SubscriptionGroup>>,
    /// Who holds a group's queue.
    pub(super) locks: HashMap<(String, QueueKey), String>,
    pub(super) kv: BTreeMap<(String, String), String>,
    pub(super) closed: Vec<SessionId>,
    /// By offset; how each was ended.
    pub(super) halves: Vec<(NewHalf, Option<HalfEnding>)>,
    /// At whose word.
    pub(super) enders: Vec<String>,
    pub(super) appends: Vec<Durability>,
    /// What waits for its time, where it goes; nothing once it was fired or recalled.
    pub(super) timers: Vec<Option<(Arc<str>, i32, TimedRecord)>>,
    pub(super) append_answer: Option<Result<Stored>>,
    pub(super) gates: HashMap<GatePoint, Passage>,
    /// Topics that the name server does not know yet.
    pub(super) unpublished: HashSet<TopicId>,
    pub(super) stopping: bool,
    /// What groups have in hand.
    pub(super) windows: BTreeMap<(String, Arc<str>, i32), Window>,
    /// How much a group may have in hand of a queue.
    pub(super) pop_room: Option<usize>,
    /// What is settled while the next pop reads.
    pub(super) settled_meanwhile: Option<i64>,
    /// Heartbeats and farewells of producers fail.
    pub(super) producers_refused: bool,
    /// Queues whose acknowledgements fail.
    pub(super) unsettled: HashSet<i32>,
    /// How long each of so many reads takes, while the log goes on.
    pub(super) busy_reads: (Duration, usize),
}

impl State {
    /// The producers of a group.
    pub(super) fn producers_of(&mut self, group: &str) -> Result<&mut BTreeMap<Arc<str>, Member>> {
        if self.producers_refused {
            return Err(BackendError::CoordinatorNotReady { group: group.to_owned() });
        }
        Ok(self.producers.entry(group.to_owned()).or_default())
    }

    pub(super) fn next_busy_read(&mut self) -> Option<Duration> {
        let (each, left) = &mut self.busy_reads;
        *left = left.checked_sub(1)?;
        Some(*each)
    }
}

#[derive(Default)]
pub(super) struct Log {
    pub(super) number: u32,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) bytes: u64,
    pub(super) batches: Vec<Arc<SharedBatch>>,
    /// From this offset on nothing can be read.
    pub(super) spoilt: Option<i64>,
}

impl State {
    pub(super) fn new_topic(&mut self, name: &str) -> Topic {
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
            key_source: KeySource::default(),
            key_index: KeyIndex::default(),
            tombstones: Tombstones::default(),
            timestamps: TimestampBounds::default(),
            attributes: BTreeMap::new(),
        }
    }

    pub(super) fn put(&mut self, topic: Topic) -> Arc<Topic> {
        let topic = Arc::new(topic);
        for partition in 0..topic.partitions {
            let number = u32::try_from(self.logs.len()).expect("few logs");
            let new = || Log { number, ..Log::default() };
            self.logs.entry((topic.id, partition)).or_insert_with(new);
        }
        self.topics.insert(Arc::clone(&topic.name), Arc::clone(&topic));
        topic
    }

    pub(super) fn log(&mut self, topic: &str, partition: i32) -> &mut Log {
        let id = self.topics.get(topic).expect("a topic").id;
        self.logs.get_mut(&(id, partition)).expect("a log")
    }

    pub(super) fn served(&self, topic: &Topic, partition: i32) -> Result<&Log> {
        let name = || topic.name.to_string();
        let unknown_partition = || BackendError::UnknownPartition { topic: name(), partition };
        if self.topics.get(&topic.name).is_none_or(|current| current.id != topic.id) {
            return Err(BackendError::UnknownTopic { topic: name() });
        }
        self.logs.get(&(topic.id, partition)).ok_or_else(unknown_partition)
    }

    pub(super) fn put_spec(&mut self, spec: &TopicSpec) -> Result<Arc<Topic>> {
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
    pub(super) fn append(&mut self, now_ms: i64, records: Vec<(i64, Vec<u8>)>) -> i64 {
        let base = self.end;
        let params = BatchParams { base_offset: base, ..BatchParams::default() };
        let mut builder = BatchBuilder::new(params);
        for (timestamp_ms, payload) in records {
            builder.append_encoded(timestamp_ms, &payload).expect("a small batch");
        }
        self.end += i64::from(builder.record_count());
        let batch = builder.finish_uncompressed().expect("a whole batch").freeze();
        self.bytes += batch.len() as u64;
        let decoded = DecodedBatch::decode(&batch, &mut Decompressor::new(), usize::MAX);
        let batch = SharedBatch::new(decoded.expect("a whole batch"), now_ms);
        self.batches.push(Arc::new(batch));
        base
    }

    pub(super) fn view(&self) -> PartitionView {
        PartitionView {
            log_start_offset: self.start,
            last_stable_offset: self.end,
            bytes: self.bytes,
            number: self.number,
        }
    }

    /// One past the last record below `end`, the log start if there is none.
    pub(super) fn deliverable_end(&self, end: i64) -> Result<i64> {
        self.check_readable(end - 1)?;
        let offsets = self.batches.iter().flat_map(|batch| batch.decoded().iter());
        let below = offsets.map(|record| record.offset + 1).filter(|next| *next <= end);
        Ok(below.max().unwrap_or(self.start).max(self.start))
    }

    fn check_readable(&self, offset: i64) -> Result<()> {
        match self.spoilt {
            Some(from) if from <= offset => {
                Err(BackendError::CorruptBatch { offset: from, reason: "spoilt".into() })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn read(&self, request: ReadRequest<'_>) -> Result<ReadAnswer> {
        let view = self.view();
        if !(self.start..=self.end).contains(&request.offset) {
            return Err(BackendError::OffsetOutOfRange {
                offset: request.offset,
                log_start_offset: self.start,
                last_stable_offset: self.end,
            });
        }
        self.check_readable(request.offset)?;
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
