//! Many offsets in few bytes.

use std::ops::Range;

/// Offsets: a bit for each from `first` on, beginning with the lowest of the first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetSet {
    /// The offset of the first bit.
    pub first: i64,
    /// The bits; they come from outside, so there may be millions.
    pub bits: Vec<u8>,
}

impl OffsetSet {
    /// One offset alone.
    #[must_use]
    pub fn one(offset: i64) -> Self {
        Self { first: offset, bits: vec![1] }
    }

    /// No other offset is in it.
    #[must_use]
    pub fn range(&self) -> Range<i64> {
        let bits = i64::try_from(self.bits.len().saturating_mul(8)).unwrap_or(i64::MAX);
        self.first..self.first.saturating_add(bits)
    }

    /// Whether this one is in it.
    #[must_use]
    pub fn contains(&self, offset: i64) -> bool {
        let place = offset.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        place.is_some_and(|place| {
            self.bits.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
        })
    }

    /// All of them, rising.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let bytes = self.bits.iter().enumerate();
        let set = bytes.flat_map(|(place, byte)| {
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * place + bit)
        });
        set.filter_map(|bit| self.first.checked_add(i64::try_from(bit).ok()?))
    }
}
