//! The one integration binary.

mod crash;
mod kafka_schema;
mod layering;
mod malformed;
mod tidy;
