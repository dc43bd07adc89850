//! The Kafka front end: frames in, answers out.

pub mod api;
pub mod codec;
pub mod errors;
pub mod features;
pub mod fetch_sessions;
pub mod operations;
