//! One request or answer of the remoting protocol.

use std::fmt;

use bytes::Bytes;

use super::fields::{ExtFields, FieldError, FieldValue};
use crate::response_code::ResponseCode;

/// How the header of a frame is written. An answer uses the encoding of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SerializeType {
    /// Type 0: one JSON object.
    #[default]
    Json,
    /// Type 1, called ROCKETMQ: fixed fields, then length-prefixed strings.
    Binary,
}

/// The language of the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LanguageCode(pub u8);

const LANGUAGES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP",
    "OMS", "RUST", "NODE_JS",
];

impl LanguageCode {
    /// What our answers say: old clients do not know the newer names.
    pub const JAVA: Self = Self(0);
    /// Wants some bodies in another shape.
    pub const CPP: Self = Self(1);
    /// Stands for every name and code that is not known.
    pub const OTHER: Self = Self(7);

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        LANGUAGES.get(usize::from(self.0)).copied().unwrap_or("OTHER")
    }

    /// The language of that name; [`Self::OTHER`] for an unknown one.
    #[must_use]
    pub fn from_name(name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref();
        let position = LANGUAGES.iter().position(|known| known.as_bytes() == name);
        position.and_then(|code| u8::try_from(code).ok()).map_or(Self::OTHER, Self)
    }
}

impl fmt::Display for LanguageCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Bit 0 of `flag`: this is an answer.
const FLAG_RESPONSE: i32 = 1;
/// Bit 1 of `flag`: no answer is expected.
const FLAG_ONE_WAY: i32 = 2;

/// The protocol version that answers carry: MQVersion.V5_5_0. Clients choose features by it.
pub const PROTOCOL_VERSION: i32 = 513;

/// A request or an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemotingCommand {
    /// Request code or response code.
    pub code: i32,
    /// Language of the sender.
    pub language: LanguageCode,
    /// Version of the sender.
    pub version: i32,
    /// Number that the requester chose and the answer repeats.
    pub opaque: i32,
    /// Bit 0 answer, bit 1 one way.
    pub flag: i32,
    /// Text for people, mostly the reason of a refusal.
    pub remark: Option<String>,
    /// Parameters.
    pub ext_fields: ExtFields,
    /// What follows the header; may be empty.
    pub body: Bytes,
    /// Encoding of the header.
    pub serialize: SerializeType,
}

impl RemotingCommand {
    /// A request of ours.
    #[must_use]
    pub fn request(code: i32, opaque: i32, serialize: SerializeType) -> Self {
        Self {
            code,
            opaque,
            serialize,
            version: PROTOCOL_VERSION,
            language: LanguageCode::JAVA,
            ..Self::default()
        }
    }

    /// An answer to this request, in its encoding and with its number.
    #[must_use]
    pub fn response(&self, code: ResponseCode) -> Self {
        let mut answer = Self::request(code.0, self.opaque, self.serialize);
        answer.flag = FLAG_RESPONSE;
        answer
    }

    /// With a remark.
    #[must_use]
    pub fn with_remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = Some(remark.into());
        self
    }

    /// With one more field.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.ext_fields.push_display(name, value);
        self
    }

    /// With a body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// As a request that expects no answer.
    #[must_use]
    pub fn one_way(mut self) -> Self {
        self.flag |= FLAG_ONE_WAY;
        self
    }

    /// Is this an answer?
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.flag & FLAG_RESPONSE != 0
    }

    /// Is this a request that expects no answer?
    #[must_use]
    pub fn is_one_way(&self) -> bool {
        self.flag & FLAG_ONE_WAY != 0
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// The field is missing or malformed; the text names it.
    pub fn field<'a, T: FieldValue<'a>>(&'a self, name: &'static str) -> Result<T, FieldError> {
        self.ext_fields.required(name)
    }

    /// A field that may be absent.
    ///
    /// # Errors
    /// The field is there and malformed; the text names it.
    pub fn optional_field<'a, T: FieldValue<'a>>(
        &'a self,
        name: &'static str,
    ) -> Result<Option<T>, FieldError> {
        self.ext_fields.optional(name)
    }
}
