//! What the black-box tests stand on: the built `duolog` executable as a process, connections that
//! speak raw frames of both protocols, and the stock clients and command line tools.

pub mod wait;

pub mod differential;

pub mod cluster;
pub mod http;
pub mod raw_client;
pub mod raw_kafka;
pub mod seed;
pub mod stock;
pub mod topics;

pub mod cases;
pub mod groups;
pub mod matrix;
