//! Reads the schema table into messages and their structs; its form stands in its head.

use std::fmt;
use std::str::FromStr;

/// Inclusive on both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub low: i16,
    pub high: i16,
}

impl Versions {
    pub fn overlap(self, other: Self) -> Option<Self> {
        let both = Self { low: self.low.max(other.low), high: self.high.min(other.high) };
        (both.low <= both.high).then_some(both)
    }

    pub fn covers(self, other: Self) -> bool {
        self.low <= other.low && self.high >= other.high
    }
}

impl FromStr for Versions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("{text}: not a version"));
        if let Some(low) = text.strip_suffix('+') {
            return Ok(Self { low: number(low)?, high: i16::MAX });
        }
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        Ok(Self { low: number(low)?, high: number(high)? })
    }
}

fn optional_versions(text: &str) -> Result<Option<Versions>, String> {
    if text == "-" { Ok(None) } else { text.parse().map(Some) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Response,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[derive(Debug)]
pub struct Message {
    pub kind: Kind,
    pub api_key: i16,
    /// The API's name, without `Request` or `Response`.
    pub name: String,
    pub versions: Versions,
    pub flexible: Option<Versions>,
    /// The message itself first, then the structs inside it.
    pub structs: Vec<Struct>,
}

#[derive(Debug)]
pub struct Struct {
    pub name: String,
    /// Those in which it can occur at all.
    pub versions: Versions,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    Struct(String),
    Array(Box<Type>),
}

impl From<&str> for Type {
    fn from(text: &str) -> Self {
        match text {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "uuid" => Self::Uuid,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            _ => match text.strip_prefix("[]") {
                Some(element) => Self::Array(Box::new(element.into())),
                None => Self::Struct(text.to_owned()),
            },
        }
    }
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub ty: Type,
    /// Within those of the struct.
    pub versions: Versions,
    /// Within those of the field.
    pub nullable: Option<Versions>,
    /// With the versions in which it is tagged, all of them flexible.
    pub tag: Option<u32>,
    pub default: Option<String>,
}

struct Line<'a> {
    number: usize,
    indent: usize,
    words: Vec<&'a str>,
}

impl Line<'_> {
    fn word(&self, index: usize) -> Result<&str, String> {
        let missing = || format!("line {}: expected a word {}", self.number, index + 1);
        self.words.get(index).copied().ok_or_else(missing)
    }

    fn option(&self, key: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }
}

/// Reads the whole table, messages in its order.
pub fn parse(text: &str) -> Result<Vec<Message>, String> {
    let lines: Vec<Line<'_>> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty())
        .map(|(index, line)| Line {
            number: index + 1,
            indent: line.len() - line.trim_start().len(),
            words: line.split_whitespace().collect(),
        })
        .collect();
    let mut messages = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((head, after)) = rest.split_first() {
        let end = after.iter().position(|line| line.indent == 0).unwrap_or(after.len());
        let (body, next) = after.split_at(end);
        messages.push(message(head, body)?);
        rest = next;
    }
    Ok(messages)
}

fn message(head: &Line<'_>, body: &[Line<'_>]) -> Result<Message, String> {
    let kind = match head.word(0)? {
        "request" => Kind::Request,
        "response" => Kind::Response,
        other => return Err(format!("line {}: {other}: not a kind of message", head.number)),
    };
    let api_key = head.word(1)?.parse().map_err(|_| format!("line {}: key", head.number))?;
    let name = head.word(2)?.to_owned();
    let versions: Versions = head.word(3)?.parse()?;
    let flexible = optional_versions(head.word(4)?)?.and_then(|range| range.overlap(versions));
    let mut structs = Vec::new();
    fields_of(format!("{name}{kind}"), versions, 2, body, &mut structs)?;
    Ok(Message { kind, api_key, name, versions, flexible, structs })
}

/// Adds the struct `name` and those inside it; its fields are the lines at `indent`.
fn fields_of(
    name: String,
    versions: Versions,
    indent: usize,
    lines: &[Line<'_>],
    structs: &mut Vec<Struct>,
) -> Result<(), String> {
    let at = structs.len();
    structs.push(Struct { name, versions, fields: Vec::new() });
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        if line.indent != indent {
            return Err(format!("line {}: expected {indent} columns in front", line.number));
        }
        let end = after.iter().position(|line| line.indent <= indent).unwrap_or(after.len());
        let (children, next) = after.split_at(end);
        rest = next;
        let out_of_place = || format!("line {}: not in the struct's versions", line.number);
        let range: Versions = line.word(2)?.parse()?;
        let range = range.overlap(versions).ok_or_else(out_of_place)?;
        if line.word(0)? == "struct" {
            fields_of(line.word(1)?.to_owned(), range, indent + 2, children, structs)?;
            continue;
        }
        let field = field(line, range)?;
        if !children.is_empty() {
            fields_of(struct_of(&field.ty)?, range, indent + 2, children, structs)?;
        }
        if let Some(parent) = structs.get_mut(at) {
            parent.fields.push(field);
        }
    }
    Ok(())
}

fn struct_of(ty: &Type) -> Result<String, String> {
    match ty {
        Type::Struct(name) => Ok(name.clone()),
        Type::Array(element) => struct_of(element),
        other => Err(format!("{other:?} has fields inside")),
    }
}

fn field(line: &Line<'_>, versions: Versions) -> Result<Field, String> {
    let nullable = line.option("null").map(str::parse::<Versions>).transpose()?;
    let tag = line.option("tag").and_then(|tag| tag.split_once(':'));
    let tag = match tag {
        Some((tag, tagged)) if tagged.parse::<Versions>()?.covers(versions) => {
            Some(tag.parse().map_err(|_| format!("line {}: tag", line.number))?)
        }
        Some(_) => return Err(format!("line {}: tagged in some versions only", line.number)),
        None => None,
    };
    Ok(Field {
        name: line.word(0)?.to_owned(),
        ty: line.word(1)?.into(),
        versions,
        nullable: nullable.and_then(|range| range.overlap(versions)),
        tag,
        default: line.option("default").map(str::to_owned),
    })
}
