//! RocketMQ's remoting protocol over the log: codec, processors and the translation between the
//! two.
//!
//! Read the modules in this order.

pub mod backend;
pub mod session;
