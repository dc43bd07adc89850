//! Writing JSON text.

use bytes::{BufMut, BytesMut};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes a string with its quotes. Characters beyond ASCII stay as they are.
pub(crate) fn write_string(text: &str, out: &mut BytesMut) {
    out.reserve(text.len() + 2);
    out.put_u8(b'"');
    let mut rest = text.as_bytes();
    let needs_escape = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    while let Some(position) = rest.iter().position(needs_escape) {
        let (plain, special) = rest.split_at(position);
        out.put_slice(plain);
        let Some((&byte, after)) = special.split_first() else { break };
        write_escape(byte, out);
        rest = after;
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
