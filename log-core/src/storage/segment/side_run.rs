//! What the side indexes that are made as somebody asks for them have in common.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;

use super::times::SideEntries;
use super::{Indexes, Segment};
use crate::limits;
use crate::log::{LogError, TailBudget};
use crate::record::{DecodedBatch, Decompressor};
use crate::storage::names::FileKind;
use crate::storage::side_file::SideKind;
use crate::storage::walk::Located;

/// Memory of a run that counts against the node's budget.
#[derive(Debug)]
pub(super) struct HeldBytes {
    bytes: usize,
    budget: Arc<TailBudget>,
}

impl HeldBytes {
    pub(super) fn of(budget: &Arc<TailBudget>) -> Self {
        Self { bytes: 0, budget: Arc::clone(budget) }
    }

    /// Takes `bytes` more; false when the budget is used up.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let is_taken = self.budget.take(bytes);
        if is_taken {
            self.bytes += bytes;
        }
        is_taken
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

impl Segment {
    /// The file of a side index, if it speaks of the whole of this sealed segment.
    pub(super) fn whole_side(
        &self,
        file: FileKind,
        kind: SideKind,
    ) -> Result<Option<SideEntries>, LogError> {
        let Indexes::Sealed(indexes) = &self.indexes else { return Ok(None) };
        let _alone = indexes.completing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = self.side_content(file, kind)? else { return Ok(None) };
        if found.covered_from > self.base_offset || found.covered_to < self.end_offset()? {
            return Ok(None);
        }
        let len = found.entries.len();
        Ok(Some(SideEntries::Mapped { file: self.map(file)?, len }))
    }
}

/// The records of a batch that a walk came to.
pub(super) fn decode(
    batch: &Located<Bytes>,
    decompressor: &mut Decompressor,
) -> Result<DecodedBatch, LogError> {
    let limit = limits::DECOMPRESSED_BATCH_BYTES_MAX;
    let corrupt = |reason: String| LogError::Corrupt { offset: batch.header.base_offset, reason };
    DecodedBatch::decode(&batch.content, decompressor, limit)
        .map_err(|reason| corrupt(reason.to_string()))
}
