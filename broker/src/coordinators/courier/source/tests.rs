use super::*;
use crate::testing::served::{TestNode, batch};

/// Messages were taken for unreadable, and so lost, where more was read than is kept.
#[tokio::test]
async fn every_record_is_found_in_any_order_though_few_batches_are_kept() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let mut client = node.connect().await;
    let value = |offset: i64| format!("value {offset}");
    for offset in 0..60 {
        assert_eq!(client.produce("t", 1, batch(&[&value(offset)])).await.0, 0);
    }
    let mut source = Source::with_room(partition.open_reader().expect("open"), 500);
    let offsets: Vec<i64> = (0..60).chain([7, 41, 8, 3, 59, 0]).chain(20..60).collect();
    for offset in offsets {
        let found = source.find(offset, |record| record.value.map(<[u8]>::to_vec));
        assert_eq!(found.expect("readable"), Some(value(offset).into_bytes()), "{offset}");
    }
    assert_eq!(source.find(60, |_| Some(())).expect("readable"), None);
}
