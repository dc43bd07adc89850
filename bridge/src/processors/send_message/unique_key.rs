//! UNIQ_KEY for a message whose client made none.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes keys as MessageClientIDSetter does: upper-case hex of our address, the process (2 bytes),
/// its instance (4), milliseconds since the month began (4, so that tools can tell the time) and a
/// counter (2).
#[derive(Debug, Default)]
pub(crate) struct UniqueKeys {
    counter: AtomicU32,
}

const DAY_MS: i64 = 86_400_000;

impl UniqueKeys {
    pub(super) fn next(&self, broker: SocketAddr, started_ms: i64, now_ms: i64) -> String {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let month_ms = now_ms.saturating_sub(month_start_ms(now_ms));
        let mut key = String::with_capacity(56);
        // Writing to a String does not fail.
        let _infallible = match broker.ip().to_canonical() {
            IpAddr::V4(ip) => write!(key, "{:08X}", u32::from(ip)),
            IpAddr::V6(ip) => write!(key, "{:032X}", u128::from(ip)),
        };
        let _infallible = write!(
            key,
            "{:04X}{:08X}{:08X}{:04X}",
            process as u16, started_ms as u32, month_ms as u32, counter as u16
        );
        key
    }
}

/// When the month of `now_ms` began, in UTC.
fn month_start_ms(now_ms: i64) -> i64 {
    let days = now_ms.div_euclid(DAY_MS);
    (days - i64::from(day_of_month(days)) + 1).saturating_mul(DAY_MS)
}

/// 1 to 31, of a day counted from 1 January 1970. Months are counted from March on, so that the
/// leap day is a year's last.
fn day_of_month(days: i64) -> i32 {
    const ERA_DAYS: i64 = 146_097;
    let day_of_era = (days + 719_468).rem_euclid(ERA_DAYS);
    let leaps = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    i32::try_from(day).unwrap_or(1)
}

#[cfg(test)]
mod tests;
