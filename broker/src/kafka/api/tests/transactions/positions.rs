//! Positions in transactions: unseen while they are open, counted or forgotten with their end.

use super::*;
use crate::kafka::codec::messages::offset_fetch_request::OffsetFetchRequestTopic;
use crate::kafka::codec::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};

const UNSTABLE_OFFSET_COMMIT: i16 = 88;

pub(super) async fn group(client: &mut Client) {
    let attempts = Attempts::at("the coordinator has read its log");
    let key = FindCoordinatorRequest { key: "g".into(), ..Default::default() };
    loop {
        let found: FindCoordinatorResponse = client.call(2, &key).await;
        if found.error_code == NONE {
            return;
        }
        assert_eq!(found.error_code, COORDINATOR_LOAD_IN_PROGRESS);
        attempts.again().await;
    }
}

pub(super) fn position(
    partition_index: i32,
    committed_offset: i64,
) -> TxnOffsetCommitRequestPartition {
    TxnOffsetCommitRequestPartition {
        partition_index,
        committed_offset,
        committed_metadata: Some("m".into()),
        ..TxnOffsetCommitRequestPartition::default()
    }
}

pub(super) async fn commit(
    client: &mut Client,
    version: i16,
    producer: Producer,
    positions: Vec<TxnOffsetCommitRequestPartition>,
) -> Vec<i16> {
    let request = TxnOffsetCommitRequest {
        transactional_id: "a".into(),
        group_id: "g".into(),
        producer_id: producer.0,
        producer_epoch: producer.1,
        topics: vec![TxnOffsetCommitRequestTopic { name: "t".into(), partitions: positions }],
        ..TxnOffsetCommitRequest::default()
    };
    let answer: TxnOffsetCommitResponse = client.call(version, &request).await;
    answer.topics[0].partitions.iter().map(|partition| partition.error_code).collect()
}

async fn add_group(client: &mut Client, producer: Producer) -> i16 {
    let request = AddOffsetsToTxnRequest {
        transactional_id: "a".into(),
        producer_id: producer.0,
        producer_epoch: producer.1,
        group_id: "g".into(),
    };
    let answer: AddOffsetsToTxnResponse = client.call(3, &request).await;
    answer.error_code
}

/// Error code and position of partition 0 of `t`; asks again while the groups are being read.
async fn read(client: &mut Client, require_stable: bool) -> (i16, i64) {
    let request = OffsetFetchRequest {
        group_id: "g".into(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: "t".into(),
            partition_indexes: vec![0],
        }]),
        require_stable,
        ..OffsetFetchRequest::default()
    };
    let attempts = Attempts::at("the groups are read");
    loop {
        let answer: OffsetFetchResponse = client.call(7, &request).await;
        if let Some(topic) = answer.topics.first() {
            let partition = &topic.partitions[0];
            return (partition.error_code, partition.committed_offset);
        }
        attempts.again().await;
    }
}

/// Waits until nothing is pending.
async fn settled(client: &mut Client) -> i64 {
    let attempts = Attempts::at("nothing is pending");
    loop {
        let (code, offset) = read(client, true).await;
        if code != UNSTABLE_OFFSET_COMMIT {
            assert_eq!(code, NONE);
            return offset;
        }
        attempts.again().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_count_from_the_commit_on_and_after_an_abort_never() {
    let (node, mut client) = node().await;
    group(&mut client).await;
    let mut producer = started(&mut client, "a").await;
    for (version, committed, offset) in
        [(0, true, 5), (2, false, 6), (3, true, 7), (4, false, 8), (5, true, 9), (5, false, 10)]
    {
        let before = read(&mut client, false).await;
        if version < 5 {
            let refused = if version == 4 { TRANSACTION_ABORTABLE } else { INVALID_TXN_STATE };
            let unadded = commit(&mut client, version, producer, vec![position(0, offset)]).await;
            assert_eq!(unadded, [refused], "v{version}");
            assert_eq!(add_group(&mut client, producer).await, NONE);
        }
        let positions = vec![position(0, offset), position(7, 1)];
        assert_eq!(commit(&mut client, version, producer, positions).await, [NONE, 3]);
        assert_eq!(read(&mut client, false).await, before, "v{version}: not yet");
        assert_eq!(read(&mut client, true).await, (UNSTABLE_OFFSET_COMMIT, -1), "v{version}");
        let ending = if version < 5 { 3 } else { 5 };
        let (code, next) = end(&mut client, ending, "a", producer, committed).await;
        assert_eq!(code, NONE);
        if version >= 5 {
            producer = next;
        }
        let expected = if committed { offset } else { before.1 };
        assert_eq!(settled(&mut client).await, expected, "v{version}");
        completed(&mut client, "a").await;
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_positions_outlive_a_restart_and_so_does_their_end() {
    let (node, mut client) = node().await;
    group(&mut client).await;
    let producer = started(&mut client, "a").await;
    assert_eq!(commit(&mut client, 5, producer, vec![position(0, 5)]).await, [NONE]);
    drop(client);
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let mut client = node.connect().await;
    group(&mut client).await;
    assert_eq!(read(&mut client, true).await, (UNSTABLE_OFFSET_COMMIT, -1));
    assert_eq!(read(&mut client, false).await, (NONE, -1));
    coordinators(&mut client, "a").await;
    let (code, producer) = end(&mut client, 5, "a", producer, true).await;
    assert_eq!(code, NONE);
    assert_eq!(settled(&mut client).await, 5);
    completed(&mut client, "a").await;
    assert_eq!(commit(&mut client, 5, producer, vec![position(0, 6)]).await, [NONE]);
    assert_eq!(end(&mut client, 5, "a", producer, false).await.0, NONE);
    assert_eq!(settled(&mut client).await, 5);
    drop(client);
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let mut client = node.connect().await;
    group(&mut client).await;
    assert_eq!(read(&mut client, true).await, (NONE, 5));
    node.stop().await;
}

/// Case B40.
#[tokio::test(flavor = "multi_thread")]
async fn b40_a_position_that_is_refused_leaves_nothing_pending() {
    let (node, mut client) = node().await;
    group(&mut client).await;
    let producer = started(&mut client, "a").await;
    let long = TxnOffsetCommitRequestPartition {
        committed_metadata: Some("m".repeat(5000).into()),
        ..position(0, 5)
    };
    assert_eq!(commit(&mut client, 5, producer, vec![long, position(1, 6)]).await, [12, NONE]);
    assert_eq!(read(&mut client, true).await, (NONE, -1), "partition 0 waits for nothing");
    assert_eq!(end(&mut client, 5, "a", producer, true).await.0, NONE);
    assert_eq!(settled(&mut client).await, -1);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_commits_no_positions() {
    let (node, mut client) = node().await;
    group(&mut client).await;
    let first = started(&mut client, "a").await;
    assert_eq!(add_group(&mut client, first).await, NONE);
    let (_, second) = init(&mut client, "a").await;
    assert_ne!(first, second);
    for version in 0..=5 {
        let refused = commit(&mut client, version, first, vec![position(0, 5)]).await;
        assert_eq!(refused, [INVALID_PRODUCER_EPOCH], "v{version}");
    }
    assert_eq!(read(&mut client, true).await, (NONE, -1));
    node.stop().await;
}
