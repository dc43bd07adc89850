use super::*;

/// The number of series does not grow with what clients send, and each says what was asked for.
#[test]
fn codes_that_nobody_knows_share_one_series() {
    let metrics = Metrics::default();
    for code in 10_000..12_000 {
        drop(metrics.rocketmq(code).start(10));
    }
    // Served, and not served.
    drop(metrics.rocketmq(310).start(10));
    drop(metrics.rocketmq(41).start(10));
    let mut text = String::new();
    metrics.render(&mut text).unwrap();
    let series: Vec<_> =
        text.lines().filter(|line| line.starts_with("duolog_requests_total{")).collect();
    assert_eq!(series.len(), 3, "{series:?}");
    for (api, requests) in [("SEND_MESSAGE_V2", 1), ("LOCK_BATCH_MQ", 1), ("unknown", 2000)] {
        let end = format!("api=\"{api}\"}} {requests}");
        assert!(series.iter().any(|line| line.ends_with(&end)), "{end} in {series:?}");
    }
}
