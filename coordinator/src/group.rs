//! Groups of both families in one namespace, over one store of positions.
//!
//! [`Event`](event::Event)s go in; [`Response`](response::Response)s, records and
//! [`Notice`](response::Notice)s come out.

pub mod config;
pub mod event;
pub mod response;
