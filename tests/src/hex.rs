//! Hex as the drivers speak it.

/// Lower-case hex of bytes, or of a text's.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text that [`hex`] wrote.
pub fn unhex(text: &str) -> anyhow::Result<String> {
    let pairs = text.as_bytes().chunks(2);
    let bytes: anyhow::Result<Vec<u8>> =
        pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect();
    Ok(String::from_utf8(bytes?)?)
}
