//! Numbers in texts, as Java reads them.

/// `Double.valueOf`, without hexadecimal; `None` where it throws.
pub(super) fn java_double(text: &str) -> Option<f64> {
    // Java's trim: whatever is not beyond the space.
    let text = text.trim_matches(|char| char <= ' ');
    let (is_negative, bare) = match text.strip_prefix(['+', '-']) {
        Some(bare) => (text.starts_with('-'), bare),
        None => (false, text),
    };
    let positive = match bare {
        // It has no sign.
        "NaN" => return Some(f64::NAN),
        "Infinity" => f64::INFINITY,
        _ => {
            let digits = bare.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(bare);
            // Rust would take its own names for NaN and infinity, and another sign.
            if !digits.starts_with(|char: char| char.is_ascii_digit() || char == '.') {
                return None;
            }
            digits.parse::<f64>().ok()?
        }
    };
    Some(if is_negative { -positive } else { positive })
}

#[cfg(test)]
mod tests;
