//! The `extFields` of a header: a small ordered map from string to string in one allocation.

use std::fmt::{self, Write as _};

use crate::limits::FRAME_BYTES_MAX;

// Positions in the text are 32 bits wide: a header and the unescaped copies of its strings are two
// frames at most.
const _: () = assert!(FRAME_BYTES_MAX <= u32::MAX as usize / 2);

/// A field's name and value, each from one position in the text to another, exclusive.
#[derive(Clone, Copy, Debug)]
struct Span {
    name: (u32, u32),
    value: (u32, u32),
}

/// Fields in the order in which they came or were added. A name may come twice; the last one
/// counts, as with the original's hash map.
#[derive(Clone, Default)]
pub struct ExtFields {
    text: String,
    spans: Vec<Span>,
}

/// Why a field cannot be used. The text names the field and goes into the answer's remark with code
/// 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The field is not there (or its value was null). The text is the original's.
    #[error("the custom field <{name}> is null")]
    Missing {
        /// The field's name on the wire.
        name: &'static str,
    },
    /// The field holds something else than its type. (The original's text names the value and not
    /// the field.)
    #[error("the custom field <{name}> is not {expected}: \"{found}\"")]
    Malformed {
        /// The field's name on the wire.
        name: &'static str,
        /// What would have been right.
        expected: &'static str,
        /// What came, cut to a readable length.
        found: String,
    },
}

/// A type that a field's text can be read as.
pub trait FieldValue<'a>: Sized {
    /// What to call it in an error.
    const EXPECTED: &'static str;

    /// `None` if the text is no such value.
    fn parse(text: &'a str) -> Option<Self>;
}

impl<'a> FieldValue<'a> for &'a str {
    const EXPECTED: &'static str = "a string";

    fn parse(text: &'a str) -> Option<Self> {
        Some(text)
    }
}

impl FieldValue<'_> for i32 {
    const EXPECTED: &'static str = "a 32-bit integer";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl FieldValue<'_> for i64 {
    const EXPECTED: &'static str = "a 64-bit integer";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl FieldValue<'_> for bool {
    const EXPECTED: &'static str = "true or false";

    /// As Boolean.parseBoolean: whatever is not "true" is false.
    fn parse(text: &str) -> Option<Self> {
        Some(text.eq_ignore_ascii_case("true"))
    }
}

const FOUND_CHARS_MAX: usize = 64;

impl ExtFields {
    /// No fields, with room for so many and for the bytes of their names and values.
    #[must_use]
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), spans: Vec::with_capacity(fields) }
    }

    /// Fields, a repeated name counted each time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// No field at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Adds a field. One that does not fit a frame any more is left out: such a frame could not be
    /// sent anyway.
    pub fn push(&mut self, name: &str, value: &str) {
        self.reserve_first();
        let start = self.text.len();
        self.text.push_str(name);
        self.text.push_str(value);
        self.close(start, start + name.len());
    }

    /// Adds a field whose value is written as text.
    pub fn push_display(&mut self, name: &str, value: impl fmt::Display) {
        self.reserve_first();
        let start = self.text.len();
        self.text.push_str(name);
        let middle = self.text.len();
        if write!(self.text, "{value}").is_ok() {
            self.close(start, middle);
        } else {
            self.text.truncate(start);
        }
    }

    /// Room for what most answers hold, at once instead of in steps.
    fn reserve_first(&mut self) {
        if self.spans.is_empty() {
            self.text.reserve(128);
            self.spans.reserve(8);
        }
    }

    fn close(&mut self, start: usize, middle: usize) {
        match span((start, middle), (middle, self.text.len())) {
            Some(span) => self.spans.push(span),
            None => self.text.truncate(start),
        }
    }

    /// The last value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let text = self.text.as_bytes();
        let is_it = |span: &&Span| slice(text, span.name) == Some(name.as_bytes());
        let span = self.spans.iter().rev().find(is_it)?;
        self.part(span.value)
    }

    /// Names and values in order, a repeated name each time it came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.spans.iter().filter_map(|span| Some((self.part(span.name)?, self.part(span.value)?)))
    }

    fn part(&self, (start, end): (u32, u32)) -> Option<&str> {
        self.text.get(start as usize..end as usize)
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// [`FieldError::Missing`], [`FieldError::Malformed`].
    pub fn required<'a, T: FieldValue<'a>>(&'a self, name: &'static str) -> Result<T, FieldError> {
        self.optional(name)?.ok_or(FieldError::Missing { name })
    }

    /// A field that may be absent.
    ///
    /// # Errors
    /// [`FieldError::Malformed`].
    pub fn optional<'a, T: FieldValue<'a>>(
        &'a self,
        name: &'static str,
    ) -> Result<Option<T>, FieldError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        parse_field(name, text).map(Some)
    }
}

fn slice(text: &[u8], (start, end): (u32, u32)) -> Option<&[u8]> {
    text.get(start as usize..end as usize)
}

/// `None` if a position does not fit.
fn span(name: (usize, usize), value: (usize, usize)) -> Option<Span> {
    let narrow =
        |(start, end): (usize, usize)| Some((u32::try_from(start).ok()?, u32::try_from(end).ok()?));
    Some(Span { name: narrow(name)?, value: narrow(value)? })
}

/// Collects fields whose strings lie in one text of bytes, which is checked to be UTF-8 once, at
/// the end.
pub(super) struct FieldsBuilder {
    text: Vec<u8>,
    spans: Vec<Span>,
}

impl FieldsBuilder {
    /// The text begins as a copy of `text`; room for as much again.
    pub(super) fn over(text: &[u8]) -> Self {
        let mut own = Vec::with_capacity(text.len() * 2);
        own.extend_from_slice(text);
        Self { text: own, spans: Vec::with_capacity(16) }
    }

    /// An empty text with room for `bytes`.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { text: Vec::with_capacity(bytes), spans: Vec::with_capacity(16) }
    }

    /// The text, to append to.
    pub(super) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Adds a field by the positions of its name and value in the text.
    #[inline]
    pub(super) fn push(&mut self, name: (usize, usize), value: (usize, usize)) {
        if let Some(span) = span(name, value) {
            self.spans.push(span);
        }
    }

    /// The fields. Bytes that are no UTF-8 become U+FFFD.
    pub(super) fn finish(self) -> ExtFields {
        match String::from_utf8(self.text) {
            Ok(text) => ExtFields { text, spans: self.spans },
            Err(error) => {
                let bytes = error.into_bytes();
                let lossy =
                    |range| String::from_utf8_lossy(slice(&bytes, range).unwrap_or_default());
                self.spans.iter().map(|span| (lossy(span.name), lossy(span.value))).collect()
            }
        }
    }
}

/// Reads a field's text as its type.
///
/// # Errors
/// [`FieldError::Malformed`].
pub(super) fn parse_field<'a, T: FieldValue<'a>>(
    name: &'static str,
    text: &'a str,
) -> Result<T, FieldError> {
    T::parse(text).ok_or_else(|| FieldError::Malformed {
        name,
        expected: T::EXPECTED,
        found: text.chars().take(FOUND_CHARS_MAX).collect(),
    })
}

impl fmt::Debug for ExtFields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

/// Two sets of fields are equal when each name has the same last value in both, whatever the order.
impl PartialEq for ExtFields {
    fn eq(&self, other: &Self) -> bool {
        let within = |left: &Self, right: &Self| {
            left.iter().all(|(name, _)| left.get(name) == right.get(name))
        };
        within(self, other) && within(other, self)
    }
}

impl Eq for ExtFields {}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for ExtFields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let mut all = Self::default();
        for (name, value) in fields {
            all.push(name.as_ref(), value.as_ref());
        }
        all
    }
}
