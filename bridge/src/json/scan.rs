//! A cursor over JSON text.

use crate::limits::JSON_DEPTH_MAX;

/// Why a text is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} expected at byte {at}")]
pub struct JsonError {
    /// What would have been right.
    pub expected: String,
    /// Where, in bytes from the start.
    pub at: usize,
}

/// Reads a text from left to right. Every step is bounded by the text and fails without moving beyond it.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn error(&self, expected: impl Into<String>) -> JsonError {
        JsonError { expected: expected.into(), at: self.at }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is not white space, without taking it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes `byte` if it comes next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.eat(byte) { Ok(()) } else { Err(self.error(format!("'{}'", char::from(byte)))) }
    }

    /// Takes a bare word or number: everything up to white space or punctuation. Empty if there is none.
    pub(crate) fn word(&mut self) -> &'a str {
        self.peek();
        let rest = self.rest();
        let ends = |byte: &u8| {
            matches!(byte, b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"' | b'\'')
                || byte.is_ascii_whitespace()
        };
        let length = rest.as_bytes().iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Takes a quoted string and appends what it says to `out`.
    pub(crate) fn string_into(&mut self, out: &mut String) -> Result<(), JsonError> {
        let quote = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.error("a string")),
        };
        self.at += 1;
        loop {
            let rest = self.rest();
            let stops = |byte: &u8| *byte == quote || *byte == b'\\';
            let Some(length) = rest.as_bytes().iter().position(stops) else {
                self.at = self.text.len();
                return Err(self.error("the end of a string"));
            };
            out.push_str(rest.get(..length).unwrap_or_default());
            self.at += length + 1;
            if rest.as_bytes().get(length) == Some(&quote) {
                return Ok(());
            }
            let escaped = self.escape()?;
            out.push(escaped);
        }
    }

    /// Takes what follows a backslash.
    fn escape(&mut self) -> Result<char, JsonError> {
        let Some(&byte) = self.text.as_bytes().get(self.at) else {
            return Err(self.error("an escape"));
        };
        let simple = match byte {
            b'"' | b'\\' | b'/' | b'\'' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'0' => '\0',
            b'v' => '\u{b}',
            b'x' => {
                self.at += 1;
                return self.hex(2).map(|unit| char::from(u8::try_from(unit).unwrap_or_default()));
            }
            b'u' => {
                self.at += 1;
                return self.utf16();
            }
            _ => return Err(self.error("an escape")),
        };
        self.at += 1;
        Ok(simple)
    }

    /// Takes the four digits of a UTF-16 unit, and the second half of a pair. Half a pair reads as U+FFFD, since a
    /// string here is UTF-8.
    fn utf16(&mut self) -> Result<char, JsonError> {
        let first = self.hex(4)?;
        let mut units = [first, 0];
        let mut length = 1;
        if (0xD800..0xDC00).contains(&first) && self.rest().starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex(4)?;
            if (0xDC00..0xE000).contains(&second) {
                units[1] = second;
                length = 2;
            } else {
                self.at = before;
            }
        }
        let decoded = char::decode_utf16(units.into_iter().take(length)).next();
        Ok(decoded.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self, digits: usize) -> Result<u16, JsonError> {
        let text = self.rest().get(..digits).unwrap_or_default();
        let all_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u16::from_str_radix(text, 16) {
            Ok(unit) if all_hex => {
                self.at += digits;
                Ok(unit)
            }
            _ => Err(self.error("hex digits")),
        }
    }

    /// Takes one value of any kind and drops it. `depth` counts what it is nested in.
    pub(crate) fn skip_value(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > JSON_DEPTH_MAX {
            return Err(self.error("less nesting"));
        }
        let close = match self.peek() {
            Some(b'{') => b'}',
            Some(b'[') => b']',
            Some(b'"' | b'\'') => return self.string_into(&mut String::new()),
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

    /// Fails unless only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("the end of the text")),
        }
    }
}
