//! Time as an argument.

/// The caller's clocks, read once per input.
///
/// Deadlines count on `tick_ms`, so that a stepped wall clock evicts nobody; `wall_ms` is for what
/// is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970; may jump.
    pub wall_ms: i64,
    /// Milliseconds since an origin of the caller's choice; never goes back.
    pub tick_ms: i64,
}

impl Now {
    /// `delay_ms` from now on the steady clock; a negative delay counts as none.
    #[must_use]
    pub fn after(self, delay_ms: i64) -> i64 {
        self.tick_ms.saturating_add(delay_ms.max(0))
    }
}
