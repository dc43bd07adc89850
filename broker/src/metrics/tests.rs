use super::*;

/// Case B136: the number of series does not grow with what clients send.
#[test]
fn codes_that_are_not_served_share_one_series() {
    let metrics = Metrics::default();
    for code in 1000..3000 {
        drop(metrics.rocketmq(code).start(10));
    }
    drop(metrics.rocketmq(310).start(10));
    let mut text = String::new();
    metrics.render(&mut text).unwrap();
    let series: Vec<_> =
        text.lines().filter(|line| line.starts_with("duolog_requests_total{")).collect();
    assert_eq!(series.len(), 2, "{series:?}");
    assert!(series.iter().any(|line| line.contains("api=\"-1\"") && line.ends_with(" 2000")));
}
