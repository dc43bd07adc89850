//! The Kafka front end: frames in, answers out.

pub mod codec;
pub mod errors;
