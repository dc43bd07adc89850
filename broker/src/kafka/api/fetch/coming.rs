//! What comes for a fetch that waits: counted, and kept by nobody. Each batch is looked at once, however many appends wake
//! the fetch before there is enough. Source: DelayedFetch.tryComplete.

use duolog_log_core::log::{LogError, LogReader, ReadMinimum};

use super::read::{Bounds, Found, Source, Wanted, find};

/// Bytes looked at in one go, or one batch that is larger.
const LOOKED_AT_BYTES: usize = 1024 * 1024;

/// What has come for each partition that is wanted, by its place.
#[derive(Debug)]
pub(super) struct Coming(Vec<Counted>);

/// What one partition has behind the offset that is asked for.
#[derive(Debug)]
struct Counted {
    next_offset: i64,
    bytes: i64,
    /// So much is asked for at most.
    bytes_max: i64,
}

impl Coming {
    /// Nothing has.
    pub(super) fn nothing(wanted: &[Wanted<'_>]) -> Self {
        let counted = |wanted: &Wanted<'_>| Counted {
            next_offset: wanted.ask.fetch_offset,
            bytes: 0,
            bytes_max: i64::from(wanted.ask.max_bytes),
        };
        Self(wanted.iter().map(counted).collect())
    }

    /// Counts on; whether there are `min_bytes`, or something else to be told.
    pub(super) fn is_enough(
        &mut self,
        bounds: &Bounds,
        min_bytes: i64,
        wanted: &[Wanted<'_>],
    ) -> bool {
        let mut bytes = 0_i64;
        for (wanted, counted) in wanted.iter().zip(&mut self.0) {
            let Source::Partition(partition) = &wanted.source else { continue };
            match find(wanted.ask, partition, bounds.isolation) {
                Ok(Found::Said(data)) if data.diverging_epoch.epoch < 0 => {}
                // Any record is enough for most: they are not read twice.
                Ok(Found::Records(reader, end, _))
                    if min_bytes > 1 && counted.go_on(&reader, end).is_ok() => {}
                // The client should hear of it at once.
                Ok(_) | Err(_) => return true,
            }
            bytes = bytes.saturating_add(counted.bytes);
        }
        bytes > 0 && bytes >= min_bytes
    }
}

impl Counted {
    fn go_on(&mut self, reader: &LogReader, end: i64) -> Result<(), LogError> {
        while self.next_offset < end && (self.bytes == 0 || self.bytes < self.bytes_max) {
            let left = usize::try_from(self.bytes_max.saturating_sub(self.bytes)).unwrap_or(0);
            let looked_at = left.min(LOOKED_AT_BYTES);
            let read = reader.read(self.next_offset, looked_at, end, ReadMinimum::OneBatch)?;
            if read.next_offset <= self.next_offset {
                break;
            }
            self.next_offset = read.next_offset;
            let bytes = i64::try_from(read.size).unwrap_or(i64::MAX);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
