//! Kafka's side of a group: the classic protocol and committed offsets.

pub(in crate::group) mod classic;
pub(in crate::group) mod expiry;
pub(in crate::group) mod offsets;
mod subscription;
