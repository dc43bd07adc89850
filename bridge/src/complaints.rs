//! What the node's console says of clients that are refused something: once per client and subject,
//! and no more than a handful of lines a minute, whoever calls.
//!
//! A client's own error is the better place for a refusal. But some clients hide it, or go on
//! waiting for what will never come (a pop consumer without its messages); then the console is
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
mod tests {
    use super::*;

    #[test]
    fn a_client_hears_of_a_subject_once() {
        let complaints = Complaints::default();
        assert!(complaints.is_due("a", "POP_MESSAGE", 0));
        assert!(!complaints.is_due("a", "POP_MESSAGE", 3_600_000));
        assert!(complaints.is_due("a", "LOCK_BATCH_MQ", 0));
        assert!(complaints.is_due("b", "POP_MESSAGE", 0));
    }

    #[test]
    fn a_minute_has_its_measure_and_the_rest_comes_later() {
        let complaints = Complaints::default();
        let due = |now_ms: i64| {
            (0..1000).filter(|client| complaints.is_due(&client.to_string(), "x", now_ms)).count()
        };
        assert_eq!(due(59_999), COMPLAINTS_PER_MINUTE);
        assert_eq!(due(59_999), 0);
        assert_eq!(due(60_000), COMPLAINTS_PER_MINUTE, "others than before");
    }

    #[test]
    fn names_from_outside_cost_a_bounded_memory() {
        let long = "ü".repeat(100_000);
        assert_eq!(shortened(&long).chars().count(), COMPLAINT_NAME_CHARS_MAX);
        assert_eq!(shortened("short"), "short");
        let complaints = Complaints::default();
        for minute in 0..=(COMPLAINTS_KNOWN_MAX / COMPLAINTS_PER_MINUTE) {
            for at in 0..COMPLAINTS_PER_MINUTE {
                let client = format!("{minute} {at}");
                assert!(complaints.is_due(&client, "x", minute as i64 * 60_000));
            }
        }
        assert!(complaints.0.lock().known.len() <= COMPLAINTS_KNOWN_MAX);
    }
}
