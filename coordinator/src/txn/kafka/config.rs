//! What an operator sets about transactions.

/// Times in ms; names as in Kafka, which has the same defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxnConfig {
    /// `transaction.max.timeout.ms`: the longest timeout that a producer may ask for.
    pub timeout_max_ms: i32,
    /// `transaction.abort.timed.out.transaction.cleanup.interval.ms`: a transaction is aborted at
    /// the first multiple of this after its timeout.
    pub abort_interval_ms: i64,
    /// `transactional.id.expiration.ms`: after so long without use an id is forgotten.
    pub id_expiration_ms: i64,
    /// `transaction.remove.expired.transaction.cleanup.interval.ms`: between two looks for such ids.
    pub expiration_interval_ms: i64,
}

impl Default for TxnConfig {
    fn default() -> Self {
        Self {
            timeout_max_ms: 900_000,
            abort_interval_ms: 10_000,
            id_expiration_ms: 604_800_000,
            expiration_interval_ms: 3_600_000,
        }
    }
}
