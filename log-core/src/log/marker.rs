//! Transaction markers among the batches of a log.

use bytes::Bytes;

use super::{AbortedTxn, LogError};
use crate::producers::{CompletedTxn, Producers};
use crate::record::{Batch, BatchHeader, EndTransactionMarker, TransactionOutcome};

/// A marker and the time of its record in ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marker {
    pub(super) marker: EndTransactionMarker,
    pub(super) timestamp: i64,
}

/// The marker in a control batch; `None` for another kind of control record.
pub(super) fn marker_of(bytes: &[u8]) -> Result<Option<Marker>, LogError> {
    let batch = Batch::parse(bytes)?;
    let Some(record) = batch.records().and_then(|mut records| records.next()) else {
        return Err(LogError::InvalidBatch("control batch without a record".to_owned()));
    };
    let record = record?;
    let timestamp = record.timestamp;
    Ok(EndTransactionMarker::parse(&record)?.map(|marker| Marker { marker, timestamp }))
}

/// What the transaction index says of a transaction that was aborted; `None` for a committed one.
pub(super) fn aborted(txn: &CompletedTxn) -> Option<AbortedTxn> {
    (txn.outcome == TransactionOutcome::Abort).then_some(AbortedTxn {
        producer_id: txn.producer_id,
        first_offset: txn.first_offset,
        last_offset: txn.last_offset,
        last_stable_offset: txn.last_stable_offset,
    })
}

/// Takes a stored batch into the producers; a transaction that it aborts.
///
/// A control record that cannot be read is passed over, as Kafka does with a type that it does not
/// know: the log must open.
pub(super) fn replay(
    producers: &mut Producers,
    header: &BatchHeader,
    bytes: &Bytes,
) -> Option<AbortedTxn> {
    if header.is_control()
        && let Ok(Some(Marker { marker, timestamp })) = marker_of(bytes)
    {
        let completed = producers.append_marker(header, &marker, timestamp);
        return completed.as_ref().and_then(aborted);
    }
    producers.append(header);
    None
}
