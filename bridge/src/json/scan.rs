//! A cursor over JSON text.

use std::borrow::Cow;

use crate::limits::JSON_DEPTH_MAX;

/// Why a text is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} expected at byte {}", .0.expected, .0.at)]
pub struct JsonError(Box<Expected>);

/// Behind a box, so that a result of the hot path fits two registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expected {
    expected: Cow<'static, str>,
    at: usize,
}

/// Reads a text from left to right. Every step is bounded by the text and fails without moving
/// beyond it.
///
/// It works on bytes and does not ask for UTF-8: only ASCII has a meaning in JSON, so whoever takes
/// strings out of valid text gets valid strings.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// Where a string's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoted {
    /// In the text itself, from the first position to the second, exclusive.
    Plain(usize, usize),
    /// Appended to the buffer that was passed in, since it held escapes.
    Unescaped,
}

/// A name and a value in the text, each from the first position to the second, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainPair {
    pub(crate) name: (usize, usize),
    pub(crate) value: (usize, usize),
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    #[cold]
    pub(crate) fn error(&self, expected: impl Into<Cow<'static, str>>) -> JsonError {
        JsonError(Box::new(Expected { expected: expected.into(), at: self.at }))
    }

    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is not white space, without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if *byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes `byte` if it comes next.
    #[inline]
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.eat(byte) { Ok(()) } else { Err(self.error(format!("'{}'", char::from(byte)))) }
    }

    /// Takes a bare word or number: everything up to white space or punctuation. Empty if there is
    /// none.
    pub(crate) fn word(&mut self) -> &'a [u8] {
        self.peek();
        let rest = self.rest();
        let length = rest.iter().position(|byte| ends_word(*byte)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Takes a quoted string. `out` receives its content only when there were escapes in it.
    #[inline]
    pub(crate) fn quoted(&mut self, out: &mut Vec<u8>) -> Result<Quoted, JsonError> {
        let quote = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.error("a string")),
        };
        let start = self.at + 1;
        let length = self.run(start, quote)?;
        let end = start + length;
        self.at = end + 1;
        if self.text.get(end) == Some(&quote) {
            return Ok(Quoted::Plain(start, end));
        }
        self.unescape(start, end, quote, out)?;
        Ok(Quoted::Unescaped)
    }

    /// The rest of a string whose part from `start` to `end` is plain and followed by a backslash.
    #[inline(never)]
    fn unescape(
        &mut self,
        start: usize,
        end: usize,
        quote: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonError> {
        out.extend_from_slice(self.text.get(start..end).unwrap_or_default());
        loop {
            self.escape(out)?;
            let start = self.at;
            let end = start + self.run(start, quote)?;
            out.extend_from_slice(self.text.get(start..end).unwrap_or_default());
            self.at = end + 1;
            if self.text.get(end) == Some(&quote) {
                return Ok(());
            }
        }
    }

    /// Takes `"name":"value"` without escapes and white space, and returns where both are. Takes
    /// nothing if that is not what comes next. This is how nearly all fields of a header look.
    #[inline]
    pub(crate) fn plain_pair(&mut self) -> Option<PlainPair> {
        let name_start = self.at + 1;
        let name = self.rest().strip_prefix(b"\"")?;
        let name_end = name_start + find_either(name, b'"', b'\\')?;
        let value_start = name_end + 3;
        let (between, value) = self.text.get(name_end..)?.split_first_chunk::<3>()?;
        if between != b"\":\"" {
            return None;
        }
        let value_end = value_start + find_either(value, b'"', b'\\')?;
        if self.text.get(value_end) != Some(&b'"') {
            return None;
        }
        self.at = value_end + 1;
        Some(PlainPair { name: (name_start, name_end), value: (value_start, value_end) })
    }

    /// Takes a quoted string and appends its content to `out`.
    pub(crate) fn string_into(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        if let Quoted::Plain(start, end) = self.quoted(out)? {
            out.extend_from_slice(self.text.get(start..end).unwrap_or_default());
        }
        Ok(())
    }

    /// Bytes from `start` up to the next quote or backslash.
    #[inline]
    fn run(&mut self, start: usize, quote: u8) -> Result<usize, JsonError> {
        let rest = self.text.get(start..).unwrap_or_default();
        match find_either(rest, quote, b'\\') {
            Some(length) => Ok(length),
            None => {
                self.at = self.text.len();
                Err(self.error("the end of a string"))
            }
        }
    }

    /// Takes what follows a backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let Some(&byte) = self.text.get(self.at) else {
            return Err(self.error("an escape"));
        };
        self.at += 1;
        let simple = match byte {
            b'u' => return self.utf16(out),
            b'"' | b'\\' | b'/' | b'\'' => byte,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'0' => 0,
            b'x' => {
                let code = self.hex::<2>()?;
                push_char(char::from_u32(code.into()).unwrap_or_default(), out);
                return Ok(());
            }
            _ => return Err(self.error("an escape before this")),
        };
        out.push(simple);
        Ok(())
    }

    /// Takes the four digits of a UTF-16 unit, and the second half of a pair. Half a pair reads as
    /// U+FFFD, since a string here is UTF-8.
    fn utf16(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let first = self.hex::<4>()?;
        if let Ok(ascii @ 0..=0x7F) = u8::try_from(first) {
            out.push(ascii);
            return Ok(());
        }
        let mut units = [first, 0];
        let mut length = 1;
        if (0xD800..0xDC00).contains(&first) && self.rest().starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex::<4>()?;
            if (0xDC00..0xE000).contains(&second) {
                units[1] = second;
                length = 2;
            } else {
                self.at = before;
            }
        }
        let decoded = char::decode_utf16(units.into_iter().take(length)).next();
        push_char(decoded.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER), out);
        Ok(())
    }

    fn hex<const DIGITS: usize>(&mut self) -> Result<u16, JsonError> {
        let Some(digits) = self.rest().first_chunk::<DIGITS>() else {
            return Err(self.error("hex digits"));
        };
        let mut value = 0;
        for digit in digits {
            let digit = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                b'A'..=b'F' => digit - b'A' + 10,
                _ => return Err(self.error("hex digits")),
            };
            value = value << 4 | u16::from(digit);
        }
        self.at += DIGITS;
        Ok(value)
    }

    /// Takes one value of any kind as it stands.
    pub(crate) fn any_value(&mut self) -> Result<&'a [u8], JsonError> {
        self.peek();
        let start = self.at;
        self.skip_value(1)?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Takes one value of any kind and drops it. `depth` counts what it is nested in.
    pub(crate) fn skip_value(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > JSON_DEPTH_MAX {
            return Err(self.error("less nesting"));
        }
        let close = match self.peek() {
            Some(b'{') => b'}',
            Some(b'[') => b']',
            Some(b'"' | b'\'') => return self.quoted(&mut Vec::new()).map(|_| ()),
            _ if self.word().is_empty() => return Err(self.error("a value")),
            _ => return Ok(()),
        };
        self.at += 1;
        if self.eat(close) {
            return Ok(());
        }
        loop {
            self.skip_value(depth + 1)?;
            if close == b'}' {
                self.expect(b':')?;
                self.skip_value(depth + 1)?;
            }
            if self.eat(close) {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Takes a number, quoted or not, that fits 32 bits. `None` if the word null stands there.
    pub(crate) fn integer(&mut self) -> Result<Option<i32>, JsonError> {
        let mut quoted = Vec::new();
        let text = if matches!(self.peek(), Some(b'"' | b'\'')) {
            self.string_into(&mut quoted)?;
            quoted.as_slice()
        } else {
            self.word()
        };
        if text == b"null" {
            return Ok(None);
        }
        match parse_i32(text) {
            Some(value) => Ok(Some(value)),
            None => Err(self.error("a 32-bit integer before this")),
        }
    }

    /// Fails unless only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("the end of the text")),
        }
    }
}

fn parse_i32(text: &[u8]) -> Option<i32> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 10 {
        return None;
    }
    let mut value = 0i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    i32::try_from(if negative { -value } else { value }).ok()
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"' | b'\'')
        || byte.is_ascii_whitespace()
}

fn push_char(character: char, out: &mut Vec<u8>) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Position of the first byte that is `left` or `right`; eight bytes a step.
#[inline]
fn find_either(bytes: &[u8], left: u8, right: u8) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let lefts = ONES * u64::from(left);
    let rights = ONES * u64::from(right);
    // A byte of `zeroes(x)` has its high bit set if that byte of x is zero, and the lowest such bit
    // is exact.
    let zeroes = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let mut at = 0;
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let found = zeroes(word ^ lefts) | zeroes(word ^ rights);
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
        rest = after;
    }
    let tail = rest.iter().position(|byte| *byte == left || *byte == right)?;
    Some(at + tail)
}
