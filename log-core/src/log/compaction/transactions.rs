//! Which batches belong to aborted transactions, and which markers have outlived their data.
//!
//! | marker | its transaction's data, in this run | what it is |
//! |---|---|---|
//! | abort | seen | needed: readers must know what is aborted |
//! | abort | not seen | may go |
//! | commit | seen | needed |
//! | commit | not seen | may go |
//! | any, of a batch that was emptied before | | may go |
//! | another control record | | needed |
//!
//! A marker that may go stays until its delete horizon (KIP-534). Source: CleanedTransactionMetadata.

use std::collections::{BTreeMap, BTreeSet};

use crate::log::{AbortedTxn, LogError};
use crate::record::{Batch, BatchHeader, EndTransactionMarker, TransactionOutcome};

/// Follows the transactions of a log, batch by batch in their order.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// Aborted ones that begin further on, by first offset and producer.
    coming: BTreeMap<(i64, i64), AbortedTxn>,
    aborted: BTreeMap<i64, Aborted>,
    /// Producers inside a transaction that commits, or of which nothing is known.
    others: BTreeSet<i64>,
}

#[derive(Debug)]
struct Aborted {
    txn: AbortedTxn,
    data: Data,
}

/// Whether data of a transaction was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    Seen,
    NotSeen,
}

/// What a data batch is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// No transaction, or one that was not aborted.
    Valid,
    /// An aborted transaction.
    Aborted,
}

/// What becomes of a control batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerFate {
    /// It is needed; of an aborted transaction the index entry is too.
    Needed(Option<AbortedTxn>),
    /// Nothing of its transaction is left.
    MayGo,
}

impl Transactions {
    /// Lets it know of aborted transactions before their first batch is met.
    pub(super) fn expect(&mut self, txns: Vec<AbortedTxn>) {
        for txn in txns {
            self.coming.insert((txn.first_offset, txn.producer_id), txn);
        }
    }

    /// Takes in a data batch.
    pub(super) fn data(&mut self, header: &BatchHeader) -> Fate {
        self.begin_up_to(header.last_offset());
        if !header.is_transactional() {
            return Fate::Valid;
        }
        if let Some(aborted) = self.aborted.get_mut(&header.producer_id.0) {
            aborted.data = Data::Seen;
            return Fate::Aborted;
        }
        self.others.insert(header.producer_id.0);
        Fate::Valid
    }

    /// Takes in a control batch.
    ///
    /// Errors: `InvalidBatch` for one that cannot be read.
    pub(super) fn control(&mut self, batch: &Batch<'_>) -> Result<MarkerFate, LogError> {
        let header = batch.header();
        self.begin_up_to(header.last_offset());
        let Some(record) = batch.records().and_then(|mut records| records.next()) else {
            return Ok(MarkerFate::MayGo);
        };
        let Some(marker) = EndTransactionMarker::parse(&record?)? else {
            return Ok(MarkerFate::Needed(None));
        };
        let producer_id = header.producer_id.0;
        Ok(match marker.outcome {
            TransactionOutcome::Abort => match self.aborted.remove(&producer_id) {
                Some(Aborted { txn, data: Data::Seen }) => MarkerFate::Needed(Some(txn)),
                Some(_) | None => MarkerFate::MayGo,
            },
            TransactionOutcome::Commit if self.others.remove(&producer_id) => {
                MarkerFate::Needed(None)
            }
            TransactionOutcome::Commit => MarkerFate::MayGo,
        })
    }

    fn begin_up_to(&mut self, offset: i64) {
        while let Some(next) = self.coming.first_entry().filter(|next| next.key().0 <= offset) {
            let txn = next.remove();
            let begun = Aborted { txn, data: Data::NotSeen };
            self.aborted.entry(txn.producer_id).or_insert(begun);
        }
    }
}
