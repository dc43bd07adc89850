//! RocketMQ's side of Duolog: the remoting protocol, its messages and bodies, and what becomes of
//! them on a Kafka log.
//!
//! Read the modules in this order. [`backend`] says what the bridge needs from a node. [`remoting`]
//! turns bytes into commands and back, and knows nothing of what they mean; [`json`] and
//! [`response_code`] serve it. [`session`] and [`dispatch`] are what the owner of a connection
//! calls; [`processors`] and [`namesrv`] answer.

pub mod limits;

pub mod backend;

pub mod json;
pub mod remoting;
pub mod request_code;
pub mod response_code;

pub mod translate;

pub mod bodies;

pub mod complaints;
mod deliveries;
pub mod dispatch;
mod holds;
mod namesrv;
mod pops;
pub mod processors;
mod resets;
pub mod session;
pub mod sql92;
mod subscriptions;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod golden;
