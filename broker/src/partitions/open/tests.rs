use super::*;
use crate::testing::served::TestNode;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_opened_with_all_that_its_topic_says() {
    let node = TestNode::start(&["producer.id.expiration.ms=77"]).await;
    let overrides = [
        ("segment.bytes", "2097152"),
        ("segment.ms", "2"),
        ("segment.index.bytes", "30"),
        ("index.interval.bytes", "4"),
        ("retention.ms", "5"),
        ("retention.bytes", "6"),
        ("file.delete.delay.ms", "7"),
        ("flush.messages", "8"),
        ("flush.ms", "9"),
    ];
    let topic = node.create_topic("t", &overrides).await;
    let config = log_config(&topic.config, node.node.partitions.shared());
    assert_eq!((config.segment_bytes, config.segment_ms), (2_097_152, 2));
    assert_eq!((config.segment_index_bytes, config.index_interval_bytes), (30, 4));
    assert_eq!((config.retention_ms, config.retention_bytes), (5, 6));
    assert_eq!(config.file_delete_delay_ms, 7);
    assert_eq!((config.flush_messages, config.flush_ms), (8, 9));
    assert_eq!(config.producer_id_expiration_ms, 77);
    assert_eq!(config.cleanup_policy, CleanupPolicy::Delete);
    node.stop().await;
}
