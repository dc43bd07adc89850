//! What an append is answered.

use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::log::AppendOrigin;
use duolog_log_core::record::builder::ProducerSequence;
use duolog_log_core::record::{BatchParams, TimestampType};

use super::*;
use crate::partitions::append::Payload;
use crate::testing::served::{TestNode, batch_of, eventually};

/// As UnifiedLog.append: a repeated batch has the offset and the time that it got the first time.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_batch_is_answered_as_the_first_one() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[("message.timestamp.type", "LogAppendTime")]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let producer =
        ProducerSequence { id: ProducerId(7), epoch: ProducerEpoch(0), base_sequence: 0 };
    let params = BatchParams { producer: Some(producer), ..BatchParams::default() };
    let mut answers = Vec::new();
    for _ in 0..2 {
        let bytes = batch_of(params, &["value"]);
        let size = bytes.len();
        let payload = Payload::Batch {
            bytes,
            record_count: 1,
            timestamp_type: TimestampType::LogAppendTime,
            max_timestamp: 0,
            origin: AppendOrigin::Client,
        };
        let answer = partition.append(payload, size, Acks::All, Flush::Topic).await;
        let answer = answer.expect("room").await.expect("an answer").expect("in the log");
        answers.push((answer.base_offset, answer.log_append_time_ms));
        let before = clock::now_ms();
        eventually("the clock goes on", || clock::now_ms() > before).await;
    }
    assert!(answers[0].1 > 0);
    assert_eq!(answers[0], answers[1]);
    node.stop().await;
}
