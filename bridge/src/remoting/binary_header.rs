//! The binary form of a header, called ROCKETMQ.
//!
//! ```text
//! code i16 | language u8 | version i16 | opaque i32 | flag i32
//! | remark length i32, remark | fields length i32, fields
//! field: name length i16, name | value length i32, value
//! ```
//! Big endian. A length of zero reads as null.

use bytes::{BufMut, BytesMut};

use super::command::{LanguageCode, RemotingCommand, SerializeType};
use super::fields::{ExtFields, FieldsBuilder};
use super::frame::{EncodeError, FrameError};

/// Reads a header. Whatever follows the fields is ignored, as in the original. Strings that are no
/// UTF-8 read with U+FFFD in them.
pub(super) fn decode(header: &[u8]) -> Result<RemotingCommand, FrameError> {
    let mut reader = Reader { rest: header };
    let code = i32::from(i16::from_be_bytes(reader.array("code")?));
    let [language] = reader.array("language")?;
    let version = i32::from(i16::from_be_bytes(reader.array("version")?));
    let opaque = i32::from_be_bytes(reader.array("opaque")?);
    let flag = i32::from_be_bytes(reader.array("flag")?);
    let remark = reader.long_bytes("remark")?;
    let fields = reader.long_bytes("fields")?;
    Ok(RemotingCommand {
        code,
        language: LanguageCode(language),
        version,
        opaque,
        flag,
        remark: (!remark.is_empty()).then(|| String::from_utf8_lossy(remark).into_owned()),
        ext_fields: decode_fields(fields)?,
        serialize: SerializeType::Binary,
        ..RemotingCommand::default()
    })
}

fn decode_fields(bytes: &[u8]) -> Result<ExtFields, FrameError> {
    let mut fields = FieldsBuilder::with_capacity(bytes.len());
    let mut reader = Reader { rest: bytes };
    while !reader.rest.is_empty() {
        let name = reader.short_bytes("field name")?;
        let value = reader.long_bytes("field value")?;
        if name.is_empty() || value.is_empty() {
            continue;
        }
        let text = fields.text();
        let start = text.len();
        text.extend_from_slice(name);
        let middle = text.len();
        text.extend_from_slice(value);
        let end = text.len();
        fields.push((start, middle), (middle, end));
    }
    Ok(fields.finish())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize, part: &'static str) -> Result<&'a [u8], FrameError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or(FrameError::BinaryHeader { part })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], FrameError> {
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().ok_or(FrameError::BinaryHeader { part })?;
        self.rest = rest;
        Ok(*taken)
    }

    fn short_bytes(&mut self, part: &'static str) -> Result<&'a [u8], FrameError> {
        let length = i16::from_be_bytes(self.array(part)?);
        self.take(usize::try_from(length).map_err(|_| FrameError::BinaryHeader { part })?, part)
    }

    fn long_bytes(&mut self, part: &'static str) -> Result<&'a [u8], FrameError> {
        let length = i32::from_be_bytes(self.array(part)?);
        self.take(usize::try_from(length).map_err(|_| FrameError::BinaryHeader { part })?, part)
    }
}

/// Writes a header. A field with an empty name or value is left out: it would read as null.
///
/// # Errors
/// The code, a name's length or a length is beyond what the encoding can hold.
pub(super) fn encode(command: &RemotingCommand, out: &mut BytesMut) -> Result<(), EncodeError> {
    let code = i16::try_from(command.code).map_err(|_| EncodeError::Code(command.code))?;
    out.put_i16(code);
    out.put_u8(command.language.0);
    out.put_i16(i16::try_from(command.version).unwrap_or(i16::MAX));
    out.put_i32(command.opaque);
    out.put_i32(command.flag);
    let remark = command.remark.as_deref().unwrap_or_default();
    out.put_i32(length32(remark.len())?);
    out.put_slice(remark.as_bytes());
    let named =
        || command.ext_fields.iter().filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let total = named().map(|(name, value)| 2 + name.len() + 4 + value.len()).sum();
    out.put_i32(length32(total)?);
    for (name, value) in named() {
        out.put_i16(i16::try_from(name.len()).map_err(|_| EncodeError::Length(name.len()))?);
        out.put_slice(name.as_bytes());
        out.put_i32(length32(value.len())?);
        out.put_slice(value.as_bytes());
    }
    Ok(())
}

fn length32(length: usize) -> Result<i32, EncodeError> {
    i32::try_from(length).map_err(|_| EncodeError::Length(length))
}
