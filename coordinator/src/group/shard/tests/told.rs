//! What is told as events.

use std::sync::Mutex;

use duolog_log_core::event::{Event as Told, EventKind, EventSink, Events};
use duolog_log_core::ids::NodeId;

use super::*;

#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

struct Sink(Arc<Listener>);

impl EventSink for Sink {
    fn accept(&self, event: &Told) {
        let place = match (&event.topic, event.partition, event.offset) {
            (Some(topic), Some(partition), Some(Offset(offset))) => {
                format!(" {topic}-{partition}@{offset}")
            }
            (Some(topic), Some(partition), None) => format!(" {topic}-{partition}"),
            _ => String::new(),
        };
        let text = |value: &Option<Arc<str>>| value.as_deref().unwrap_or("-").to_owned();
        let (client, cause) = (text(&event.client), text(&event.cause));
        self.0.0.lock().expect("told").push(format!("{}{place} {client} {cause}", event.kind));
    }
}

/// A shard that is loaded, and what it tells.
struct Heard {
    shard: GroupShard,
    listener: Arc<Listener>,
    requests: u64,
}

impl Heard {
    fn new() -> Self {
        let listener = Arc::new(Listener::default());
        let events = Arc::new(Events::new(NodeId(1), Box::new(Sink(listener.clone()))));
        events.listen();
        let mut shard = GroupShard::new(GroupConfig::default(), events);
        shard.loaded(Now::default());
        Self { shard, listener, requests: 0 }
    }

    /// Handles an event and has its records in the log.
    fn handle(&mut self, event: Event) {
        self.requests += 1;
        let request = Some(RequestId(self.requests));
        let outcome = self.shard.handle(request, event, Now::default());
        for record in outcome.records {
            self.shard.replay(record, Offset(0));
        }
    }

    /// What was told of these kinds since the last time.
    fn told(&self, kinds: &[EventKind]) -> Vec<String> {
        let told = std::mem::take(&mut *self.listener.0.lock().expect("told"));
        let is_it =
            |line: &&String| kinds.iter().any(|kind| line.split(' ').next() == Some(kind.name()));
        told.iter().filter(is_it).cloned().collect()
    }
}

const REVOKED: &[EventKind] = &[EventKind::GroupRevoke];

/// A `ConsumerProtocolAssignment` v1 of partitions of topic `t`.
fn assignment(partitions: &[i32]) -> Bytes {
    let mut bytes = vec![0, 1, 0, 0, 0, 1, 0, 1, b't'];
    bytes.extend((partitions.len() as i32).to_be_bytes());
    partitions.iter().for_each(|partition| bytes.extend(partition.to_be_bytes()));
    bytes.extend((-1_i32).to_be_bytes());
    bytes.into()
}

#[test]
fn members_that_come_and_go_and_positions_are_told() {
    let mut heard = Heard::new();
    let stored = |offset| Record::Offset {
        group: "g".into(),
        topic: "t".into(),
        partition: 0,
        value: Some(offset_value(offset, 5)),
    };
    heard.shard.replay(stored(2), Offset(1));
    heard.handle(join("").uuid(1).event());
    heard.handle(leave(&[(&id("c", 1), "")]));
    let mut heartbeat = consumer("c@1", 1, &["t"]);
    heartbeat.group = "h".into();
    heard.handle(beat(heartbeat));
    heard.handle(Event::ChannelLeft { group: "h".into(), channel: ChannelId(1) });
    assert_eq!(
        heard.told(EventKind::ALL),
        [
            "offset.commit t-0@2 - group g".to_owned(),
            format!("group.join {} group g: joined", id("c", 1)),
            format!("group.leave {} group g: left", id("c", 1)),
            "group.join c@1 group h: joined".to_owned(),
            "group.revoke c@1 group h: connection closed, its queues are free".to_owned(),
            "group.leave c@1 group h: connection closed".to_owned(),
        ]
    );
}

#[test]
fn what_is_loaded_is_no_news() {
    let listener = Arc::new(Listener::default());
    let events = Arc::new(Events::new(NodeId(1), Box::new(Sink(listener.clone()))));
    events.listen();
    let mut shard = GroupShard::new(GroupConfig::default(), events);
    for offset in [2, 1] {
        let value = Some(offset_value(offset, 5));
        let (group, topic) = ("g".into(), "t".into());
        shard.replay(Record::Offset { group, topic, partition: 0, value }, Offset(0));
    }
    shard.loaded(Now::default());
    assert!(listener.0.lock().expect("told").is_empty());
}

#[test]
fn a_position_that_goes_back_is_told_as_reset() {
    const RESET: &[EventKind] = &[EventKind::OffsetReset];
    let mut heard = Heard::new();
    heard.handle(queue_commit("g", 5));
    heard.handle(queue_commit("g", 7));
    heard.handle(queue_commit("g", 7));
    assert!(heard.told(RESET).is_empty());
    heard.handle(queue_commit("g", 4));
    assert_eq!(heard.told(RESET), ["offset.reset t-0@4 - group g: back from 7"]);
    heard.handle(Event::OffsetCommit(commit("k", "", -1, 9)));
    heard.handle(Event::OffsetCommit(commit("k", "", -1, 2)));
    let told = heard.told(&[EventKind::OffsetCommit, EventKind::OffsetReset]);
    assert_eq!(
        told,
        [
            "offset.commit t-0@9 - group k",
            "offset.commit t-0@2 - group k",
            "offset.reset t-0@2 - group k: back from 9",
        ]
    );
}

#[test]
fn a_classic_member_is_told_each_partition_that_it_loses() {
    let (one, two) = (id("c", 1), id("c", 2));
    let mut heard = Heard::new();
    heard.handle(join("").uuid(1).event());
    let end_join = |heard: &mut Heard| {
        // The initial delay begins anew once for each newcomer.
        for _ in 0..2 {
            heard.handle(Event::Fired(Timer::Join("g".into())));
        }
    };
    end_join(&mut heard);
    heard.handle(sync(&one, 1, vec![(one.as_str().into(), assignment(&[0, 1, 2]))]));
    heard.handle(join("").uuid(2).event());
    heard.handle(join(&one).event());
    assert!(heard.told(REVOKED).is_empty(), "nothing is lost before the leader has spoken");
    // The second one begins anew before it has its assignment: nothing has moved yet.
    heard.handle(join(&two).protocols(&["range", "other"]).event());
    heard.handle(join(&one).event());
    heard.handle(sync(
        &one,
        3,
        vec![(one.as_str().into(), assignment(&[0])), (two.as_str().into(), assignment(&[1, 2]))],
    ));
    let lost = |partition| format!("group.revoke t-{partition} {one} group g: assigned to another");
    assert_eq!(heard.told(REVOKED), [lost(1), lost(2)]);
    heard.handle(sync(&two, 3, Vec::new()));
    heard.handle(leave(&[(&two, "")]));
    let gone = |partition| format!("group.revoke t-{partition} {two} group g: no member any more");
    assert_eq!(heard.told(REVOKED), [gone(1), gone(2)]);
    heard.handle(join(&one).event());
    heard.handle(sync(&one, 4, vec![(one.as_str().into(), Bytes::from_static(b"odd"))]));
    assert!(heard.told(REVOKED).is_empty(), "nobody can say what is lost");
}

#[test]
fn rocketmq_members_are_told_to_divide_their_queues() {
    let mut heard = Heard::new();
    for (client, channel) in [("c@1", 1), ("c@2", 2), ("c@1", 1)] {
        heard.handle(beat(consumer(client, channel, &["t"])));
    }
    let divides = "group.revoke c@1 group g: divides its queues with c@2";
    assert_eq!(heard.told(REVOKED), [divides], "a heartbeat alone moves nothing");
    heard.handle(beat(consumer("c@1", 3, &["t"])));
    assert!(heard.told(REVOKED).is_empty(), "a client on a new connection keeps its queues");
    let mut broadcast = consumer("b@1", 5, &["t"]);
    broadcast.group = "b".into();
    broadcast.message_model = MessageModel::Broadcasting;
    heard.handle(beat(broadcast));
    heard.handle(Event::ChannelLeft { group: "b".into(), channel: ChannelId(5) });
    assert!(heard.told(REVOKED).is_empty(), "broadcast members share nothing");
}
