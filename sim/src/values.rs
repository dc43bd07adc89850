//! What records are called: each has a number that no other record of a run has, but for repeated sends.

use duolog_log_core::record::TransactionOutcome;

/// So many values a producer has at most.
const PER_PRODUCER: u64 = 1_000_000;
/// Numbers from here on are transaction markers.
const MARKERS: u64 = 1 << 60;
/// The id of producer 0.
const FIRST_PRODUCER_ID: i64 = 1_000;

/// The first value of the producer with this index.
pub const fn first_of(producer: u64) -> u64 {
    producer * PER_PRODUCER
}

/// The producer whose value, or whose transaction's marker, this is.
pub const fn producer_of(value: u64) -> u64 {
    (value % MARKERS) / PER_PRODUCER
}

/// As it is called on the wire.
pub fn producer_id(producer: u64) -> i64 {
    FIRST_PRODUCER_ID.saturating_add_unsigned(producer)
}

/// The reverse of [`producer_id`].
pub fn producer_with_id(id: i64) -> Option<u64> {
    id.checked_sub(FIRST_PRODUCER_ID)?.try_into().ok()
}

/// The marker that ends the transaction with this number.
pub fn marker(producer: u64, number: i32, outcome: TransactionOutcome) -> u64 {
    let number = u64::from(number.unsigned_abs());
    MARKERS + first_of(producer) + 2 * number + u64::from(outcome == TransactionOutcome::Commit)
}

/// What a marker says; `None` for any other value.
pub const fn outcome_of(value: u64) -> Option<TransactionOutcome> {
    match (value < MARKERS, value.is_multiple_of(2)) {
        (true, _) => None,
        (false, true) => Some(TransactionOutcome::Abort),
        (false, false) => Some(TransactionOutcome::Commit),
    }
}

/// As printed.
pub fn name(value: u64) -> String {
    let producer = producer_of(value);
    match outcome_of(value) {
        None => format!("m{value}"),
        Some(TransactionOutcome::Commit) => format!("commit({producer})"),
        Some(TransactionOutcome::Abort) => format!("abort({producer})"),
    }
}

/// As printed, one after the other.
pub fn names(values: &[u64]) -> String {
    values.iter().map(|value| name(*value)).collect::<Vec<_>>().join(" ")
}
