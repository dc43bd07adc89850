//! JSON as RocketMQ's clients write and read it: the dialect of the fastjson library.
//!
//! It differs from the standard where map keys are concerned: numbers come unquoted and objects
//! stand as keys as they are, `{{"brokerName":"a","queueId":0,"topic":"t"}:{...}}`. Old clients
//! write single quotes and bare names at times, numbers inside strings, and raw control characters.
//! All of that is read; nesting is bounded.

mod out;
mod scan;
mod value;

pub use out::JsonStyle;
pub(crate) use out::{JsonOut, ToJson, write_string};
pub use scan::JsonError;
pub(crate) use scan::{Cursor, Quoted};
pub use value::BodyError;
pub(crate) use value::Value;
