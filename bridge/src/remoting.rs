//! The remoting protocol's codec: frames, both header encodings, messages as a pull returns them.
//!
//! ```text
//! length 4 | serialize type 1 | header length 3 | header | body
//! ```
//! The length is big endian and does not count itself. Nothing here knows a socket: [`Decoder`]
//! takes frames out of what was read, [`RemotingCommand::encode`] puts them into a
//! [`SegmentedOut`].

mod binary_header;
mod command;
mod fields;
mod frame;
mod header;
mod json_header;
pub mod message;
mod segments;

pub use command::{LanguageCode, PROTOCOL_VERSION, RemotingCommand, SerializeType};
pub use fields::{ExtFields, FieldError, FieldValue};
pub use frame::{Decoder, EncodeError, FrameError};
pub use header::{PullHeader, SendForm, SendHeader};
pub use segments::SegmentedOut;
