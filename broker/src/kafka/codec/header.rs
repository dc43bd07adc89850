//! Request headers 1 and 2, response headers 0 and 1, and whole frames.
//!
//! Header 2 and response header 1 go with the flexible versions of an API (KIP-482), but the
//! client id keeps its two-byte length, and every ApiVersions answer keeps header 0, so that peers
//! that do not know each other's versions yet can read them (KIP-511).

use bytes::Bytes;

use super::messages::ApiKey;
use super::primitives::{DecodeError, Reader, Str, Wire};
use super::segments::{EncodeError, Frame, SegmentedBuf};

/// A request or response: the body of a frame.
pub trait Message: Wire {
    const API_KEY: ApiKey;

    /// Decodes a whole body; refuses other versions than the table's and bytes after the end.
    fn from_body(body: &Bytes, version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let message = Self::read(&mut reader, version)?;
        reader.finish()?;
        Ok(message)
    }

    /// The same for what a client sent: bytes after the end are passed over, as Kafka's broker does
    /// (RequestContext.parseRequest). librdkafka needs it: it asks for all topics (Metadata from v9
    /// on) with an array length of four bytes where one belongs.
    fn from_client(body: &Bytes, version: i16) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(body), version)
    }

    /// Decodes a body as far as it goes; refuses other versions than the table's.
    fn read(reader: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError> {
        let (min, max) = Self::API_KEY.versions();
        if !(min..=max).contains(&version) {
            return Err(DecodeError::Version { found: version, min, max });
        }
        Self::decode(reader, version)
    }
}

/// What stands in front of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// As sent; [`ApiKey::from_code`] knows those with a codec.
    pub api_key: i16,
    /// As sent, not checked.
    pub api_version: i16,
    /// Comes back in the response.
    pub correlation_id: i32,
    pub client_id: Option<Str>,
}

impl RequestHeader {
    /// Reads the header of a request frame (without its length); the rest is the body.
    ///
    /// An ApiVersions request of a version that is not known is read as far as header 1: what
    /// follows is not looked at, since the answer is the same whatever it is (KIP-511, case B03).
    pub fn decode(frame: &Bytes) -> Result<(Self, Bytes), DecodeError> {
        let mut reader = Reader::new(frame);
        let header = Self {
            api_key: reader.i16()?,
            api_version: reader.i16()?,
            correlation_id: reader.i32()?,
            client_id: reader.nullable_string(false)?,
        };
        let api_key = ApiKey::from_code(header.api_key);
        if api_key.is_some_and(|api_key| api_key.is_served_flexible(header.api_version)) {
            reader.skip_tagged_fields()?;
        }
        let body = reader.rest();
        Ok((header, body))
    }
}

impl ApiKey {
    fn is_flexible(self, version: i16) -> bool {
        self.flexible_from().is_some_and(|from| version >= from)
    }

    fn is_served_flexible(self, version: i16) -> bool {
        version <= self.versions().1 && self.is_flexible(version)
    }

    /// 2 with the flexible versions, else 1.
    #[must_use]
    pub fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// 1 with the flexible versions, else 0; always 0 for ApiVersions.
    #[must_use]
    pub fn response_header_version(self, version: i16) -> i16 {
        i16::from(self != Self::ApiVersions && self.is_flexible(version))
    }
}

/// Encodes a response with its length and header.
pub fn encode_response<M: Message>(
    correlation_id: i32,
    version: i16,
    response: &M,
) -> Result<Frame, EncodeError> {
    let mut out = SegmentedBuf::new();
    out.i32(correlation_id);
    if M::API_KEY.response_header_version(version) == 1 {
        out.unsigned_varint(0);
    }
    response.encode(version, &mut out);
    out.finish()
}

/// Encodes a request with its length and header: what a client does.
pub fn encode_request<M: Message>(
    correlation_id: i32,
    client_id: Option<&Str>,
    version: i16,
    request: &M,
) -> Result<Frame, EncodeError> {
    let mut out = SegmentedBuf::new();
    out.i16(M::API_KEY as i16);
    out.i16(version);
    out.i32(correlation_id);
    out.nullable_string(client_id, false);
    if M::API_KEY.request_header_version(version) == 2 {
        out.unsigned_varint(0);
    }
    request.encode(version, &mut out);
    out.finish()
}

/// Reads a response frame (without its length): what a client does. Gives the correlation id too.
pub fn decode_response<M: Message>(frame: &Bytes, version: i16) -> Result<(i32, M), DecodeError> {
    let mut reader = Reader::new(frame);
    let correlation_id = reader.i32()?;
    if M::API_KEY.response_header_version(version) == 1 {
        reader.skip_tagged_fields()?;
    }
    let response = M::from_body(&reader.rest(), version)?;
    Ok((correlation_id, response))
}

#[cfg(test)]
mod tests;
