//! The clocks of this process, read here and passed inwards as arguments.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The wall clock: milliseconds since 1970. May jump.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds since this process first asked. Never goes back.
pub fn tick_ms() -> i64 {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    i64::try_from(ORIGIN.elapsed().as_millis()).unwrap_or(i64::MAX)
}
