//! A JSON text as a tree.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;

use super::out::{JsonOut, JsonStyle, ToJson};
use super::scan::{Cursor, JsonError, Quoted};
use crate::limits::{JSON_DEPTH_MAX, JSON_VALUES_MAX};

/// One value. Numbers stay text until somebody asks for one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    /// A number, true, false, or any other bare word.
    Word(Cow<'a, str>),
    Text(Cow<'a, str>),
    Array(Vec<Self>),
    /// In order; keys are of any kind.
    Object(Vec<(Self, Self)>),
}

/// Why a body is not what its request needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is no JSON, or too deep or too rich.
    #[error("body: {0}")]
    Json(#[from] JsonError),
    /// A field is of another kind.
    #[error("body: {field} is not {expected}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

const NULL: Value<'static> = Value::Null;

impl<'a> Value<'a> {
    /// Reads a whole text; nesting and the number of values are bounded. Bytes that are no UTF-8
    /// read as U+FFFD, as in the original.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, JsonError> {
        let mut parser = Parser { cursor: Cursor::new(text), values: 0 };
        let value = parser.value(0)?;
        parser.cursor.end()?;
        Ok(value)
    }

    /// What fastjson2 gives for it where a string is wanted: its text on one line. Of members with
    /// one name the last value, in the place of the first, and none that are null; numbers with an
    /// exponent as Java prints its doubles. Of a list of one string that string itself.
    pub(crate) fn compact(&self) -> Bytes {
        if let Self::Array(elements) = self
            && let [Self::Text(text)] = elements.as_slice()
        {
            return Bytes::copy_from_slice(text.as_bytes());
        }
        JsonOut::text_of(&Compact(self), JsonStyle::Fastjson)
    }

    /// Whether something without quotes is neither number, truth value nor null.
    pub(crate) fn has_bare_words(&self) -> bool {
        match self {
            Self::Null | Self::Text(_) => false,
            Self::Word(word) => !matches!(&**word, "true" | "false") && !is_number(word),
            Self::Array(elements) => elements.iter().any(Self::has_bare_words),
            // Names may be bare.
            Self::Object(members) => members.iter().any(|(_, value)| value.has_bare_words()),
        }
    }

    /// The last value of that name in an object; null if there is none.
    pub(crate) fn get(&self, name: &str) -> &Self {
        let Self::Object(members) = self else { return &NULL };
        let is_it = |(key, _): &&(Self, Self)| key.as_str() == Some(name);
        members.iter().rev().find(is_it).map_or(&NULL, |(_, value)| value)
    }

    fn as_str(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// A field's text; numbers and booleans count as theirs. `None` if null or absent.
    pub(crate) fn text(&self, field: &'static str) -> Result<Option<String>, BodyError> {
        match self.get(field) {
            Self::Null => Ok(None),
            value => match value.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(BodyError::Field { field, expected: "a string" }),
            },
        }
    }

    /// A field's number, in quotes or not. `None` if null or absent.
    pub(crate) fn number<N: std::str::FromStr>(
        &self,
        field: &'static str,
    ) -> Result<Option<N>, BodyError> {
        match self.get(field) {
            Self::Null => Ok(None),
            value => value
                .as_str()
                .and_then(|text| text.parse().ok())
                .map(Some)
                .ok_or(BodyError::Field { field, expected: "a number of its size" }),
        }
    }

    /// A field's truth value: true, false, 1 or 0, in quotes or not. `None` if null or absent.
    pub(crate) fn flag(&self, field: &'static str) -> Result<Option<bool>, BodyError> {
        match self.get(field) {
            Self::Null => Ok(None),
            value => match value.as_str() {
                Some("true" | "1") => Ok(Some(true)),
                Some("false" | "0" | "") => Ok(Some(false)),
                _ => Err(BodyError::Field { field, expected: "true or false" }),
            },
        }
    }

    /// A field that names one of `choices`, or gives its place as Java's enums do. `None` if null
    /// or absent.
    pub(crate) fn choice<T: Copy>(
        &self,
        field: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, BodyError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        let named = choices.iter().find(|(name, _)| *name == text);
        let placed = || text.parse().ok().and_then(|place: usize| choices.get(place));
        let found = named.or_else(placed).map(|(_, choice)| *choice);
        found.map(Some).ok_or(BodyError::Field { field, expected: "one of its known values" })
    }

    /// The elements of a field; none if it is null or absent.
    pub(crate) fn elements(&self, field: &'static str) -> Result<&[Self], BodyError> {
        match self.get(field) {
            Self::Null => Ok(&[]),
            Self::Array(elements) => Ok(elements),
            _ => Err(BodyError::Field { field, expected: "a list" }),
        }
    }

    /// The texts in a list; nulls are left out.
    pub(crate) fn texts(&self, field: &'static str) -> Result<Vec<String>, BodyError> {
        let texts = self.elements(field)?.iter().filter(|element| !element.is_null());
        let text = |element: &Self| element.as_str().map(str::to_owned);
        let wrong = BodyError::Field { field, expected: "a list of strings" };
        texts.map(text).collect::<Option<_>>().ok_or(wrong)
    }

    /// The members of an object whose keys and values are texts; nulls are left out.
    pub(crate) fn text_pairs(
        &self,
        field: &'static str,
    ) -> Result<Vec<(String, String)>, BodyError> {
        let members = match self.get(field) {
            Self::Null => return Ok(Vec::new()),
            Self::Object(members) => members,
            _ => return Err(BodyError::Field { field, expected: "an object" }),
        };
        let pair = |(key, value): &(Self, Self)| {
            Some((key.as_str()?.to_owned(), value.as_str()?.to_owned()))
        };
        let pairs = members.iter().filter(|(_, value)| !value.is_null()).map(pair);
        let wrong = BodyError::Field { field, expected: "an object of strings" };
        pairs.collect::<Option<_>>().ok_or(wrong)
    }
}

/// As JSON has them, in any of the ways that Java takes.
fn is_number(word: &str) -> bool {
    let starts = word.strip_prefix('-').unwrap_or(word).starts_with(|c: char| c.is_ascii_digit());
    starts && word.parse::<f64>().is_ok()
}

/// A number with an exponent as Java's `Double.toString` has it; others as they stand.
fn java_number(word: &str) -> Cow<'_, str> {
    let number = match word.parse::<f64>() {
        Ok(number) if number.is_finite() && word.contains(['e', 'E']) => number,
        _ => return Cow::Borrowed(word),
    };
    if number == 0.0 || (1e-3..1e7).contains(&number.abs()) {
        return Cow::Owned(format!("{number:?}"));
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => {
            Cow::Owned(format!("{digits}.0E{exponent}"))
        }
        _ => Cow::Owned(text),
    }
}

/// See [`Value::compact`].
struct Compact<'a>(&'a Value<'a>);

impl ToJson for Compact<'_> {
    fn write(&self, out: &mut JsonOut) {
        match self.0 {
            Value::Array(elements) => {
                let elements: Vec<_> = elements.iter().map(Compact).collect();
                out.list(&elements);
            }
            Value::Object(members) => {
                let mut places = HashMap::new();
                let mut kept: Vec<(&Value<'_>, &Value<'_>)> = Vec::with_capacity(members.len());
                for (key, value) in members {
                    let name = key.as_str().unwrap_or("null");
                    match places.get(name).and_then(|place: &usize| kept.get_mut(*place)) {
                        Some(held) => held.1 = value,
                        None => {
                            places.insert(name, kept.len());
                            kept.push((key, value));
                        }
                    }
                }
                let mut object = out.object();
                for (key, value) in kept.into_iter().filter(|(_, value)| !value.is_null()) {
                    match key {
                        // Alone among the names it stays without quotes.
                        Value::Word(word) if is_number(word) => {
                            object.entry(key, &Compact(value));
                        }
                        key => {
                            let name = key.as_str().unwrap_or("null");
                            object.field(name, &Compact(value));
                        }
                    }
                }
                object.end();
            }
            Value::Word(word) => out.raw(&java_number(word)),
            other => other.write(out),
        }
    }
}

impl ToJson for Value<'_> {
    fn write(&self, out: &mut JsonOut) {
        match self {
            Self::Null => out.raw("null"),
            Self::Word(word) => out.raw(word),
            Self::Text(text) => out.string(text),
            Self::Array(elements) => out.list(elements),
            Self::Object(members) => {
                let mut object = out.object();
                for (key, value) in members {
                    object.entry(key, value);
                }
                object.end();
            }
        }
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    values: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        self.values += 1;
        if depth > JSON_DEPTH_MAX {
            return Err(self.cursor.error("less nesting"));
        }
        if self.values > JSON_VALUES_MAX {
            return Err(self.cursor.error("an end of the text, which is too long,"));
        }
        match self.cursor.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"' | b'\'') => self.text().map(Value::Text),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        self.cursor.expect(b'{')?;
        let mut members = Vec::new();
        if self.cursor.eat(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            let key = self.value(depth + 1)?;
            if key.as_str() == Some("$ref") {
                return Err(self.cursor.error("a value written out instead of a reference"));
            }
            self.cursor.expect(b':')?;
            members.push((key, self.value(depth + 1)?));
            if self.cursor.eat(b'}') {
                return Ok(Value::Object(members));
            }
            self.cursor.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, JsonError> {
        self.cursor.expect(b'[')?;
        let mut elements = Vec::new();
        if self.cursor.eat(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.cursor.eat(b']') {
                return Ok(Value::Array(elements));
            }
            self.cursor.expect(b',')?;
        }
    }

    fn text(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let mut unescaped = Vec::new();
        match self.cursor.quoted(&mut unescaped)? {
            Quoted::Plain(start, end) => {
                let bytes = self.cursor.text().get(start..end).unwrap_or_default();
                Ok(String::from_utf8_lossy(bytes))
            }
            Quoted::Unescaped => Ok(Cow::Owned(String::from_utf8_lossy(&unescaped).into_owned())),
        }
    }

    fn word(&mut self) -> Result<Value<'a>, JsonError> {
        match self.cursor.word() {
            b"" => Err(self.cursor.error("a value")),
            b"null" => Ok(Value::Null),
            word => Ok(Value::Word(String::from_utf8_lossy(word))),
        }
    }
}

#[cfg(test)]
mod tests;
