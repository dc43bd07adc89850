//! Groups of both families in one namespace, over one store of positions.
//!
//! [`Event`](event::Event)s go in; [`Response`](response::Response)s, records and
//! [`Notice`](response::Notice)s come out. [`GroupShard`](shard::GroupShard) is the
//! [`Shard`](crate::shard::Shard) of one partition.

pub mod config;
pub mod event;
pub mod image;
pub mod metadata;
pub mod response;

mod context;
mod kafka;
mod rocketmq;

pub mod shard;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
