//! The only source of chance: the same seed, the same answers.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream that depends on nothing but `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` (exclusive, above 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// A number from `from` to `to`, both inclusive.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        let span = to.saturating_sub(from).saturating_add(1).max(1);
        from.saturating_add(i64::try_from(self.below(span.unsigned_abs())).unwrap_or(0))
    }

    /// Whether something happens that does so `per_mille` times in a thousand.
    pub fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of them; `None` of none.
    pub fn choose<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let index = usize::try_from(self.below(all.len() as u64)).unwrap_or(0);
        all.get(index).copied()
    }
}
