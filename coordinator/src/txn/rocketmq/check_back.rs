//! Whether it is time to ask about a half message, or to give it up.
//!
//! Source: `TransactionalMessageServiceImpl.check`, needDiscard, needSkip, getImmunityTime.

use super::half::Half;
use crate::record::half::Immunity;

/// The node's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckConfig {
    /// `transactionTimeOut`: how long a message is not asked about.
    pub timeout_ms: i64,
    /// `transactionCheckInterval`: between two rounds.
    pub interval_ms: i64,
    /// `transactionCheckMax`: how often at most.
    pub times_max: i32,
    /// `fileReservedTime`: how old a message may become.
    pub age_max_ms: i64,
}

impl Default for CheckConfig {
    /// RocketMQ's.
    fn default() -> Self {
        Self { timeout_ms: 6_000, interval_ms: 30_000, times_max: 15, age_max_ms: 72 * 3_600_000 }
    }
}

/// What is to be done about a half message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A member of the producer group is to be asked.
    Ask,
    /// It was asked about as often as may be.
    AskedTooOften,
    /// It is older than may be.
    TooOld,
}

/// What is to be done about `half` now; `None`: nothing yet.
#[must_use]
pub fn verdict(half: &Half, config: &CheckConfig, now_ms: i64) -> Option<Verdict> {
    let age_ms = now_ms.saturating_sub(half.born_ms);
    if half.times > 0 && half.times >= config.times_max {
        return Some(Verdict::AskedTooOften);
    }
    if age_ms > config.age_max_ms {
        return Some(Verdict::TooOld);
    }
    let is_immune = match half.immunity {
        // By a clock of the producer's that is ahead, it was not born yet: it is asked at once.
        Immunity::Default => (0..=config.timeout_ms).contains(&age_ms),
        Immunity::Unreadable => age_ms <= config.timeout_ms,
        Immunity::Seconds(seconds) => age_ms <= i64::from(seconds) * 1_000,
    };
    (!is_immune).then_some(Verdict::Ask)
}

#[cfg(test)]
mod tests;
