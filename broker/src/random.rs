//! Random ids.

use duolog_log_core::ids::TopicId;

/// A random version 4 UUID that Kafka would give too: none of its reserved values, and none whose
/// text begins with a dash, which command lines would take for an option (`Uuid.randomUuid`).
///
/// Errors: the system gives no random bytes.
pub fn uuid() -> std::io::Result<TopicId> {
    /// All but the lowest bit are zero: Kafka's own topics have these ids.
    const RESERVED_MAX: u128 = 1;
    loop {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        let bits = u128::from_be_bytes(bytes);
        let bits = (bits & !(0xF << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let id = TopicId(bits.to_be_bytes());
        if bits > RESERVED_MAX && !id.to_string().starts_with('-') {
            return Ok(id);
        }
    }
}

/// A random number for member ids and the like.
///
/// Errors: the system gives no random bytes.
pub fn bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
