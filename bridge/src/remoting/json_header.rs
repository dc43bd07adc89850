//! The JSON form of a header, read in one pass and without a tree.

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};

use super::command::{LanguageCode, RemotingCommand, SerializeType};
use super::fields::{ExtFields, FieldsBuilder};
use crate::json::{Cursor, JsonError, Quoted, Value, write_string};

/// Reads a header. Bytes that are no UTF-8 read as U+FFFD, as in the original.
pub(super) fn decode(header: &[u8]) -> Result<RemotingCommand, JsonError> {
    let mut command = RemotingCommand { serialize: SerializeType::Json, ..Default::default() };
    let mut cursor = Cursor::new(header);
    let mut scratch = Vec::new();
    let mut has_fields = false;
    cursor.expect(b'{')?;
    if !cursor.eat(b'}') {
        loop {
            scratch.clear();
            let name = match cursor.quoted(&mut scratch)? {
                Quoted::Plain(start, end) => header.get(start..end).unwrap_or_default(),
                Quoted::Unescaped => &scratch,
            };
            cursor.expect(b':')?;
            // Each costs a copy of the header: with many of them time would be quadratic.
            if name == b"extFields" && std::mem::replace(&mut has_fields, true) {
                return Err(cursor.error("one member extFields"));
            }
            decode_member(name, &mut cursor, &mut command)?;
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
    name: &[u8],
    cursor: &mut Cursor<'_>,
    command: &mut RemotingCommand,
) -> Result<(), JsonError> {
    match name {
        b"code" => command.code = integer(cursor)?,
        b"version" => command.version = integer(cursor)?,
        b"opaque" => command.opaque = integer(cursor)?,
        b"flag" => command.flag = integer(cursor)?,
        b"language" => command.language = language(cursor)?,
        b"remark" => command.remark = scalar(cursor)?,
        b"extFields" => command.ext_fields = ext_fields(cursor)?,
        _ => cursor.skip_value(1)?,
    }
    Ok(())
}

/// Null reads as 0, since it leaves the original's field alone.
fn integer(cursor: &mut Cursor<'_>) -> Result<i32, JsonError> {
    Ok(cursor.integer()?.unwrap_or_default())
}

/// A name or a number.
fn language(cursor: &mut Cursor<'_>) -> Result<LanguageCode, JsonError> {
    let mut unescaped = Vec::new();
    if let Some(b'0'..=b'9') = cursor.peek() {
        let code = cursor.integer()?.unwrap_or_default();
        return Ok(u8::try_from(code).map_or(LanguageCode::OTHER, LanguageCode));
    }
    if cursor.peek() == Some(b'n') {
        cursor.skip_value(1)?;
        return Ok(LanguageCode::default());
    }
    let name = match cursor.quoted(&mut unescaped)? {
        Quoted::Plain(start, end) => cursor.text().get(start..end).unwrap_or_default(),
        Quoted::Unescaped => &unescaped,
    };
    Ok(LanguageCode::from_name(name))
}

/// A string's text, or that of a number or boolean; `None` if it was null.
fn scalar(cursor: &mut Cursor<'_>) -> Result<Option<String>, JsonError> {
    let mut text = Vec::new();
    if matches!(cursor.peek(), Some(b'"' | b'\'')) {
        cursor.string_into(&mut text)?;
    } else {
        match cursor.word() {
            b"" => return Err(cursor.error("a string, number or boolean")),
            b"null" => return Ok(None),
            word => text.extend_from_slice(word),
        }
    }
    Ok(Some(lossy(text)))
}

fn lossy(text: Vec<u8>) -> String {
    match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// The fields of the object that comes next. A field whose value is null is left out.
///
/// The header's text becomes the fields' own, so that a string without escapes is only a position
/// in it.
fn ext_fields(cursor: &mut Cursor<'_>) -> Result<ExtFields, JsonError> {
    if !cursor.eat(b'{') {
        return match cursor.word() {
            b"null" => Ok(ExtFields::default()),
            _ => Err(cursor.error("an object")),
        };
    }
    if cursor.eat(b'}') {
        return Ok(ExtFields::default());
    }
    let mut fields = FieldsBuilder::over(cursor.text());
    loop {
        if let Some(pair) = cursor.plain_pair() {
            fields.push(pair.name, pair.value);
        } else {
            let name = part(cursor, fields.text())?;
            cursor.expect(b':')?;
            let value = value_part(cursor, fields.text())?;
            if let (Some(name), Some(value)) = (name, value) {
                fields.push(name, value);
            }
        }
        if cursor.eat(b'}') {
            return Ok(fields.finish());
        }
        cursor.expect(b',')?;
    }
}

/// As [`part`]; an array or object is its own text, written anew as the original's library does.
fn value_part(
    cursor: &mut Cursor<'_>,
    text: &mut Vec<u8>,
) -> Result<Option<(usize, usize)>, JsonError> {
    if !matches!(cursor.peek(), Some(b'[' | b'{')) {
        return part(cursor, text);
    }
    let value = Value::parse(cursor.any_value()?)?;
    if value.has_bare_words() {
        return Err(cursor.error("numbers, true, false or null without quotes before this"));
    }
    let before = text.len();
    text.extend_from_slice(&value.compact());
    Ok(Some((before, text.len())))
}

/// Where a string, number or boolean is in `text`, which begins with the cursor's own text; `None`
/// if it was null.
#[inline]
fn part(cursor: &mut Cursor<'_>, text: &mut Vec<u8>) -> Result<Option<(usize, usize)>, JsonError> {
    let before = text.len();
    if matches!(cursor.peek(), Some(b'"' | b'\'')) {
        return Ok(Some(match cursor.quoted(text)? {
            Quoted::Plain(start, end) => (start, end),
            Quoted::Unescaped => (before, text.len()),
        }));
    }
    match cursor.word() {
        b"" => Err(cursor.error("a string, number or boolean")),
        b"null" => Ok(None),
        word => {
            text.extend_from_slice(word);
            Ok(Some((before, text.len())))
        }
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
