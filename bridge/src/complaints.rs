//! What the node's console says of clients that are refused something: once per client and subject,
//! and no more than a handful of lines a minute, whoever calls.
//!
//! A client's own error is the better place for a refusal. But some clients hide it, or go on
//! waiting for what will never come (a lite consumer without its messages); then the console is
//! the only place where a person can read why. What is left out here is still counted by name in
//! the metrics.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::limits::{COMPLAINT_NAME_CHARS_MAX, COMPLAINTS_KNOWN_MAX, COMPLAINTS_PER_MINUTE};

/// Which complaints were said.
#[derive(Debug, Default)]
pub struct Complaints(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    /// Client and subject.
    known: HashSet<(Box<str>, Box<str>)>,
    minute: i64,
    in_this_minute: usize,
}

impl Complaints {
    /// Whether to say now that `client` was refused `subject`. True once for both; what does not
    /// fit into its minute may be said later. `now_ms` is milliseconds since 1970.
    pub fn is_due(&self, client: &str, subject: &str, now_ms: i64) -> bool {
        let key = (shortened(client).into(), shortened(subject).into());
        let mut said = self.0.lock();
        if said.known.contains(&key) {
            return false;
        }
        let minute = now_ms.div_euclid(60_000);
        if minute != said.minute {
            said.minute = minute;
            said.in_this_minute = 0;
        }
        if said.in_this_minute == COMPLAINTS_PER_MINUTE {
            return false;
        }
        // What is forgotten costs one more line each.
        if said.known.len() == COMPLAINTS_KNOWN_MAX {
            said.known.clear();
        }
        said.in_this_minute += 1;
        said.known.insert(key)
    }
}

/// The first characters of a name from outside: clients choose their names and lengths.
#[must_use]
pub fn shortened(name: &str) -> &str {
    name.char_indices().nth(COMPLAINT_NAME_CHARS_MAX).map_or(name, |(at, _)| name.split_at(at).0)
}

#[cfg(test)]
mod tests;
