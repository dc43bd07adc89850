//! RocketMQ's side of Duolog: the remoting protocol, its messages and bodies, and what becomes of them on a Kafka log.
//!
//! Read the modules in this order. [`remoting`] turns bytes into commands and back, and knows nothing of what they
//! mean; [`json`] and [`response_code`] serve it.

pub mod limits;

pub mod json;
pub mod remoting;
pub mod response_code;

pub mod backend;
pub mod session;
