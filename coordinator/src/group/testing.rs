//! A group coordinator on a log in memory, for the tests of this module tree.

pub(in crate::group) mod consumers;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::event::Events;
use duolog_log_core::ids::{NodeId, Offset, TopicId};

use crate::error::{AppendError, GroupError};
use crate::group::config::GroupConfig;
use crate::group::event::*;
use crate::group::response::*;
use crate::group::shard::GroupShard;
use crate::record::{OffsetValue, Record};
use crate::runtime::{Effect, Runtime};
use crate::shard::{BatchForm, RecordBytes, RequestId};
use crate::time::Now;

/// The runtime, performed: appends succeed and are committed at once, unless told otherwise.
pub(in crate::group) struct Bench {
    pub(in crate::group) runtime: Runtime<GroupShard>,
    pub(in crate::group) now: Now,
    pub(in crate::group) log: Vec<RecordBytes>,
    pub(in crate::group) answers: BTreeMap<u64, Result<Response, GroupError>>,
    pub(in crate::group) notices: Vec<Notice>,
    /// The next append fails so.
    pub(in crate::group) failure: Option<AppendError>,
    next_request: u64,
}

pub(in crate::group) type Answer = Result<Response, GroupError>;

impl Bench {
    pub(in crate::group) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(in crate::group) fn with(change: impl FnOnce(&mut GroupConfig)) -> Self {
        let mut config = GroupConfig::default();
        change(&mut config);
        Self::on(config, Vec::new(), Now { wall_ms: 1_000_000, tick_ms: 0 })
    }

    /// A coordinator that has just read `log`.
    pub(in crate::group) fn on(config: GroupConfig, log: Vec<RecordBytes>, now: Now) -> Self {
        let events = Arc::new(Events::silent(NodeId(1)));
        let mut runtime = Runtime::loading(GroupShard::new(config, events));
        for (offset, record) in log.iter().enumerate() {
            let offset = Offset(offset as i64);
            assert_eq!(runtime.load(offset, Some(&record.key), record.value.as_ref()), Ok(true));
        }
        let end = Offset(log.len() as i64);
        runtime.finish_load(end, end, now);
        let mut bench = Self {
            runtime,
            now,
            log,
            answers: BTreeMap::new(),
            notices: Vec::new(),
            failure: None,
            next_request: 0,
        };
        bench.perform();
        bench
    }

    /// The same, after a crash: all that lived is gone.
    pub(in crate::group) fn restarted(self, config: GroupConfig) -> Self {
        Self::on(config, self.log, self.now)
    }

    fn perform(&mut self) {
        while let Some(effect) = self.runtime.poll_effect() {
            match effect {
                Effect::Append { id, records, batch, .. } => match self.failure.take() {
                    Some(error) => self.runtime.append_failed(id, error, self.now),
                    None => {
                        let base = Offset(self.log.len() as i64);
                        self.log.extend(records);
                        if matches!(batch, BatchForm::End(_)) {
                            self.log.push(marker());
                        }
                        self.runtime.appended(id, base, self.now);
                        self.runtime.advance_high_watermark(Offset(self.log.len() as i64));
                    }
                },
                Effect::Reply { request, answer } => {
                    assert!(self.answers.insert(request.0, answer).is_none());
                }
                Effect::Notice(notice) => self.notices.push(notice),
            }
        }
    }

    /// Sends a request; it may be answered later.
    pub(in crate::group) fn send(&mut self, event: Event) -> u64 {
        let request = self.next_request;
        self.next_request += 1;
        self.runtime.submit(RequestId(request), event, self.now);
        self.perform();
        request
    }

    /// Sends a request that is answered at once.
    pub(in crate::group) fn ask(&mut self, event: Event) -> Answer {
        let request = self.send(event);
        self.answer(request)
    }

    pub(in crate::group) fn answer(&mut self, request: u64) -> Answer {
        self.answers.remove(&request).unwrap_or_else(|| panic!("{request} is not answered"))
    }

    pub(in crate::group) fn waits(&self, request: u64) -> bool {
        !self.answers.contains_key(&request)
    }

    pub(in crate::group) fn joined(&mut self, request: u64) -> JoinGroupResponse {
        match self.answer(request) {
            Ok(Response::JoinGroup(joined)) => joined,
            other => panic!("not joined: {other:?}"),
        }
    }

    /// Why a join was refused.
    pub(in crate::group) fn refused(&mut self, request: u64) -> GroupError {
        self.joined(request).error.expect("a refusal")
    }

    pub(in crate::group) fn synced(&mut self, request: u64) -> Bytes {
        match self.answer(request) {
            Ok(Response::SyncGroup(synced)) => synced.assignment,
            other => panic!("not synced: {other:?}"),
        }
    }

    /// Lets time pass, firing each timer when it is due.
    pub(in crate::group) fn pass(&mut self, ms: i64) {
        let end = self.now.tick_ms + ms;
        loop {
            let next =
                self.runtime.next_deadline().map_or(end, |due| due.clamp(self.now.tick_ms, end));
            let step = next - self.now.tick_ms;
            self.now = Now { wall_ms: self.now.wall_ms + step, tick_ms: next };
            self.runtime.tick(self.now);
            self.perform();
            if next == end && self.runtime.next_deadline().is_none_or(|due| due > end) {
                return;
            }
        }
    }

    pub(in crate::group) fn notify(&mut self, event: Event) {
        self.runtime.notify(event, self.now);
        self.perform();
    }

    pub(in crate::group) fn described(&mut self, group: &str) -> DescribedGroup {
        let missing = MissingGroup::Dead;
        match self.ask(Event::DescribeGroup(DescribeGroup { group: group.into(), missing })) {
            Ok(Response::DescribeGroup(described)) => described,
            other => panic!("not described: {other:?}"),
        }
    }

    pub(in crate::group) fn state(&mut self, group: &str) -> GroupState {
        self.described(group).state
    }

    /// Groups, states and protocol types, as listed.
    pub(in crate::group) fn listed(&mut self, states: &[&str], types: &[&str]) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|&name| Arc::from(name)).collect();
        let list = ListGroups { states: owned(states), types: owned(types) };
        let Ok(Response::ListGroups(groups)) = self.ask(Event::ListGroups(list)) else {
            panic!("not listed");
        };
        groups
            .into_iter()
            .map(|g| format!("{} {} {:?}", g.group, g.state.name(), &*g.protocol_type))
            .collect()
    }

    /// The records from `from` on.
    pub(in crate::group) fn records(&self, from: usize) -> Vec<Record> {
        self.log[from..]
            .iter()
            .map(|record| {
                let decoded = Record::decode(&record.key, record.value.as_ref());
                decoded.expect("our own records").expect("a known kind")
            })
            .collect()
    }

    /// What a group has committed, as `topic-partition@offset`.
    pub(in crate::group) fn positions(&mut self, group: &str) -> Vec<String> {
        let fetch = OffsetFetch { group: group.into(), member: None, topics: None };
        let Ok(Response::OffsetFetch(topics)) = self.ask(Event::OffsetFetch(fetch)) else {
            panic!("not fetched");
        };
        let all = topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|p| format!("{}-{}@{}", topic.topic, p.partition, p.offset))
        });
        all.collect()
    }

    /// Brings `count` dynamic members of group `g` to `Stable`; returns their ids, leader first.
    pub(in crate::group) fn stable(&mut self, count: usize) -> Vec<MemberId> {
        let joins: Vec<u64> =
            (0..count).map(|n| self.send(join("").uuid(n as u8 + 1).event())).collect();
        self.pass(3_000 * count as i64);
        self.sync_all(joins)
    }

    /// Takes joined requests through the sync phase; returns the members' ids, leader first.
    pub(in crate::group) fn sync_all(&mut self, joins: Vec<u64>) -> Vec<MemberId> {
        let mut joined: Vec<_> = joins.into_iter().map(|request| self.joined(request)).collect();
        joined.sort_by_key(|answer| answer.member != answer.leader);
        let generation = joined[0].generation;
        let assignments: Vec<_> = joined
            .iter()
            .map(|answer| (answer.member.clone(), Bytes::from(format!("for {}", answer.member))))
            .collect();
        for answer in joined.iter().rev() {
            let leads = answer.member == answer.leader;
            let given = if leads { assignments.clone() } else { Vec::new() };
            self.send(sync(&answer.member, generation, given));
        }
        joined.into_iter().map(|answer| answer.member).collect()
    }

    pub(in crate::group) fn heartbeat(&mut self, member: &str, generation: i32) -> Answer {
        self.ask(heartbeat(member, None, generation))
    }
}

/// What stands in the log where a transaction ends: of a kind that is passed by.
fn marker() -> RecordBytes {
    RecordBytes { key: Bytes::from_static(b"\x7f\xff"), value: None }
}

/// A JoinGroup of group `g`, to be varied.
pub(in crate::group) struct Joining(JoinGroup);

/// `member` of group `g`, client `c`, joins: session 10 s, rebalance 60 s, protocol `range` of
/// consumers; by version 9, except that an id need not be asked for first.
pub(in crate::group) fn join(member: &str) -> Joining {
    Joining(JoinGroup {
        group: "g".into(),
        member: member.into(),
        instance: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: 60_000,
        session_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: protocols(&["range"]),
        reason: None,
        first_join: FirstJoin::Direct,
        leader_return: LeaderReturn::SkipAssignment,
        uuid: [0; 16],
    })
}

impl Joining {
    pub(in crate::group) fn event(self) -> Event {
        Event::JoinGroup(Box::new(self.0))
    }

    pub(in crate::group) fn but(mut self, change: impl FnOnce(&mut JoinGroup)) -> Self {
        change(&mut self.0);
        self
    }

    pub(in crate::group) fn uuid(self, last: u8) -> Self {
        self.but(|join| join.uuid[15] = last)
    }

    pub(in crate::group) fn instance(self, instance: &str) -> Self {
        self.but(|join| join.instance = Some(instance.into()))
    }

    pub(in crate::group) fn protocols(self, names: &[&str]) -> Self {
        self.but(|join| join.protocols = protocols(names))
    }

    pub(in crate::group) fn given_id(self) -> Self {
        self.but(|join| join.first_join = FirstJoin::WithGivenId)
    }
}

/// Protocols with the metadata of consumers that subscribe to topic `t`.
pub(in crate::group) fn protocols(names: &[&str]) -> Vec<Protocol> {
    let protocol = |&name: &&str| Protocol { name: name.into(), metadata: subscription(&["t"]) };
    names.iter().map(protocol).collect()
}

/// A `ConsumerProtocolSubscription` v1 without user data and owned partitions.
pub(in crate::group) fn subscription(topics: &[&str]) -> Bytes {
    let mut bytes = vec![0, 1];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend((-1_i32).to_be_bytes());
    bytes.extend(0_i32.to_be_bytes());
    bytes.into()
}

/// The id that [`join`] with [`Joining::uuid`] gets.
pub(in crate::group) fn id(name: &str, last: u8) -> String {
    format!("{name}-00000000-0000-0000-0000-0000000000{last:02x}")
}

pub(in crate::group) fn sync(
    member: &str,
    generation: i32,
    assignments: Vec<(MemberId, Bytes)>,
) -> Event {
    Event::SyncGroup(SyncGroup {
        group: "g".into(),
        member: member.into(),
        instance: None,
        generation,
        protocol_type: Some("consumer".into()),
        protocol: Some("range".into()),
        assignments,
    })
}

pub(in crate::group) fn heartbeat(member: &str, instance: Option<&str>, generation: i32) -> Event {
    Event::Heartbeat(Heartbeat {
        group: "g".into(),
        member: member.into(),
        instance: instance.map(Arc::from),
        generation,
    })
}

/// Member and instance ids, empty for none.
pub(in crate::group) fn leave(members: &[(&str, &str)]) -> Event {
    let leaving = |&(member, instance): &(&str, &str)| LeavingMember {
        member: member.into(),
        instance: Some(instance).filter(|text| !text.is_empty()).map(Arc::from),
        reason: None,
    };
    Event::LeaveGroup(LeaveGroup {
        group: "g".into(),
        members: members.iter().map(leaving).collect(),
    })
}

/// A commit of offset `offset` on `t-0`; no member and generation −1 for a consumer that manages
/// its partitions itself.
pub(in crate::group) fn commit(
    group: &str,
    member: &str,
    generation: i32,
    offset: i64,
) -> OffsetCommit {
    OffsetCommit {
        group: group.into(),
        member: member.into(),
        instance: None,
        generation,
        retention_ms: None,
        form: CommitForm::Generation,
        unknown_group: UnknownGroup::NotFound,
        topics: vec![TopicCommit {
            topic: "t".into(),
            topic_id: TopicId::ZERO,
            partitions: vec![PartitionCommit {
                partition: 0,
                offset,
                leader_epoch: -1,
                metadata: None,
            }],
        }],
    }
}

pub(in crate::group) fn offset_value(offset: i64, commit_ms: i64) -> OffsetValue {
    OffsetValue {
        offset,
        leader_epoch: -1,
        metadata: "".into(),
        commit_ms,
        expire_ms: None,
        topic_id: TopicId::ZERO,
    }
}

pub(in crate::group) fn client(id: &str, channel: u64) -> Client {
    Client {
        id: id.into(),
        language: 0,
        version: 493,
        address: ([127, 0, 0, 1], 40_000).into(),
        channel: ChannelId(channel),
    }
}

/// A heartbeat of a push consumer of group `g` that subscribes to `topics`, all of version 1.
pub(in crate::group) fn consumer(id: &str, channel: u64, topics: &[&str]) -> ConsumerHeartbeat {
    let subscription = |topic: &&str| {
        Arc::new(Subscription {
            topic: (*topic).into(),
            expression: "*".into(),
            expression_type: "TAG".into(),
            tags: Vec::new(),
            tag_hashes: Vec::new(),
            version: 1,
            class_filter_mode: false,
        })
    };
    ConsumerHeartbeat {
        group: "g".into(),
        client: client(id, channel),
        consume_type: ConsumeType::Passively,
        message_model: MessageModel::Clustering,
        consume_from_where: ConsumeFromWhere::LastOffset,
        subscriptions: Some(topics.iter().map(subscription).collect()),
        notices: MemberNotices::On,
    }
}

pub(in crate::group) fn beat(heartbeat: ConsumerHeartbeat) -> Event {
    Event::ConsumerHeartbeat(Box::new(heartbeat))
}
