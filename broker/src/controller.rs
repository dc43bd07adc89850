//! What the cluster is: topics, ids, configurations, groups; one log of small records.
pub mod image;
pub mod names;
pub mod record;
