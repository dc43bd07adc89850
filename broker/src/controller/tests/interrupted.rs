//! Changes whose requests go away, and topics that come back while they are being deleted.

use std::path::Path;
use std::task::Poll;

use duolog_log_core::log::ReadMinimum;
use duolog_log_core::storage::checkpoint::{LOG_START_FILE, RECOVERY_POINT_FILE, REPLICATION_FILE};

use super::*;
use crate::kafka::codec::messages::ProduceResponse;
use crate::partitions::deletion;
use crate::testing::served::{Client, batch, eventually, produce_request};

/// Polls `future` as often as it is woken, `polls` times at most, and drops it; whether it ended.
async fn dropped_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |cx| {
        let Some(still) = left.checked_sub(1) else { return Poll::Ready(false) };
        left = still;
        match future.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Makes every kind of change, each dropped after `polls` polls; whether all of them had ended.
async fn change_everything(node: &TestNode, polls: usize) -> bool {
    let controller = &node.node.controller;
    let grown = node.create_topic("grown", &[]).await.id;
    let altered = node.create_topic("altered", &[]).await.id;
    let gone = node.create_topic("gone", &[]).await.id;
    let setting = |key: &str| vec![(key.to_owned(), ConfigChange::Set("77".to_owned()))];
    let group = SubscriptionGroup::with_defaults("g".into());
    let ended = [
        dropped_after(polls, controller.create_topic(new_topic("new", 3), IfExists::Refuse)).await,
        dropped_after(polls, controller.create_partitions(grown, 5)).await,
        dropped_after(polls, controller.alter_topic_config(altered, setting("retention.ms"))).await,
        dropped_after(polls, controller.alter_broker_config("", setting("log.retention.ms"))).await,
        dropped_after(polls, controller.put_subscription_group(group)).await,
        dropped_after(polls, controller.put_kv("n", "k", Some("v".to_owned()))).await,
        dropped_after(polls, controller.next_producer_id()).await,
        dropped_after(polls, node.node.delete_topic(gone)).await,
    ];
    ended.into_iter().all(|ended| ended)
}

fn without_epoch(image: &Image) -> Vec<MetadataRecord> {
    let records = image.records().into_iter();
    records.filter(|record| !matches!(record, MetadataRecord::LeaderEpoch(_))).collect()
}

#[tokio::test]
async fn a_change_once_begun_is_finished_though_its_request_is_gone() {
    for polls in 0.. {
        let node = TestNode::start(&[]).await;
        let controller = node.node.controller.clone();
        let all_ended = change_everything(&node, polls).await;
        if polls > 0 {
            eventually("the deletion ends", || {
                let image = controller.image();
                image.topic("gone").is_none() && image.deleted().is_empty()
            })
            .await;
        }
        // It comes after everything that was begun, and gets numbers that nobody else has.
        let last = node.create_topic("last", &[]).await;
        let image = controller.image().clone();
        assert_eq!(image.topic("new").is_some(), polls > 0);
        let mut numbers: Vec<u32> =
            image.topics().flat_map(|topic| topic.numbers.clone()).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{polls}: {numbers:?}");
        assert!(last.numbers.iter().all(|number| numbers.contains(number)));
        for topic in image.topics() {
            let partitions = &node.node.partitions;
            assert!((0..topic.partition_count()).all(|i| partitions.find(topic.id, i).is_some()));
        }
        let id = controller.next_producer_id().await.expect("an id");
        assert!(id <= 1, "a block is begun once");
        let before = without_epoch(&controller.image());
        drop(controller);
        let node = TestNode::start_on(node.stop().await, &[]).await;
        assert_eq!(without_epoch(&node.node.controller.image()), before, "after {polls} polls");
        node.stop().await;
        if all_ended {
            assert!(polls > 1, "the changes wait for the disk");
            return;
        }
    }
}

fn folders(disk: &MemDisk, topic: &str) -> Vec<String> {
    let entries = disk.list(Path::new("/data")).expect("listed").into_iter();
    entries.map(|entry| entry.name).filter(|name| name.starts_with(&format!("{topic}-"))).collect()
}

async fn produce_to(client: &mut Client, index: i32, value: &str) -> (i16, i64) {
    let mut request = produce_request("t", -1, batch(&[value]).freeze());
    request.topic_data[0].partition_data[0].index = index;
    let response: ProduceResponse = client.call(9, &request).await;
    let answer = &response.responses[0].partition_responses[0];
    (answer.error_code, answer.base_offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_created_anew_while_it_is_deleted_keeps_what_it_acknowledges() {
    const LAST: i32 = 63;
    let mut disk = MemDisk::new();
    for round in 0..4 {
        let node = TestNode::start_on(disk, &[]).await;
        let mut client = node.connect().await;
        let controller = node.node.controller.clone();
        let new = || new_topic("t", LAST + 1);
        let topic = controller.create_topic(new(), IfExists::Refuse).await.expect("created");
        for index in (0..=LAST).filter(|_| round % 2 == 0) {
            assert_eq!(produce_to(&mut client, index, "old").await, (0, 0));
        }
        let deleting = tokio::spawn({
            let node = node.node.clone();
            async move { node.delete_topic(topic.id).await }
        });
        while controller.image().topic("t").is_some() {
            tokio::task::yield_now().await;
        }
        let again = controller.create_topic(new(), IfExists::Refuse).await.expect("created anew");
        assert_eq!(produce_to(&mut client, LAST, "new").await, (0, 0));
        deleting.await.expect("joined").expect("deleted");
        assert!(folders(&node.disk, "t").contains(&format!("t-{LAST}")));
        assert_eq!(produce_to(&mut client, LAST, "newer").await, (0, 1));
        drop((client, controller));
        let node = TestNode::start_on(node.stop().await, &[]).await;
        let partition = node.node.partitions.find(again.id, LAST).expect("there");
        partition.reader().await.expect("open");
        assert_eq!(partition.offsets().log_end, 2);
        node.node.delete_topic(again.id).await.expect("deleted");
        disk = node.stop().await;
        assert_eq!(folders(&disk, "t").iter().filter(|name| name.ends_with("-stray")).count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_the_disk_refuses_is_noted_and_tried_again_before_the_name_is_reused() {
    let mut refused = 0;
    for at in 0..24 {
        let node = TestNode::start(&[]).await;
        let mut client = node.connect().await;
        let topic = node.create_topic("t", &[]).await;
        assert_eq!(produce_to(&mut client, 0, "old").await, (0, 0));
        // A device that fails takes the directory offline; one that is full does not.
        node.disk.fail_operation(node.disk.operations() + at, Fault::Full);
        let deleted = node.node.delete_topic(topic.id).await;
        node.disk.clear_faults();
        if deleted.is_err() {
            // The metadata log itself was hit and takes no more writes.
            continue;
        }
        let is_left = !node.node.controller.image().deleted().is_empty();
        refused += usize::from(is_left);
        if at % 2 == 0 {
            // As it is now and then.
            node.node.controller.delete_what_is_left().await;
            assert!(node.node.controller.image().deleted().is_empty(), "fault at {at}");
            let named = folders(&node.disk, "t").into_iter();
            assert_eq!(named.filter(|name| !name.ends_with("-delete")).count(), 0);
        }
        let again = node.create_topic("t", &[]).await;
        assert!(node.node.controller.image().deleted().is_empty());
        assert_eq!(produce_to(&mut client, 0, "new").await, (0, 0), "fault at {at}");
        let node = TestNode::start_on(node.disk.kill(), &[]).await;
        let partition = node.node.partitions.find(again.id, 0).expect("there");
        partition.reader().await.expect("open");
        assert_eq!(partition.offsets().log_end, 1, "fault at {at}");
        assert!(folders(&node.disk, "t").iter().all(|name| !name.ends_with("-stray")));
        node.stop().await;
    }
    assert!(refused > 0, "some fault hit the folders");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_keeps_no_folder_of_a_deleted_topic() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[("file.delete.delay.ms", "0")]).await;
    let mut client = node.connect().await;
    assert_eq!(produce_to(&mut client, 0, "old").await, (0, 0));
    let partitions = node.node.partitions.clone();
    let ended = partitions.remove_topic(topic.id);
    node.disk.set_capacity(Some(0));
    let deleted = deletion::delete_folders(&partitions, &ended).await;
    assert!(deleted.is_err(), "the name is not free while a checkpoint speaks of it");
    eventually("the folder is gone", || folders(&node.disk, "t").is_empty()).await;
    node.disk.set_capacity(None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_cut_off_at_any_call_is_finished_and_forgotten_by_the_next_start() {
    let mut noted = 0;
    for at in 0..24 {
        let node = TestNode::start(&[]).await;
        let topic = node.create_topic("t", &[]).await;
        let mut client = node.connect().await;
        assert_eq!(produce_to(&mut client, 0, "old").await, (0, 0));
        node.disk.fail_operation(node.disk.operations() + at, Fault::Halt);
        _ = node.node.delete_topic(topic.id).await;
        let shared: Arc<dyn Disk> = Arc::new(node.disk.kill());
        let events = Events::silent(NodeId(1));
        let next = Node::start(config(&[]), shared, events).await.expect("starts");
        let image = next.controller.image().clone();
        assert!(image.deleted().is_empty(), "nothing is left to do: halt at {at}");
        noted += usize::from(image.topic("t").is_none());
        next.stopping.cancel();
    }
    assert!(noted > 3, "the deletion was cut off in the middle, too");
}

/// Starts a node that knows offsets of a topic "t" only from its last run.
async fn with_offsets_of_the_last_run() -> TestNode {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    for offset in 0..3 {
        assert_eq!(produce_to(&mut client, 0, "old").await, (0, offset));
    }
    let partition = node.node.partitions.find(topic.id, 0).expect("there");
    assert_eq!(partition.delete_records(2).await.expect("deleted"), 2);
    drop(client);
    let disk = node.stop().await;
    for file in [RECOVERY_POINT_FILE, REPLICATION_FILE, LOG_START_FILE] {
        let content = disk.content(&Path::new("/data").join(file)).expect("written");
        assert!(String::from_utf8_lossy(&content).contains("t 0 "), "{file}");
    }
    TestNode::start_on(disk, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_of_a_deleted_topic_are_not_taken_for_those_of_its_namesake() {
    for opened in [false, true] {
        let node = with_offsets_of_the_last_run().await;
        let mut client = node.connect().await;
        let old = node.node.controller.image().topic("t").expect("kept").id;
        if opened {
            assert_eq!(produce_to(&mut client, 0, "old").await, (0, 3));
        }
        node.node.delete_topic(old).await.expect("deleted");
        let topic = node.create_topic("t", &[]).await;
        assert_eq!(produce_to(&mut client, 0, "new").await, (0, 0));
        let partition = node.node.partitions.find(topic.id, 0).expect("there");
        assert_eq!((partition.offsets().log_start, partition.synced()), (0, 0));
        // Nor by the next start, when no checkpoint was written since.
        let node = TestNode::start_on(node.disk.kill(), &[]).await;
        let partition = node.node.partitions.find(topic.id, 0).expect("there");
        let reader = partition.reader().await.expect("open");
        let offsets = partition.offsets();
        assert_eq!((offsets.log_start, offsets.log_end, partition.synced()), (0, 1, 0));
        assert_eq!(reader.read(0, 100, 1, ReadMinimum::OneBatch).expect("read").next_offset, 1);
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_may_be_asked_for_while_it_is_being_written() {
    use crate::partitions::checkpoints::Checkpoint;
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let partitions = node.node.partitions.clone();
            tokio::task::spawn_blocking(move || {
                (0..50).try_for_each(|_| Checkpoint::RecoveryPoint.write(&partitions))
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("joined").expect("written");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_log_that_was_compacted_is_left_alone_by_the_next_starts() {
    let node = TestNode::start(&[]).await;
    let value = "x".repeat(32 * 1024);
    for round in 0..48 {
        let value = Some(format!("{round} {value}"));
        node.node.controller.put_kv("n", "k", value).await.expect("put");
    }
    let mut disk = node.stop().await;
    let mut starts = Vec::new();
    for _ in 0..3 {
        let node = TestNode::start_on(disk, &[]).await;
        let log = node.node.partitions.metadata().expect("open");
        starts.push(log.offsets().log_start);
        assert!(node.node.controller.image().kv("n", "k").is_some_and(|v| v.starts_with("47 ")));
        eventually("what was replaced is freed", || log.bytes() < 256 * 1024).await;
        disk = node.stop().await;
    }
    assert!(starts[0] > 0, "compacted once");
    assert_eq!(starts, [starts[0]; 3]);
}
