//! What a node does about damage at rest.

use std::path::{Path, PathBuf};

use duolog_bridge::dispatch::Dispatched;
use duolog_log_core::event::EventKind;
use duolog_log_core::ids::Offset;
use duolog_log_core::storage::checkpoint::{LOG_START_FILE, RECOVERY_POINT_FILE, REPLICATION_FILE};
use duolog_log_core::storage::disk::Disk;

use super::*;
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::{FetchRequest, FetchResponse};
use crate::testing::Told;
use crate::testing::rocketmq::RemotingClient;
use crate::testing::served::Client;

const LOG: &str = "00000000000000000000.log";

fn path(name: &str) -> PathBuf {
    Path::new("/data").join(name)
}

/// What partition 0 of a topic gives from `offset` on: error, and bytes.
async fn fetch(client: &mut Client, topic: &str, fetch_offset: i64) -> (i16, usize) {
    let partition =
        FetchPartition { partition_max_bytes: 1 << 20, fetch_offset, ..FetchPartition::default() };
    let topic =
        FetchTopic { topic: topic.into(), partitions: vec![partition], ..FetchTopic::default() };
    let (max_bytes, topics) = (1 << 20, vec![topic]);
    let request = FetchRequest { max_bytes, topics, ..FetchRequest::default() };
    let response: FetchResponse = client.call(12, &request).await;
    let partition = &response.responses[0].partitions[0];
    (partition.error_code, partition.records.as_ref().map_or(0, |records| records.len()))
}

/// A node that was stopped after ten batches of one record each to `t`.
async fn stopped() -> MemDisk {
    let node = TestNode::start(&[]).await;
    node.create_topic(TOPIC, &[]).await;
    let mut client = node.connect().await;
    for number in 0..10 {
        assert_eq!(client.produce(TOPIC, 1, batch(&[&text(number)])).await, (0, number as i64));
    }
    node.stop().await
}

async fn start(disk: &MemDisk) -> Result<Arc<Node>, String> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let started = Node::start(served::config(&[]), shared, Events::silent(NodeId(1))).await;
    started.map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_another_id_is_refused_and_not_replaced() {
    let disk = stopped().await;
    let (file, log) = (path("t-0/partition.metadata"), path("t-0").join(LOG));
    let content = disk.content(&log).expect("the log");
    let other = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg";
    disk.overwrite(&file, other.as_bytes());
    let node = TestNode::start_on(disk, &[]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce(TOPIC, 1, batch(&["lost"])).await.0, 103);
    assert_eq!(fetch(&mut client, TOPIC, 0).await.0, 103);
    assert_eq!(node.disk.content(&log), Some(content));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spoilt_offset_checkpoints_keep_no_node_from_its_start() {
    for file in [RECOVERY_POINT_FILE, LOG_START_FILE, REPLICATION_FILE] {
        for content in ["0\n1\nt 0", "rubbish", "0\n9\n", "\u{0}\u{0}"] {
            let disk = stopped().await;
            disk.overwrite(&path(file), content.as_bytes());
            let node = TestNode::start_on(disk, &[]).await;
            let mut client = node.connect().await;
            assert_eq!(client.produce(TOPIC, 1, batch(&["next"])).await, (0, 10), "{file}");
            node.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_emptied_gives_no_offset_twice() {
    let disk = stopped().await;
    disk.overwrite(&path("t-0").join(LOG), &[]);
    let node = TestNode::start_on(disk, &[]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce(TOPIC, 1, batch(&["next"])).await, (0, 10));
    let (code, bytes) = fetch(&mut client, TOPIC, 3).await;
    assert!(code == 0 && bytes > 0, "the next record there is");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_metadata_log_does_not_start_as_a_new_one() {
    let log = path("__duolog_metadata-0").join(LOG);
    for shorten in [|_: &[u8]| Vec::new(), |content: &[u8]| content[..content.len() / 2].to_vec()] {
        let disk = stopped().await;
        let folders = |disk: &MemDisk| disk.list(Path::new("/data")).expect("a list").len();
        let content = disk.content(&log).expect("the log");
        disk.overwrite(&log, &shorten(&content));
        let refused = start(&disk).await.expect_err("a part of the metadata is lost");
        assert!(refused.contains("damaged or missing"), "{refused}");
        let disk = disk.kill();
        let before = folders(&disk);
        start(&disk).await.expect_err("the second time too");
        // Put back, everything is there.
        let disk = disk.kill();
        assert_eq!(folders(&disk), before, "nothing is set aside");
        disk.overwrite(&log, &content);
        let node = TestNode::start_on(disk, &[]).await;
        let mut client = node.connect().await;
        assert_eq!(client.produce(TOPIC, 1, batch(&["next"])).await, (0, 10));
        node.stop().await;
    }
    let disk = stopped().await;
    disk.remove(&log).expect("removed");
    start(&disk).await.expect_err("all of it is lost");
}

/// PullMessage at `offset`: code, and where to go on.
async fn pull(node: &TestNode, offset: i64) -> (i32, Option<i64>, usize) {
    const PULL_MESSAGE: i32 = 11;
    let address = ([127, 0, 0, 1], 10911).into();
    let dispatcher = BridgeBackend::dispatcher(node.node.clone(), address);
    let (outbox, _notices) = mpsc::channel(1);
    let session = dispatcher.open(Door::Broker, address, outbox);
    let offset = offset.to_string();
    let fields = [
        ("consumerGroup", "readers"),
        ("topic", TOPIC),
        ("queueId", "0"),
        ("queueOffset", &offset),
        ("maxMsgNums", "32"),
        ("sysFlag", "4"),
        ("commitOffset", "0"),
        ("suspendTimeoutMillis", "0"),
        ("subscription", "*"),
        ("subVersion", "0"),
    ];
    let request = RemotingCommand::request(PULL_MESSAGE, 1, SerializeType::Json);
    let request =
        fields.iter().fold(request, |request, (name, value)| request.with_field(name, value));
    let answer = match dispatcher.dispatch(&session, request) {
        Dispatched::Now(answer) => answer,
        Dispatched::Later(answer) => answer.await,
    };
    let answer = answer.expect("a pull is answered").into_command();
    (answer.code, answer.field("nextBeginOffset").ok(), answer.body.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn rocketmq_is_given_the_good_messages_and_no_damaged_one_with_a_right_crc() {
    let disk = stopped().await;
    let log = path("t-0").join(LOG);
    let mut content = disk.content(&log).expect("the log");
    // A letter of the sixth record's value: the batch's CRC alone tells.
    let value = text(5).into_bytes();
    let at = content.windows(value.len()).position(|bytes| bytes == value).expect("the value");
    content[at] ^= 1;
    disk.overwrite(&log, &content);
    let node = TestNode::start_on(disk, &[]).await;
    let (code, next, bytes) = pull(&node, 0).await;
    assert_eq!((code, next), (0, Some(5)));
    assert!(bytes > 0);
    assert_eq!(pull(&node, 5).await.0, 1);
    assert_eq!(pull(&node, 6).await.1, Some(10));
    // Kafka's clients check the CRC themselves.
    let mut client = node.connect().await;
    let (code, bytes) = fetch(&mut client, TOPIC, 5).await;
    assert!(code == 0 && bytes > 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_an_unreadable_batch_readers_are_told_and_go_on_behind_it() {
    let disk = stopped().await;
    let log = path("t-0").join(LOG);
    let mut content = disk.content(&log).expect("the log");
    let size = content.len() / 10;
    content[5 * size + 16] = 9;
    disk.overwrite(&log, &content);
    let node = TestNode::start_on(disk, &[]).await;
    let mut client = node.connect().await;
    assert_eq!(fetch(&mut client, TOPIC, 0).await, (0, 5 * size));
    assert_eq!(fetch(&mut client, TOPIC, 5).await.0, 2);
    assert_eq!(fetch(&mut client, TOPIC, 6).await, (0, 4 * size));
    assert_eq!(pull(&node, 0).await.1, Some(5));
    assert_eq!(pull(&node, 5).await.0, 1);
    assert_eq!(pull(&node, 6).await.1, Some(10));
    assert_eq!(client.produce(TOPIC, 1, batch(&["next"])).await, (0, 10));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_both_protocols_pass_a_missing_segment() {
    for is_clean in [true, false] {
        let node = TestNode::start(&[]).await;
        node.create_topic(TOPIC, &[]).await;
        let mut client = node.connect().await;
        for number in 0..8 {
            client.produce(TOPIC, 1, batch(&[&text(number)])).await;
            if number % 2 == 1 {
                node.partition(TOPIC, 0).roll().await.expect("a new segment");
            }
        }
        let disk = node.stop().await;
        disk.remove(&path("t-0").join("00000000000000000002.log")).expect("removed");
        if !is_clean {
            disk.remove(&path(".kafka_cleanshutdown")).expect("removed");
        }
        let node = TestNode::start_on(disk, &[]).await;
        let (mut next, mut pulls) = (0, 0);
        while next < 8 {
            let (code, beyond, _) = pull(&node, next).await;
            let beyond = beyond.expect("where to go on");
            assert!([0, 20].contains(&code) && beyond > next, "{next}: {code} {beyond}");
            (next, pulls) = (beyond, pulls + 1);
            assert!(pulls <= 8, "it goes on and on");
        }
        let mut client = node.connect().await;
        for offset in 0..8 {
            let (code, bytes) = fetch(&mut client, TOPIC, offset).await;
            assert!(code == 0 && bytes > 0, "{offset}");
        }
        // A group that stands in the gap has read all there is before it.
        let readers = RemotingClient::new(&node.rocketmq());
        let position = [
            ("consumerGroup", "readers"),
            ("topic", TOPIC),
            ("queueId", "0"),
            ("commitOffset", "3"),
        ];
        assert_eq!(readers.call(15, &position, b"").await.code, 0);
        for code in [202, 208] {
            assert_eq!(readers.call(code, &position[..2], b"").await.code, 0, "{code}");
        }
        assert_eq!(client.produce(TOPIC, 1, batch(&["next"])).await, (0, 8));
        node.stop().await;
    }
}

/// To those who watch, and in the node's own log beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_first_segment_is_told_after_any_stop() {
    for is_clean in [true, false] {
        let node = TestNode::start(&[]).await;
        node.create_topic(TOPIC, &[]).await;
        let mut client = node.connect().await;
        for number in 0..4 {
            client.produce(TOPIC, 1, batch(&[&text(number)])).await;
            if number % 2 == 1 {
                node.partition(TOPIC, 0).roll().await.expect("a new segment");
            }
        }
        let disk = node.stop().await;
        disk.remove(&path("t-0").join(LOG)).expect("removed");
        if !is_clean {
            disk.remove(&path(".kafka_cleanshutdown")).expect("removed");
        }
        let told = Told::default();
        let events = Events::new(NodeId(1), Box::new(told.clone()));
        events.listen();
        let node = Node::start(served::config(&[]), Arc::new(disk), events).await.expect("a node");
        let topic = node.controller.image().topic(TOPIC).expect("there").clone();
        let partitions = node.partitions.of_topic(topic.id).expect("there");
        partitions[0].reader().await.expect("opened");
        let damage = told.of(EventKind::LogDamage, TOPIC);
        let first = damage.first().expect("it is told");
        assert_eq!((damage.len(), first.partition, first.offset), (1, Some(0), Some(Offset(0))));
        assert_eq!(first.cause.as_deref(), Some("up to 2, 0 spoilt bytes"));
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_closes_many_logs_and_the_next_start_scans_none() {
    const TOPICS: usize = 200;
    let node = TestNode::start(&[]).await;
    let mut client = node.connect().await;
    for number in 0..TOPICS {
        let name = format!("t{number}");
        node.create_topic(&name, &[]).await;
        client.produce(&name, 1, batch(&["kept"])).await;
    }
    let node = TestNode::start_on(node.stop().await.crash(Crash::ForgetUnsynced), &[]).await;
    let dirs = &node.node.partitions.shared().log_dirs;
    assert!(dirs.metadata().shutdown() == duolog_log_core::log::Shutdown::Clean);
    let mut client = node.connect().await;
    for number in 0..TOPICS {
        assert!(fetch(&mut client, &format!("t{number}"), 0).await.1 > 0);
    }
    node.stop().await;
}

/// One flipped bit must not become another truth: the node names the place, and does not start.
#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_of_the_metadata_log_changes_nothing_unnoticed() {
    const SETTINGS: [(&str, &str); 1] = [("retention.ms", "86400000")];
    let file = path("__duolog_metadata-0").join(LOG);
    let (mut at, mut starts, mut refused) = (0, 0, 0);
    loop {
        let node = TestNode::start(&[]).await;
        let before = node.create_topic(TOPIC, &SETTINGS).await;
        let disk = node.stop().await;
        let mut content = disk.content(&file).expect("the log");
        let Some(byte) = content.get_mut(at) else { break };
        *byte ^= 1;
        disk.overwrite(&file, &content);
        starts += 1;
        match start(&disk).await {
            Err(_) => refused += 1,
            Ok(node) => {
                let image = node.controller.image().clone();
                let topic = image.topic(TOPIC).expect("named as before");
                assert_eq!((topic.id, topic.config.retention_ms), (before.id, 86_400_000), "{at}");
                node.stop().await;
            }
        }
        at += 11;
    }
    assert!(refused > starts / 2, "{refused} of {starts}");
}
