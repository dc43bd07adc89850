//! Property: whatever happens, the stored state is what a replay of the log gives, and a group at
//! rest lives as it is stored: live state that differs from the replayed one shows only at a failover.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::ids::{NodeId, Offset, TopicId};
use proptest::prelude::*;

use crate::error::{AppendError, GroupError};
use crate::group::config::GroupConfig;
use crate::group::event::*;
use crate::group::image::GroupImage;
use crate::group::response::*;
use crate::group::shard::GroupShard;
use crate::group::testing::consumers::*;
use crate::group::testing::*;
use crate::record::{GroupValue, Record};
use crate::shard::{RecordBytes, Shard};

const CLIENTS: usize = 5;
const GROUPS: [&str; 2] = ["g", "h"];

/// What a client, or the world, does next.
#[derive(Clone, Debug)]
enum Act {
    Join(usize),
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    Commit(usize, i64),
    CommitAlone(usize, i64),
    Consume(usize),
    ConsumeNoMore(usize, i32),
    Topics(i32),
    ConsumerHeartbeat(usize),
    ConsumerLeave(usize),
    Close(usize),
    CommitQueue(usize, i64),
    DeleteGroup(usize),
    DeleteOffsets(usize),
    DeleteTopic,
    Pass(i64),
    Fail(AppendError),
}

fn act() -> impl Strategy<Value = Act> {
    let client = 0..CLIENTS;
    let failure = prop::sample::select(vec![
        AppendError::NotEnoughReplicas,
        AppendError::Storage,
        AppendError::TooLarge,
    ]);
    prop_oneof![
        8 => client.clone().prop_map(Act::Join),
        8 => client.clone().prop_map(Act::Sync),
        2 => client.clone().prop_map(Act::Heartbeat),
        2 => client.clone().prop_map(Act::Leave),
        2 => (client.clone(), 0..9_i64).prop_map(|(who, offset)| Act::Commit(who, offset)),
        1 => (client.clone(), 0..9_i64).prop_map(|(who, offset)| Act::CommitAlone(who, offset)),
        12 => client.clone().prop_map(Act::Consume),
        2 => (client.clone(), -2..0_i32).prop_map(|(who, as_)| Act::ConsumeNoMore(who, as_)),
        1 => (1..5_i32).prop_map(Act::Topics),
        1 => client.clone().prop_map(Act::ConsumerHeartbeat),
        1 => client.clone().prop_map(Act::ConsumerLeave),
        1 => client.clone().prop_map(Act::Close),
        1 => (client.clone(), 0..9_i64).prop_map(|(who, offset)| Act::CommitQueue(who, offset)),
        1 => client.clone().prop_map(Act::DeleteGroup),
        1 => client.prop_map(Act::DeleteOffsets),
        1 => Just(Act::DeleteTopic),
        6 => prop::sample::select(vec![0, 500, 3_000, 7_000, 61_000, 86_400_000 * 8])
            .prop_map(Act::Pass),
        1 => failure.prop_map(Act::Fail),
    ]
}

/// A Kafka client that does what it is told.
#[derive(Default)]
struct Client {
    member: MemberId,
    generation: i32,
    leads: Vec<MemberId>,
    waiting: Option<u64>,
    /// Its other self, which speaks the consumer protocol.
    epoch: i32,
    owned: Vec<(TopicId, Vec<i32>)>,
}

struct World {
    bench: Bench,
    clients: Vec<Client>,
    made: u8,
}

/// Client `who` is of group `g` or `h`; the second of each group is a static member.
fn group_of(who: usize) -> GroupId {
    GROUPS[who % 2].into()
}

fn instance_of(who: usize) -> Option<Arc<str>> {
    (who / 2 == 1).then(|| format!("i{}", who % 2).into())
}

impl World {
    fn new() -> Self {
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        let mut bench = Bench::with(|config| config.consumer.assignment_interval_ms = 400);
        bench.topics(&[("t", 3)]);
        Self { bench, clients, made: 0 }
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Join(who) => self.join(who),
            Act::Sync(who) => self.sync(who),
            Act::Heartbeat(who) => {
                let event = Event::Heartbeat(Heartbeat {
                    group: group_of(who),
                    member: self.clients[who].member.clone(),
                    instance: instance_of(who),
                    generation: self.clients[who].generation,
                });
                self.tell(event);
            }
            Act::Leave(who) => {
                let member = self.clients[who].member.clone();
                let leaving = LeavingMember { member, instance: instance_of(who), reason: None };
                let leave = LeaveGroup { group: group_of(who), members: vec![leaving] };
                self.tell(Event::LeaveGroup(leave));
            }
            Act::Commit(who, offset) => {
                let client = &self.clients[who];
                let commit = commit(&group_of(who), &client.member, client.generation, offset);
                self.tell(Event::OffsetCommit(commit));
            }
            Act::CommitAlone(who, offset) => {
                let mut commit = commit(&group_of(who), "", -1, offset);
                commit.retention_ms = (offset == 0).then_some(1_000);
                self.tell(Event::OffsetCommit(commit));
            }
            Act::Consume(who) => self.consume(who),
            Act::ConsumeNoMore(who, epoch) => {
                let leave = self.consumer_beat(who, epoch);
                self.tell(Event::ConsumerGroupHeartbeat(Box::new(leave)));
                self.clients[who].epoch = JOIN_EPOCH;
            }
            Act::Topics(count) => self.bench.topics(&[("t", count), ("tt", 5 - count)]),
            Act::ConsumerHeartbeat(who) => {
                let mut heartbeat = consumer(&format!("c@{who}"), who as u64, &["t"]);
                heartbeat.group = group_of(who);
                self.tell(beat(heartbeat));
            }
            Act::ConsumerLeave(who) => self.tell(Event::ConsumerLeave(ConsumerLeave {
                group: group_of(who),
                client: format!("c@{who}").into(),
                notices: MemberNotices::On,
            })),
            Act::Close(who) => {
                self.bench.notify(Event::ChannelClosed(ChannelId(who as u64)));
            }
            Act::CommitQueue(who, offset) => {
                let (group, topic) = (group_of(who), "t".into());
                let commit = CommitQueueOffset { group, topic, queue: 0, offset };
                self.tell(Event::CommitQueueOffset(commit));
            }
            Act::DeleteGroup(who) => {
                self.tell(Event::DeleteGroup(DeleteGroup { group: group_of(who) }));
            }
            Act::DeleteOffsets(who) => {
                let topics = vec![("t".into(), vec![0])];
                self.tell(Event::OffsetDelete(OffsetDelete { group: group_of(who), topics }));
            }
            Act::DeleteTopic => {
                let topic = DeletedTopic { name: "t".into(), id: TopicId([1; 16]) };
                self.bench.notify(Event::TopicDeleted(topic));
            }
            Act::Pass(ms) => self.bench.pass(ms),
            Act::Fail(error) => self.bench.failure = Some(error),
        }
        self.read_answers();
    }

    /// Sends what is answered at once.
    fn tell(&mut self, event: Event) {
        let _ = self.bench.ask(event);
    }

    fn consumer_beat(&self, who: usize, epoch: i32) -> ConsumerGroupHeartbeat {
        ConsumerGroupHeartbeat {
            group: group_of(who),
            instance: instance_of(who).map(|name| format!("{name}c").into()),
            ..consumer_beat(&format!("m{who}"), epoch)
        }
    }

    fn consume(&mut self, who: usize) {
        let epoch = self.clients[who].epoch;
        let mut beat = self.consumer_beat(who, epoch);
        if epoch == JOIN_EPOCH {
            let join = consumer_join("", &["t"]);
            beat.rebalance_timeout_ms = join.rebalance_timeout_ms;
            beat.topics = join.topics;
            beat.regex = (who == 4).then(|| "t+".into());
            self.clients[who].owned.clear();
        }
        beat.owned = Some(self.clients[who].owned.clone());
        let answer = self.bench.ask(Event::ConsumerGroupHeartbeat(Box::new(beat)));
        let client = &mut self.clients[who];
        match answer {
            Ok(Response::ConsumerGroupHeartbeat(Ok(told))) => {
                client.epoch = told.epoch;
                if let Some(assignment) = told.assignment {
                    let list = |(topic, indexes): (TopicId, std::collections::BTreeSet<i32>)| {
                        (topic, indexes.into_iter().collect())
                    };
                    client.owned = assignment.into_iter().map(list).collect();
                }
            }
            _ => client.epoch = JOIN_EPOCH,
        }
    }

    fn join(&mut self, who: usize) {
        self.made += 1;
        let last = self.made;
        let request = join(&self.clients[who].member).uuid(last).but(|join| {
            join.group = group_of(who);
            join.instance = instance_of(who);
            join.first_join = if who == 4 { FirstJoin::WithGivenId } else { FirstJoin::Direct };
        });
        self.clients[who].waiting = Some(self.bench.send(request.event()));
    }

    fn sync(&mut self, who: usize) {
        let client = &self.clients[who];
        let given = |id: &MemberId| (id.clone(), format!("{id}@{}", client.generation).into());
        let sync = SyncGroup {
            group: group_of(who),
            member: client.member.clone(),
            instance: instance_of(who),
            generation: client.generation,
            protocol_type: None,
            protocol: None,
            assignments: client.leads.iter().map(given).collect(),
        };
        self.clients[who].waiting = Some(self.bench.send(Event::SyncGroup(sync)));
    }

    fn read_answers(&mut self) {
        for client in &mut self.clients {
            let Some(request) = client.waiting else { continue };
            let Some(answer) = self.bench.answers.remove(&request) else { continue };
            client.waiting = None;
            match answer {
                Ok(Response::JoinGroup(joined)) => {
                    client.member = joined.member;
                    client.generation = joined.generation;
                    client.leads = joined.members.into_iter().map(|m| m.member).collect();
                    if joined.error == Some(GroupError::UnknownMemberId) {
                        client.member = "".into();
                    }
                }
                Err(GroupError::UnknownMemberId | GroupError::FencedInstanceId) => {
                    client.member = "".into();
                }
                _ => {}
            }
        }
    }
}

fn images(shard: &GroupShard) -> BTreeMap<GroupId, GroupImage> {
    shard.images().map(|(id, image)| (id.clone(), image.clone())).collect()
}

/// A shard that only ever reads the log.
struct Twin {
    shard: GroupShard,
    read: usize,
}

impl Twin {
    fn new() -> Self {
        let events = Arc::new(Events::silent(NodeId(2)));
        Self { shard: GroupShard::new(GroupConfig::default(), events), read: 0 }
    }

    fn follow(&mut self, log: &[RecordBytes]) {
        for record in &log[self.read..] {
            let decoded = Record::decode(&record.key, record.value.as_ref());
            let record = decoded.expect("our own record").expect("a known kind");
            self.shard.replay(record, Offset(self.read as i64));
            self.read += 1;
        }
    }
}

fn without_time(value: Option<GroupValue>) -> Option<GroupValue> {
    value.map(|value| GroupValue { state_ms: 0, ..value })
}

/// Stable groups live as they are stored; the rest has nothing to say.
fn assert_at_rest_as_stored(shard: &GroupShard) {
    for group in GROUPS {
        if let Some(live) = shard.value_at_rest(group) {
            let stored = shard.image(group).and_then(|image| image.classic.clone());
            assert_eq!(without_time(Some(live)), without_time(stored), "group {group}");
        }
    }
}

/// No partition has two owners, and no epoch is ahead of the one that it comes from.
fn assert_consumers_are_consistent(shard: &GroupShard) {
    for group in GROUPS {
        let Some(image) = shard.image(group).and_then(|image| image.consumer.as_ref()) else {
            continue;
        };
        assert!(image.target_epoch.epoch <= image.epoch.epoch);
        let mut owned = std::collections::BTreeSet::new();
        for (id, member) in &image.members {
            assert!(member.current.epoch <= image.epoch.epoch, "{id} is ahead");
            for of in [&member.current.assigned, &member.current.revoking] {
                for (topic, indexes) in of {
                    for index in indexes.keys() {
                        assert!(owned.insert((*topic, *index)), "{index} has two owners");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn replayed_state_equals_live_state_at_every_record(
        acts in prop::collection::vec(act(), 1..80),
    ) {
        let mut world = World::new();
        let mut twin = Twin::new();
        for act in acts {
            world.perform(act);
            twin.follow(&world.bench.log);
            let shard = world.bench.runtime.shard();
            prop_assert_eq!(images(shard), images(&twin.shard));
            assert_at_rest_as_stored(shard);
            assert_consumers_are_consistent(shard);
        }
        // A crash after any record: what was loaded is what was stored, and serves.
        let log = world.bench.log.clone();
        let mut twin = Twin::new();
        for end in 0..=log.len() {
            twin.follow(&log[..end]);
            let crashed =
                Bench::on(GroupConfig::default(), log[..end].to_vec(), world.bench.now);
            let shard = crashed.runtime.shard();
            prop_assert_eq!(images(shard), images(&twin.shard));
            assert_at_rest_as_stored(shard);
        }
        // Nobody waits for ever.
        world.bench.failure = None;
        world.bench.pass(3_600_000);
        world.read_answers();
        for client in &world.clients {
            prop_assert_eq!(client.waiting, None);
        }
    }

    #[test]
    fn the_same_events_give_the_same_log(acts in prop::collection::vec(act(), 1..60)) {
        let run = |acts: Vec<Act>| {
            let mut world = World::new();
            acts.into_iter().for_each(|act| world.perform(act));
            (world.bench.log, world.bench.answers, world.bench.notices)
        };
        prop_assert_eq!(run(acts.clone()), run(acts));
    }
}
