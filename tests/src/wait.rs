//! Waiting on a condition with a deadline.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);

/// Tries `condition` until it gives a value, at most for `limit`; then fails with what was waited
/// for and the condition's last word.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        match condition() {
            Ok(value) => return Ok(value),
            Err(last) if start.elapsed() >= limit => {
                return Err(last.context(format!("{what}: not within {limit:?}")));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}
