//! Transactions of both protocols.

pub mod kafka;
pub mod rocketmq;
