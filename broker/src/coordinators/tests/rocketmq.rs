//! RocketMQ's members and positions beside Kafka's.

use super::*;

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl NoticeSink for Heard {
    fn accept(&self, notice: Notice) {
        let text = match notice {
            Notice::ConsumerGroup { group, view } => {
                let members = view.map(|view| view.members.len());
                format!("{group}: {members:?}")
            }
            Notice::MembersChanged { group, channels } => format!("{group}: tell {channels:?}"),
            Notice::ChannelExpired(channel) => format!("expired {channel:?}"),
        };
        self.0.lock().expect("heard").push(text);
    }
}

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("heard"))
    }
}

fn beat(group: &str, client: &str, channel: u64) -> Event {
    let subscription = Subscription {
        topic: "t".into(),
        expression: "*".to_owned(),
        expression_type: "TAG".to_owned(),
        tags: Vec::new(),
        tag_hashes: Vec::new(),
        version: 1,
        class_filter_mode: false,
    };
    Event::ConsumerHeartbeat(Box::new(ConsumerHeartbeat {
        group: group.into(),
        client: Client {
            id: client.into(),
            language: 0,
            version: 513,
            address: ([127, 0, 0, 1], 5000).into(),
            channel: ChannelId(channel),
        },
        consume_type: ConsumeType::Passively,
        message_model: MessageModel::Clustering,
        consume_from_where: ConsumeFromWhere::FirstOffset,
        subscriptions: Some(vec![Arc::new(subscription)]),
        notices: MemberNotices::On,
    }))
}

fn queue_commit(group: &str, offset: i64) -> Event {
    let (group, topic) = (group.into(), "t".into());
    Event::CommitQueueOffset(CommitQueueOffset { group, topic, queue: 0, offset })
}

fn query(group: &str) -> Event {
    Event::QueryQueueOffset(QueryQueueOffset { group: group.into(), topic: "t".into(), queue: 0 })
}

impl Bench {
    fn request(&self, group: &str, event: Event) -> Result<Response, GroupError> {
        self.run(self.node.coordinators.request(group, event))
    }
}

#[test]
fn rocketmq_members_come_and_go_and_everybody_hears() {
    let bench = Bench::new();
    bench.create("t");
    let heard = Heard::default();
    bench.node.coordinators.set_notices(Arc::new(heard.clone()));
    // The first heartbeat of all creates the coordinators' topic.
    let first = bench.request("g", beat("g", "c@1", 1)).expect("taken");
    assert!(matches!(first, Response::ConsumerHeartbeat(change) if change.members));
    assert!(heard.take().contains(&"g: Some(1)".to_owned()));
    bench.request("g", beat("g", "c@2", 2)).expect("taken");
    let told = heard.take();
    assert!(told.contains(&"g: Some(2)".to_owned()), "{told:?}");
    assert!(told.iter().any(|text| text.contains("tell [ChannelId(1)")), "{told:?}");
    let joined = bench.run(bench.node.coordinators.join_group(join("g", 10_000))).expect("answer");
    assert_eq!(joined.error, Some(GroupError::HeldByRocketMq));
    bench.node.coordinators.channel_closed(ChannelId(1));
    assert!(heard.take().contains(&"g: Some(1)".to_owned()), "told before it returns");
    bench.node.stopping.cancel();
    bench.until("the end", |_| heard.take().contains(&"g: None".to_owned()).then_some(()));
}

#[test]
fn both_families_share_one_position() {
    let bench = Bench::with_groups(&[]);
    assert_eq!(bench.request("g", query("g")), Ok(Response::QueryQueueOffset(None)));
    assert_eq!(bench.request("g", queue_commit("g", 9)), Ok(Response::Done));
    assert_eq!(bench.position("g", "t"), Ok(9));
    bench.commit("g", "t", 10).expect("committed");
    assert_eq!(bench.request("g", query("g")), Ok(Response::QueryQueueOffset(Some(10))));
    let mut shown = Vec::new();
    bench.node.coordinators.for_each_group(|group, image| {
        let offset = image.offset("t", 0).map(|value| value.offset);
        shown.push((group.to_owned(), offset));
    });
    assert_eq!(shown, [("g".to_owned(), Some(10))]);
}

#[test]
fn rocketmq_requests_wait_for_the_log_to_be_read() {
    let bench = Bench::with_groups(&[]);
    bench.commit("g", "t", 3).expect("committed");
    let bench = bench.restart();
    assert_eq!(bench.request("g", query("g")), Ok(Response::QueryQueueOffset(Some(3))));
    let bench = bench.restart();
    bench.node.coordinators.notify("g", queue_commit("g", 4));
    bench.until("the position", |bench| {
        let position = bench.request("g", query("g")).expect("an answer");
        (position == Response::QueryQueueOffset(Some(4))).then_some(())
    });
}

#[test]
fn positions_that_nobody_waits_for_are_kept_in_order() {
    let bench = Bench::new();
    bench.create("t");
    // There is not even a topic for it yet.
    bench.node.coordinators.notify("g", queue_commit("g", 1));
    bench.until("the first position", |bench| {
        bench
            .node
            .coordinators
            .exist()
            .then(|| bench.request("g", query("g")))?
            .ok()
            .filter(|answer| *answer == Response::QueryQueueOffset(Some(1)))
    });
    for offset in 2..100 {
        bench.node.coordinators.notify("g", queue_commit("g", offset));
    }
    assert_eq!(bench.request("g", query("g")), Ok(Response::QueryQueueOffset(Some(99))));
}

#[test]
fn a_topic_that_nobody_committed_on_is_deleted_quietly() {
    let bench = Bench::new();
    let name = "t".into();
    bench.node.coordinators.topic_deleted(&DeletedTopic { name, id: TopicId([1; 16]) });
    assert!(!bench.node.coordinators.exist());
}
