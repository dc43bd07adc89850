//! The JSON form of a header, read in one pass and without a tree.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};

use super::command::{LanguageCode, RemotingCommand, SerializeType};
use super::fields::ExtFields;
use crate::json::{Cursor, JsonError, write_string};

/// Reads a header. Bytes that are no UTF-8 read as U+FFFD, as in the original.
pub(super) fn decode(header: &[u8]) -> Result<RemotingCommand, JsonError> {
    let text = match std::str::from_utf8(header) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(header),
    };
    let mut command = RemotingCommand { serialize: SerializeType::Json, ..Default::default() };
    let mut cursor = Cursor::new(&text);
    let mut scratch = String::new();
    cursor.expect(b'{')?;
    if !cursor.eat(b'}') {
        loop {
            scratch.clear();
            cursor.string_into(&mut scratch)?;
            cursor.expect(b':')?;
            decode_member(&scratch, &mut cursor, &mut command, header.len())?;
            if cursor.eat(b'}') {
                break;
            }
            cursor.expect(b',')?;
        }
    }
    cursor.end()?;
    Ok(command)
}

fn decode_member(
    name: &str,
    cursor: &mut Cursor<'_>,
    command: &mut RemotingCommand,
    header_bytes: usize,
) -> Result<(), JsonError> {
    match name {
        "code" => command.code = integer(cursor)?,
        "version" => command.version = integer(cursor)?,
        "opaque" => command.opaque = integer(cursor)?,
        "flag" => command.flag = integer(cursor)?,
        "language" => command.language = language(cursor)?,
        "remark" => {
            let mut remark = String::new();
            command.remark = scalar_into(cursor, &mut remark)?.then_some(remark);
        }
        "extFields" => command.ext_fields = ext_fields(cursor, header_bytes)?,
        _ => cursor.skip_value(1)?,
    }
    Ok(())
}

/// A number, quoted or not; null reads as 0, as it leaves the original's field alone.
fn integer(cursor: &mut Cursor<'_>) -> Result<i32, JsonError> {
    let mut quoted = String::new();
    let text = if matches!(cursor.peek(), Some(b'"' | b'\'')) {
        cursor.string_into(&mut quoted)?;
        quoted.as_str()
    } else {
        cursor.word()
    };
    match text.parse() {
        Ok(value) => Ok(value),
        Err(_) if text == "null" => Ok(0),
        Err(_) => Err(cursor.error("a 32-bit integer before this")),
    }
}

/// A name or a number.
fn language(cursor: &mut Cursor<'_>) -> Result<LanguageCode, JsonError> {
    let mut text = String::new();
    if !scalar_into(cursor, &mut text)? {
        return Ok(LanguageCode::default());
    }
    Ok(text.parse().map_or_else(|_| LanguageCode::from_name(&text), LanguageCode))
}

/// Appends a string's text, or that of a number or boolean. False if it was null.
fn scalar_into(cursor: &mut Cursor<'_>, out: &mut String) -> Result<bool, JsonError> {
    if matches!(cursor.peek(), Some(b'"' | b'\'')) {
        cursor.string_into(out)?;
        return Ok(true);
    }
    match cursor.word() {
        "" => Err(cursor.error("a string, number or boolean")),
        "null" => Ok(false),
        word => {
            out.push_str(word);
            Ok(true)
        }
    }
}

/// A field whose value is null is left out.
fn ext_fields(cursor: &mut Cursor<'_>, header_bytes: usize) -> Result<ExtFields, JsonError> {
    let mut fields = ExtFields::with_capacity(16, header_bytes);
    if !cursor.eat(b'{') {
        return match cursor.word() {
            "null" => Ok(fields),
            _ => Err(cursor.error("an object")),
        };
    }
    if cursor.eat(b'}') {
        return Ok(fields);
    }
    loop {
        let start = fields.text_mut().len();
        if !scalar_into(cursor, fields.text_mut())? {
            return Err(cursor.error("a field's name"));
        }
        let value = fields.text_mut().len();
        cursor.expect(b':')?;
        if scalar_into(cursor, fields.text_mut())? {
            fields.close(start, value);
        } else {
            fields.text_mut().truncate(start);
        }
        if cursor.eat(b'}') {
            return Ok(fields);
        }
        cursor.expect(b',')?;
    }
}

/// Writes a header, its names sorted as the original's encoder does.
pub(super) fn encode(command: &RemotingCommand, out: &mut BytesMut) {
    put_number(out, "{\"code\":", command.code);
    if !command.ext_fields.is_empty() {
        out.put_slice(b",\"extFields\":{");
        for (position, (name, value)) in command.ext_fields.iter().enumerate() {
            if position > 0 {
                out.put_u8(b',');
            }
            write_string(name, out);
            out.put_u8(b':');
            write_string(value, out);
        }
        out.put_u8(b'}');
    }
    put_number(out, ",\"flag\":", command.flag);
    out.put_slice(b",\"language\":");
    write_string(command.language.name(), out);
    put_number(out, ",\"opaque\":", command.opaque);
    if let Some(remark) = &command.remark {
        out.put_slice(b",\"remark\":");
        write_string(remark, out);
    }
    put_number(out, ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":", command.version);
    out.put_u8(b'}');
}

fn put_number(out: &mut BytesMut, name: &str, value: i32) {
    out.put_slice(name.as_bytes());
    // Writing to a BytesMut grows it and does not fail.
    let _infallible = write!(out, "{value}");
}
