//! Writing JSON text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::{BufMut, Bytes, BytesMut};

/// How map keys that are no strings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonStyle {
    /// As fastjson does: numbers and objects stand as they are.
    #[default]
    Fastjson,
    /// As the standard wants it: in quotes.
    Standard,
}

/// What can be written.
pub(crate) trait ToJson {
    fn write(&self, out: &mut JsonOut);
}

/// A text that grows.
#[derive(Debug, Default)]
pub(crate) struct JsonOut {
    bytes: BytesMut,
    style: JsonStyle,
}

impl JsonOut {
    /// The text of one value.
    pub(crate) fn text_of(value: &impl ToJson, style: JsonStyle) -> Bytes {
        let mut out = Self { bytes: BytesMut::new(), style };
        value.write(&mut out);
        out.bytes.freeze()
    }

    /// Text that is JSON already.
    pub(crate) fn raw(&mut self, text: &str) {
        self.bytes.put_slice(text.as_bytes());
    }

    pub(crate) fn string(&mut self, text: &str) {
        write_string(text, &mut self.bytes);
    }

    /// Begins an object; [`Object::end`] ends it.
    pub(crate) fn object(&mut self) -> Object<'_> {
        self.bytes.put_u8(b'{');
        Object { out: self, is_empty: true }
    }

    pub(crate) fn list<T: ToJson>(&mut self, elements: &[T]) {
        self.bytes.put_u8(b'[');
        for (place, element) in elements.iter().enumerate() {
            if place > 0 {
                self.bytes.put_u8(b',');
            }
            element.write(self);
        }
        self.bytes.put_u8(b']');
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        // Writing to a BytesMut grows it and does not fail.
        let _infallible = write!(self.bytes, "{value}");
    }
}

/// An object being written. The original sorts names; the caller gives them sorted.
pub(crate) struct Object<'a> {
    out: &'a mut JsonOut,
    is_empty: bool,
}

impl Object<'_> {
    fn comma(&mut self) {
        if !self.is_empty {
            self.out.bytes.put_u8(b',');
        }
        self.is_empty = false;
    }

    /// A member with a name.
    pub(crate) fn field(&mut self, name: &str, value: &(impl ToJson + ?Sized)) -> &mut Self {
        self.comma();
        self.out.string(name);
        self.out.bytes.put_u8(b':');
        value.write(self.out);
        self
    }

    /// A member whose key may be of any kind.
    pub(crate) fn entry(&mut self, key: &impl ToJson, value: &impl ToJson) -> &mut Self {
        self.comma();
        let start = self.out.bytes.len();
        key.write(self.out);
        if self.out.style == JsonStyle::Standard && self.out.bytes.get(start) != Some(&b'"') {
            let bare = self.out.bytes.split_off(start);
            self.out.string(&String::from_utf8_lossy(&bare));
        }
        self.out.bytes.put_u8(b':');
        value.write(self.out);
        self
    }

    pub(crate) fn end(&mut self) {
        self.out.bytes.put_u8(b'}');
    }
}

impl<T: ToJson + ?Sized> ToJson for &T {
    fn write(&self, out: &mut JsonOut) {
        (**self).write(out);
    }
}

impl ToJson for str {
    fn write(&self, out: &mut JsonOut) {
        out.string(self);
    }
}

impl ToJson for String {
    fn write(&self, out: &mut JsonOut) {
        out.string(self);
    }
}

impl ToJson for bool {
    fn write(&self, out: &mut JsonOut) {
        out.display(self);
    }
}

impl ToJson for i32 {
    fn write(&self, out: &mut JsonOut) {
        out.display(self);
    }
}

impl ToJson for i64 {
    fn write(&self, out: &mut JsonOut) {
        out.display(self);
    }
}

impl ToJson for f64 {
    /// With a point, as Java does; what JSON cannot say is null.
    fn write(&self, out: &mut JsonOut) {
        if self.is_finite() {
            out.display(format_args!("{self:?}"));
        } else {
            out.raw("null");
        }
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write(&self, out: &mut JsonOut) {
        out.list(self);
    }
}

impl<K: ToJson, V: ToJson> ToJson for BTreeMap<K, V> {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        for (key, value) in self {
            object.entry(key, value);
        }
        object.end();
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a string with its quotes. Characters beyond ASCII stay as they are.
pub(crate) fn write_string(text: &str, out: &mut BytesMut) {
    out.reserve(text.len() + 2);
    out.put_u8(b'"');
    let needs_escape = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let mut rest = text.as_bytes();
    // Over all bytes, without a way out, since that is a loop over vectors.
    if rest.iter().fold(false, |found, byte| found | needs_escape(byte)) {
        while let Some(position) = rest.iter().position(needs_escape) {
            let (plain, special) = rest.split_at(position);
            out.put_slice(plain);
            let Some((&byte, after)) = special.split_first() else { break };
            write_escape(byte, out);
            rest = after;
        }
    }
    out.put_slice(rest);
    out.put_u8(b'"');
}

fn write_escape(byte: u8, out: &mut BytesMut) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let digit = |value: u8| HEX.get(usize::from(value)).copied().unwrap_or(b'0');
            out.put_slice(b"\\u00");
            out.put_u8(digit(byte >> 4));
            out.put_u8(digit(byte & 0xF));
            return;
        }
    };
    out.put_u8(b'\\');
    out.put_u8(short);
}
