use super::*;

/// Each key that the coordinators act on, by a value that is not its default.
#[test]
fn the_nodes_keys_reach_the_coordinators() {
    let config = crate::testing::served::config(&[
        "transaction.max.timeout.ms=1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms=2",
        "transactional.id.expiration.ms=3",
        "transaction.remove.expired.transaction.cleanup.interval.ms=4",
    ]);
    let expected = TxnConfig {
        timeout_max_ms: 1,
        abort_interval_ms: 2,
        id_expiration_ms: 3,
        expiration_interval_ms: 4,
    };
    assert_eq!(txn_config(&config), expected);
}
