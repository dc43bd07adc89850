use super::*;
use crate::fake::{Client, FakeBackend};

const CLONE: i32 = 314;
const CORRECTION: i32 = 308;

async fn commit(backend: &FakeBackend, group: &str, topic: &str, offsets: &[i64]) {
    let topic = backend.topic(topic).expect("a topic");
    for (queue_id, offset) in (0..).zip(offsets) {
        backend.commit_offset(group, &topic, queue_id, *offset).await.expect("committed");
    }
}

#[tokio::test]
async fn a_groups_positions_become_anothers() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for topic in ["t", "u"] {
        backend.add_topic(topic, 2);
        commit(&backend, "g", topic, &[3, 4]).await;
    }
    let fields = [("srcGroup", "g"), ("destGroup", "h"), ("topic", "t"), ("offline", "true")];
    assert_eq!(client.call(CLONE, &fields, &[]).await.code, 0);
    let of = |group: &str, topic: &str| [0, 1].map(|queue| backend.committed(group, topic, queue));
    assert_eq!((of("h", "t"), of("h", "u")), ([Some(3), Some(4)], [None, None]));
    let fields = [("srcGroup", "g"), ("destGroup", "i"), ("offline", "true")];
    assert_eq!(client.call(CLONE, &fields, &[]).await.code, 0);
    assert_eq!((of("i", "t"), of("i", "u")), ([Some(3), Some(4)], [Some(3), Some(4)]));
    // Of a live group what its members subscribe to.
    let beat = r#"{"clientID":"c1","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[
        {"topic":"u","subString":"*"}]}]}"#;
    assert_eq!(client.call(34, &[], beat.as_bytes()).await.code, 0);
    let fields = [("srcGroup", "g"), ("destGroup", "j"), ("offline", "false")];
    assert_eq!(client.call(CLONE, &fields, &[]).await.code, 0);
    assert_eq!((of("j", "t"), of("j", "u")), ([None, None], [Some(3), Some(4)]));
}

#[tokio::test]
async fn the_least_position_of_all_groups_is_told() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    backend.add_topic("t", 2);
    commit(&backend, "slow", "t", &[1, 2]).await;
    commit(&backend, "fast", "t", &[8, 9]).await;
    commit(&backend, "mine", "t", &[5, 1]).await;
    let answer = async |left_out: &str| {
        let fields = [("topic", "t"), ("compareGroup", "mine"), ("filterGroups", left_out)];
        let answer = client.call(CORRECTION, &fields, &[]).await;
        assert_eq!(answer.code, 0);
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    assert_eq!(answer("").await, "{\"correctionOffsets\":{0:1,1:1}}");
    let expected = "{\"correctionOffsets\":{0:9223372036854775807,1:9223372036854775807}}";
    assert_eq!(answer("slow,mine").await, expected);
    assert_eq!(backend.committed("slow", "t", 0), Some(1), "left out, not deleted");
}
