//! Kafka's messages as JSON: written and read by the table `schema.txt`, apart from the codec under test.
//!
//! Numbers and booleans are JSON's, uuids and bytes are hex, what a request does not name has its
//! default. A value of the wrong kind is a fault of the test and panics.

use crate::hex::hex;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};

use super::schema::{self, Field, Kind, Message, Struct, Type};

const SCHEMA: &str = include_str!("../../../broker/src/kafka/codec/schema.txt");
const API_VERSIONS: i16 = 18;

/// Requests and responses of every key of the table.
#[derive(Debug)]
pub struct Wire {
    messages: Vec<Message>,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            messages: schema::parse(SCHEMA).expect("the table is what the broker is built from"),
        }
    }
}

impl Wire {
    /// The request or the response of an API, by its name.
    pub fn message(&self, name: &str, kind: Kind) -> &Message {
        let found = self.messages.iter().find(|each| each.name == name && each.kind == kind);
        found.unwrap_or_else(|| panic!("{name}: no such API"))
    }

    /// All requests, in order of their keys.
    pub fn requests(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|each| each.kind == Kind::Request)
    }

    /// A request behind its header, without the frame's length.
    pub fn request(
        &self,
        name: &str,
        version: i16,
        id: i32,
        client: &str,
        body: &Value,
    ) -> Vec<u8> {
        let message = self.message(name, Kind::Request);
        let mut out = Vec::new();
        out.extend(message.api_key.to_be_bytes());
        out.extend(version.to_be_bytes());
        out.extend(id.to_be_bytes());
        out.extend(i16::try_from(client.len()).expect("a short name").to_be_bytes());
        out.extend(client.as_bytes());
        if is_flexible(message, version) {
            out.push(0);
        }
        Writer { message, version, out: &mut out }.structure(&message.structs[0], body);
        out
    }

    /// Correlation id and body of a response.
    pub fn response(&self, name: &str, version: i16, frame: &[u8]) -> anyhow::Result<(i32, Value)> {
        let message = self.message(name, Kind::Response);
        let mut reader = Reader { message, version, rest: frame };
        let id = i32::from_be_bytes(reader.array()?);
        if is_flexible(message, version) && message.api_key != API_VERSIONS {
            reader.skip_tags()?;
        }
        let body = reader.structure(&message.structs[0])?;
        ensure!(reader.rest.is_empty(), "{name}: {} bytes behind the answer", reader.rest.len());
        Ok((id, body))
    }
}

fn is_flexible(message: &Message, version: i16) -> bool {
    message.flexible.is_some_and(|range| (range.low..=range.high).contains(&version))
}

fn has(field: &Field, version: i16) -> bool {
    (field.versions.low..=field.versions.high).contains(&version)
}

fn structure_named<'a>(message: &'a Message, name: &str) -> &'a Struct {
    message.structs.iter().find(|each| each.name == name).expect("a struct of the message")
}

fn put_unsigned(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn bytes_of_hex(text: &str) -> Vec<u8> {
    let digit = |index| u8::from_str_radix(&text[index..index + 2], 16).expect("hex");
    (0..text.len() / 2).map(|index| digit(2 * index)).collect()
}

struct Writer<'a> {
    message: &'a Message,
    version: i16,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn structure(&mut self, of: &Struct, body: &Value) {
        let given = body.as_object().unwrap_or_else(|| panic!("{}: {body} is no object", of.name));
        for name in given.keys() {
            let known = of.fields.iter().any(|field| field.name == *name);
            assert!(known, "{} has no field {name}", of.name);
        }
        let (message, version) = (self.message, self.version);
        let fields = || of.fields.iter().filter(move |field| has(field, version));
        for field in fields().filter(|field| field.tag.is_none()) {
            self.field(field, given.get(&field.name));
        }
        if !is_flexible(message, version) {
            return;
        }
        let tagged: Vec<_> = fields()
            .filter_map(|field| Some((field.tag?, field, given.get(&field.name)?)))
            .collect();
        put_unsigned(self.out, tagged.len() as u32);
        for (tag, field, value) in tagged {
            let mut content = Vec::new();
            Writer { message, version, out: &mut content }.field(field, Some(value));
            put_unsigned(self.out, tag);
            put_unsigned(self.out, content.len() as u32);
            self.out.extend(content);
        }
    }

    fn field(&mut self, field: &Field, value: Option<&Value>) {
        let nullable =
            field.nullable.is_some_and(|range| (range.low..=range.high).contains(&self.version));
        let default = default_of(field, nullable);
        let value = value.unwrap_or(&default);
        if nullable && matches!(field.ty, Type::Struct(_)) {
            self.out.push(if value.is_null() { 0xFF } else { 1 });
            if value.is_null() {
                return;
            }
        }
        self.value(&field.ty, value);
    }

    fn value(&mut self, ty: &Type, value: &Value) {
        let number = || value.as_i64().unwrap_or_else(|| panic!("{value} is no number"));
        match ty {
            Type::Bool => self.out.push(u8::from(value.as_bool().expect("a boolean"))),
            Type::Int8 => self.out.push(number() as u8),
            Type::Int16 | Type::Uint16 => self.out.extend((number() as i16).to_be_bytes()),
            Type::Int32 => self.out.extend((number() as i32).to_be_bytes()),
            Type::Int64 => self.out.extend(number().to_be_bytes()),
            Type::Float64 => {
                self.out.extend(value.as_f64().expect("a number").to_be_bytes());
            }
            Type::Uuid => self.out.extend(bytes_of_hex(value.as_str().expect("a uuid in hex"))),
            Type::String => self.length_16(value.as_str().map(str::as_bytes)),
            Type::Bytes | Type::Records => {
                let bytes = value.as_str().map(bytes_of_hex);
                self.length_32(bytes.as_ref().map(Vec::len));
                self.out.extend(bytes.unwrap_or_default());
            }
            Type::Struct(name) => self.structure(structure_named(self.message, name), value),
            Type::Array(element) => {
                let elements = value.as_array();
                self.length_32(elements.map(Vec::len));
                for each in elements.into_iter().flatten() {
                    self.value(element, each);
                }
            }
        }
    }

    fn length_16(&mut self, bytes: Option<&[u8]>) {
        if is_flexible(self.message, self.version) {
            put_unsigned(self.out, bytes.map_or(0, |bytes| bytes.len() as u32 + 1));
        } else {
            self.out.extend(bytes.map_or(-1, |bytes| bytes.len() as i16).to_be_bytes());
        }
        self.out.extend(bytes.unwrap_or_default());
    }

    fn length_32(&mut self, length: Option<usize>) {
        if is_flexible(self.message, self.version) {
            put_unsigned(self.out, length.map_or(0, |length| length as u32 + 1));
        } else {
            self.out.extend(length.map_or(-1, |length| length as i32).to_be_bytes());
        }
    }
}

fn default_of(field: &Field, nullable: bool) -> Value {
    let given = field.default.as_deref().filter(|text| *text != "null" || nullable);
    match (&field.ty, given) {
        (_, Some("null")) => Value::Null,
        (Type::Bool, given) => (given == Some("true")).into(),
        (Type::String, given) => given.unwrap_or_default().into(),
        (Type::Uuid, _) => "0".repeat(32).into(),
        (Type::Bytes, _) => "".into(),
        (Type::Records, _) => Value::Null,
        (Type::Array(_), _) => Value::Array(Vec::new()),
        (Type::Struct(_), _) => Value::Object(Map::new()),
        (Type::Float64, _) => 0.0.into(),
        (_, Some(text)) => match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).expect("a hex number").into(),
            None => text.parse::<i64>().expect("a number").into(),
        },
        (_, None) => 0.into(),
    }
}

struct Reader<'a> {
    message: &'a Message,
    version: i16,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> anyhow::Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).context("an answer cut short")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    fn unsigned(&mut self) -> anyhow::Result<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        bail!("a varint of more than five bytes")
    }

    fn skip_tags(&mut self) -> anyhow::Result<()> {
        for _ in 0..self.unsigned()? {
            self.unsigned()?;
            let length = self.unsigned()?;
            self.take(length as usize)?;
        }
        Ok(())
    }

    fn structure(&mut self, of: &Struct) -> anyhow::Result<Value> {
        let mut body = Map::new();
        let version = self.version;
        let fields = || of.fields.iter().filter(move |field| has(field, version));
        for field in fields().filter(|field| field.tag.is_none()) {
            body.insert(field.name.clone(), self.field(field)?);
        }
        if is_flexible(self.message, version) {
            for _ in 0..self.unsigned()? {
                let tag = self.unsigned()?;
                let length = self.unsigned()? as usize;
                let rest = self.take(length)?;
                let field = fields().find(|field| field.tag == Some(tag));
                let field = field.with_context(|| format!("tag {tag} of {}", of.name))?;
                let mut content = Reader { message: self.message, version, rest };
                body.insert(field.name.clone(), content.field(field)?);
                ensure!(content.rest.is_empty(), "bytes behind tag {tag}");
            }
        }
        Ok(body.into())
    }

    fn field(&mut self, field: &Field) -> anyhow::Result<Value> {
        let nullable =
            field.nullable.is_some_and(|range| (range.low..=range.high).contains(&self.version));
        if nullable && matches!(field.ty, Type::Struct(_)) && self.array::<1>()? == [0xFF] {
            return Ok(Value::Null);
        }
        self.value(&field.ty)
    }

    fn value(&mut self, ty: &Type) -> anyhow::Result<Value> {
        Ok(match ty {
            Type::Bool => (self.array::<1>()? != [0]).into(),
            Type::Int8 => i8::from_be_bytes(self.array()?).into(),
            Type::Int16 => i16::from_be_bytes(self.array()?).into(),
            Type::Uint16 => u16::from_be_bytes(self.array()?).into(),
            Type::Int32 => i32::from_be_bytes(self.array()?).into(),
            Type::Int64 => i64::from_be_bytes(self.array()?).into(),
            Type::Float64 => f64::from_be_bytes(self.array()?).into(),
            Type::Uuid => hex(self.take(16)?).into(),
            Type::String => match self.length_16()? {
                None => Value::Null,
                Some(length) => std::str::from_utf8(self.take(length)?)?.into(),
            },
            Type::Bytes | Type::Records => match self.length_32()? {
                None => Value::Null,
                Some(length) => hex(self.take(length)?).into(),
            },
            Type::Struct(name) => self.structure(structure_named(self.message, name))?,
            Type::Array(element) => match self.length_32()? {
                None => Value::Null,
                Some(count) => {
                    let elements: anyhow::Result<Vec<_>> =
                        (0..count).map(|_| self.value(element)).collect();
                    elements?.into()
                }
            },
        })
    }

    fn length_16(&mut self) -> anyhow::Result<Option<usize>> {
        if is_flexible(self.message, self.version) {
            return Ok((self.unsigned()? as usize).checked_sub(1));
        }
        Ok(usize::try_from(i16::from_be_bytes(self.array()?)).ok())
    }

    fn length_32(&mut self) -> anyhow::Result<Option<usize>> {
        if is_flexible(self.message, self.version) {
            return Ok((self.unsigned()? as usize).checked_sub(1));
        }
        Ok(usize::try_from(i32::from_be_bytes(self.array()?)).ok())
    }
}
