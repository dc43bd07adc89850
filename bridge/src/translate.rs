//! What becomes of names, addresses and messages between RocketMQ and the Kafka log.
//!
//! The rules are the rows of [`explain::ROWS`]; each loss stands there. Towards the log:
//! [`send::single`] and [`send::batch`] turn a send into records. Towards RocketMQ:
//! [`message::encode`] writes a record as a message.

pub mod again;
pub mod delay;
pub mod explain;
pub mod half;
pub mod keys;
pub mod message;
pub mod names;
pub mod origin;
pub mod properties;
pub mod queue;
pub mod recall;
pub mod send;

#[cfg(test)]
mod testing;
