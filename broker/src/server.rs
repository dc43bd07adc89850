//! Sockets: who may connect, what is read from a connection, how all of it ends.

pub mod connection;
mod foreign;
mod frames;
pub mod http;
pub mod listener;
pub mod memory;
mod read_buffer;
pub mod remoting;
pub mod shutdown;
mod write;
