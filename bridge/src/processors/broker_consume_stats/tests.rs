use std::sync::Arc;

use crate::backend::{Backend, SubscriptionGroup};
use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn groups_with_the_sums_of_their_lags() {
    let backend = FakeBackend::new();
    let plain = backend.add_topic("plain", 1);
    let ordered = backend.change_topic("ordered", |topic| topic.order = true);
    backend.write_tagged("plain", 0, &[("", "a"); 10]);
    backend.write_tagged("ordered", 0, &[("", "a"); 5]);
    for group in ["g", "h", "idle"] {
        let config = SubscriptionGroup::with_defaults(Arc::from(group));
        backend.put_subscription_group(config).await.expect("stored");
    }
    for (group, topic, position) in [("g", &plain, 3), ("g", &ordered, 4), ("h", &ordered, 0)] {
        backend.commit_offset(group, topic, 0, position).await.expect("committed");
    }
    let client = Client::new(backend);
    for (is_order, lag, names) in [("false", 13, 3), ("true", 6, 2)] {
        let answer = client.call(317, &[("isOrder", is_order)], b"").await;
        let body = String::from_utf8(answer.body.to_vec()).expect("text");
        assert!(body.contains(&format!("\"totalDiff\":{lag},\"totalInflightDiff\":0}}")), "{body}");
        assert_eq!(body.matches("consumeTps").count(), names, "{body}");
        assert!(body.contains("{\"idle\":[]}"), "{body}");
    }
}
