//! The one integration binary.

mod compatibility;
mod crash;
mod kafka_schema;
mod layering;
mod malformed;
mod tidy;
