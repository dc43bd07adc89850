//! When a message is to be delivered: delay levels and arbitrary times.
//!
//! A level goes before a time, as in the original; a level beyond the last is the last. A time that
//! is past is now. Source: HookUtils.handleScheduleMessage, ScheduleMessageService,
//! TimerMessageStore.

use super::properties::Properties;

/// `DELAY`: the level.
pub const DELAY: &str = "DELAY";
/// The topic and queue that a delayed message is for.
pub const REAL_TOPIC: &str = "REAL_TOPIC";
/// See [`REAL_TOPIC`].
pub const REAL_QUEUE: &str = "REAL_QID";
/// When the original's wheel turns to the message: its time, less up to one step of the wheel.
pub const TIMER_OUT_MS: &str = "TIMER_OUT_MS";

const TIMER_DELAY_SEC: &str = "TIMER_DELAY_SEC";
const TIMER_DELAY_MS: &str = "TIMER_DELAY_MS";
const TIMER_DELIVER_MS: &str = "TIMER_DELIVER_MS";
const TIMER_ENQUEUE_MS: &str = "TIMER_ENQUEUE_MS";

/// `timerPrecisionMs`: a step of the original's wheel.
pub const PRECISION_MS: i64 = 1_000;

/// The levels of `messageDelayLevel` and the limits of timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayRules {
    /// Milliseconds of level 1 and on.
    pub levels_ms: Vec<i64>,
    /// `timerMaxDelaySec`.
    pub max_delay_ms: i64,
    /// `timerWheelEnable`.
    pub timers: bool,
}

/// Why `messageDelayLevel` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no delay: expected a number and one of s, m, h, d, as in \"1s 5s 1m 2h\"")]
pub struct InvalidLevel(pub String);

impl DelayRules {
    /// The levels in the words of `messageDelayLevel`.
    ///
    /// # Errors
    /// [`InvalidLevel`] for the first word that is none, and for none at all.
    pub fn levels_ms(text: &str) -> Result<Vec<i64>, InvalidLevel> {
        let levels: Result<Vec<_>, _> = text.split_ascii_whitespace().map(level_ms).collect();
        levels.and_then(|levels| {
            if levels.is_empty() { Err(InvalidLevel(text.to_owned())) } else { Ok(levels) }
        })
    }

    /// How long a level from 1 on waits.
    #[must_use]
    pub fn level_ms(&self, level: i32) -> i64 {
        let place = usize::try_from(level.max(1)).unwrap_or(1) - 1;
        let last = self.levels_ms.last();
        self.levels_ms.get(place).or(last).copied().unwrap_or(PRECISION_MS)
    }
}

fn level_ms(word: &str) -> Result<i64, InvalidLevel> {
    let invalid = || InvalidLevel(word.to_owned());
    let unit_ms = match word.as_bytes().last() {
        Some(b's') => 1_000,
        Some(b'm') => 60_000,
        Some(b'h') => 3_600_000,
        Some(b'd') => 86_400_000,
        _ => return Err(invalid()),
    };
    let number = word.get(..word.len() - 1).and_then(|number| number.parse::<i64>().ok());
    let number = number.filter(|number| *number >= 0).ok_or_else(invalid)?;
    number.checked_mul(unit_ms).ok_or_else(invalid)
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Level(i32),
    Time {
        /// `TIMER_OUT_MS`.
        out_ms: i64,
        /// When the send came.
        sent_ms: i64,
    },
}

/// A message that is to be delivered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When, milliseconds since 1970.
    pub due_ms: i64,
    asked: Asked,
}

/// Why a delay is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DelayError {
    /// The text is the original's.
    #[error(
        "timer message illegal, the delay time should not be bigger than the max delay {0}ms; or if \
         set del msg, the delay time should be bigger than the current time"
    )]
    Illegal(i64),
    /// `timerWheelEnable` is off. The text is the original's.
    #[error("accurate timer message is not enabled, timerWheelEnable is false")]
    Disabled,
    /// No level. The original answers what its parser says.
    #[error("For input string: \"{0}\"")]
    Level(String),
}

impl Delay {
    /// What a send's properties ask for; `None`: to be delivered now.
    ///
    /// # Errors
    /// See [`DelayError`].
    pub fn of(
        properties: Properties<'_>,
        now_ms: i64,
        rules: &DelayRules,
    ) -> Result<Option<Self>, DelayError> {
        let level = match properties.get(DELAY) {
            Some(text) => text.parse::<i32>().map_err(|_| DelayError::Level(text.to_owned()))?,
            None => 0,
        };
        if level > 0 {
            return Ok(Some(Self::by_level(level, now_ms, rules)));
        }
        if properties.get(TIMER_OUT_MS).is_some() {
            return Ok(None);
        }
        let after = |text: &str, unit_ms: i64| {
            let delay = text.parse::<i64>().ok()?.checked_mul(unit_ms)?;
            now_ms.checked_add(delay)
        };
        let due_ms = if let Some(seconds) = properties.get(TIMER_DELAY_SEC) {
            after(seconds, 1_000)
        } else if let Some(ms) = properties.get(TIMER_DELAY_MS) {
            after(ms, 1)
        } else if let Some(time) = properties.get(TIMER_DELIVER_MS) {
            time.parse().ok()
        } else {
            return Ok(None);
        };
        if !rules.timers {
            return Err(DelayError::Disabled);
        }
        let illegal = DelayError::Illegal(rules.max_delay_ms);
        let due_ms = due_ms.ok_or_else(|| illegal.clone())?;
        if due_ms <= now_ms {
            return Ok(None);
        }
        if due_ms.saturating_sub(now_ms) > rules.max_delay_ms {
            return Err(illegal);
        }
        let out_ms = (due_ms - 1).div_euclid(PRECISION_MS) * PRECISION_MS;
        Ok(Some(Self { due_ms, asked: Asked::Time { out_ms, sent_ms: now_ms } }))
    }

    /// The delay of a level from 1 on.
    #[must_use]
    pub fn by_level(level: i32, now_ms: i64, rules: &DelayRules) -> Self {
        let due_ms = now_ms.saturating_add(rules.level_ms(level));
        Self { due_ms, asked: Asked::Level(level) }
    }

    /// The time in a recall handle; levels have none.
    #[must_use]
    pub fn recall_ms(self) -> Option<i64> {
        match self.asked {
            Asked::Level(_) => None,
            // "Consider of floor", as the original says.
            Asked::Time { out_ms, .. } => Some(out_ms.saturating_add(1)),
        }
    }

    /// Whether a property that the producer sent is still there when the message is delivered.
    #[must_use]
    pub fn keeps(self, name: &str) -> bool {
        match self.asked {
            Asked::Level(_) => !matches!(name, TIMER_DELIVER_MS | TIMER_DELAY_SEC | TIMER_DELAY_MS),
            Asked::Time { .. } => !matches!(name, TIMER_OUT_MS | TIMER_ENQUEUE_MS),
        }
    }

    /// The properties that the message has besides when it is delivered.
    #[must_use]
    pub fn added(self, topic: &str, queue_id: i32) -> Vec<(&'static str, String)> {
        let mut added = vec![(REAL_TOPIC, topic.to_owned()), (REAL_QUEUE, queue_id.to_string())];
        if let Asked::Time { out_ms, sent_ms } = self.asked {
            added.push((TIMER_OUT_MS, out_ms.to_string()));
            added.push((TIMER_ENQUEUE_MS, sent_ms.to_string()));
        }
        added
    }
}

/// When messages may be due that a recall handle of this time stands for: from, inclusive, to,
/// exclusive.
#[must_use]
pub fn recalled_range(handle_ms: i64) -> (i64, i64) {
    (handle_ms, handle_ms.saturating_add(PRECISION_MS))
}

#[cfg(test)]
mod tests;
