//! What takes long or needs many peers: `make verify`. Each kind has a short case in `make test`.

mod behaviour;
mod clients;
mod connect;
mod example_programs;
mod go_client;
mod hanging;
mod kafka_tools;
mod mirror;
mod mixed;
mod queries;
mod streams;
mod transfers;
