//! What a request names twice is answered once, as of maps.

use crate::kafka::codec::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use crate::kafka::codec::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use crate::kafka::codec::messages::describe_log_dirs_request::DescribableLogDirTopic;
use crate::kafka::codec::messages::{
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, DeleteRecordsRequest,
    DeleteRecordsResponse, DescribeLogDirsRequest, DescribeLogDirsResponse,
};
use crate::testing::served::{TestNode, batch};

#[tokio::test(flavor = "multi_thread")]
async fn of_a_replica_the_last_directory_counts() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let home = node.node.partitions.shared().log_dirs.all()[0].path().display().to_string();
    let dir = |path: &str, partitions: &[i32]| AlterReplicaLogDir {
        path: path.into(),
        topics: vec![AlterReplicaLogDirTopic { name: "t".into(), partitions: partitions.to_vec() }],
    };
    let dirs = vec![dir("/nowhere", &[0, 7, 7]), dir(&home, &[0]), dir("/nowhere", &[])];
    let answer: AlterReplicaLogDirsResponse =
        client.call(2, &AlterReplicaLogDirsRequest { dirs }).await;
    let topics = answer.results.iter().map(|topic| {
        let codes = topic.partitions.iter().map(|of| (of.partition_index, of.error_code));
        codes.collect::<Vec<_>>()
    });
    assert_eq!(topics.collect::<Vec<_>>(), [[(0, 0), (7, 57)]]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_described_once() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let asked = |partitions: &[i32]| DescribableLogDirTopic {
        topic: "t".into(),
        partitions: partitions.to_vec(),
    };
    let topics = Some(vec![asked(&[0, 0]), asked(&[0, 7])]);
    let answer: DescribeLogDirsResponse = client.call(4, &DescribeLogDirsRequest { topics }).await;
    let of_topic = &answer.results[0].topics;
    assert_eq!((of_topic.len(), of_topic[0].partitions.len()), (1, 1));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_deletions_the_last_offset_counts() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    client.produce("t", 1, batch(&["v"; 10])).await;
    let asked = |name: &str, partitions: &[(i32, i64)]| DeleteRecordsTopic {
        name: name.into(),
        partitions: partitions
            .iter()
            .map(|&(partition_index, offset)| DeleteRecordsPartition { partition_index, offset })
            .collect(),
    };
    let topics = vec![asked("t", &[(0, 9), (5, 1)]), asked("u", &[]), asked("t", &[(0, 3)])];
    let request = DeleteRecordsRequest { topics, timeout_ms: 1000 };
    let answer: DeleteRecordsResponse = client.call(2, &request).await;
    assert_eq!(answer.topics.len(), 1, "a topic without partitions is not in the answer");
    let partitions = answer.topics[0].partitions.iter();
    let seen: Vec<_> =
        partitions.map(|of| (of.partition_index, of.error_code, of.low_watermark)).collect();
    assert_eq!(seen, [(0, 0, 3), (5, 3, -1)]);
    node.stop().await;
}
