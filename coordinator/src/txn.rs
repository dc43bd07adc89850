//! Transactions of both protocols. Kafka's are here; RocketMQ's half messages come beside them.

pub mod kafka;
