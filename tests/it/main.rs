//! The one integration binary.

mod administration;
mod behaviour;
mod cli;
mod clients;
mod compatibility;
mod console;
mod consumer_groups;
mod crash;
mod delays;
mod differential;
mod groups;
mod half_messages;
mod kafka_schema;
mod kafka_tools;
mod layering;
mod log_dirs;
mod malformed;
mod matrix;
mod mixed;
mod requests;
mod scale;
mod scripts;
mod serve;
mod tidy;
mod transactions;
mod transfers;
