//! Kafka's side of a group: the classic protocol, the consumer protocol and committed offsets.

mod assignors;
pub(in crate::group) mod classic;
pub(in crate::group) mod consumer;
pub(in crate::group) mod expiry;
pub(in crate::group) mod offsets;
pub(in crate::group) mod pending;
pub(in crate::group) mod subscription;
