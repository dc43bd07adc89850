//! Reading for RocketMQ: whole decoded batches below the LSO, without what consumers never see.

mod tag_scan;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use duolog_bridge::backend::{
    BackendError, Boundary, KeyHits, ReadAnswer, ReadRequest, Result, SharedBatch,
};
use duolog_log_core::log::{AbortedTxn, LogError, LogReader, ReadMinimum, TimeBoundary};
use duolog_log_core::record::batch::SharedBatches;
use duolog_log_core::record::{BatchHeader, DecodedBatch, Decompressor, RecordError};
use duolog_log_core::storage::keys::KeyRule;

use self::tag_scan::{Ahead, TagScan};
use super::BridgeBackend;
use super::batches::BatchCache;
use super::error::{of, of_log};
use crate::limits::{HIDDEN_BATCHES_MAX, PULL_READ_BYTES, PULL_SCAN_BYTES_MAX};
use crate::node::Node;
use crate::partitions::Partition;

/// What has been read so far.
struct Collected {
    batches: Vec<Arc<SharedBatch>>,
    next_offset: i64,
    bytes: usize,
    records: usize,
    /// Bytes of all batches seen, those with nothing for the reader among them.
    scanned: usize,
}

/// Reads from `request.offset` on until one of its bounds, or the LSO, is reached.
pub(super) async fn read(
    node: &Node,
    cache: &BatchCache,
    partition: &Arc<Partition>,
    request: &ReadRequest<'_>,
) -> Result<ReadAnswer> {
    let reader = partition.reader().await.map_err(|error| of(partition, &error))?;
    let view = BridgeBackend::view(partition);
    if request.offset < view.log_start_offset || request.offset > view.last_stable_offset {
        return Err(BackendError::OffsetOutOfRange {
            offset: request.offset,
            log_start_offset: view.log_start_offset,
            last_stable_offset: view.last_stable_offset,
        });
    }
    let end = view.last_stable_offset;
    let source = Source { node, cache, partition, reader: &reader, end };
    let mut collected = Collected::starting_at(request.offset);
    let mut scan = request.tags.map(|codes| TagScan::new(&reader, codes, end));
    let key = (partition.topic_id, partition.index);
    // Where a reader goes on in the batch it was in, nothing has to be looked for.
    if let Some(batch) = cache.find(key, collected.next_offset) {
        collected.take(batch, request);
    }
    while collected.next_offset < end && collected.has_room(request) {
        let mut bytes_max = request.bytes_max.min(PULL_READ_BYTES);
        if let Some(tags) = &mut scan {
            let ahead = tags.look_ahead(collected.next_offset).await;
            match ahead.map_err(|error| of_log(partition, &error))? {
                Ahead::Wanted { offset, is_sparse } => {
                    collected.next_offset = offset;
                    if is_sparse {
                        bytes_max = 1;
                    }
                }
                Ahead::NothingBelow(offset) if offset > collected.next_offset => {
                    collected.next_offset = offset;
                    continue;
                }
                // So much for one read.
                Ahead::NothingBelow(_) => break,
                Ahead::Unknown => scan = None,
            }
        }
        match cache.find(key, collected.next_offset) {
            Some(batch) => collected.take(batch, request),
            None => {
                if collected.scanned > 0 {
                    // Reading and decoding hold up whoever shares this thread.
                    tokio::task::yield_now().await;
                }
                match source.read_on(request, bytes_max, &mut collected).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    // What is good comes first; the request that begins there will be told.
                    Err(BackendError::CorruptBatch { .. })
                        if collected.next_offset > request.offset =>
                    {
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(ReadAnswer { batches: collected.batches, next_offset: collected.next_offset, view })
}

impl Collected {
    fn starting_at(next_offset: i64) -> Self {
        Self { batches: Vec::new(), next_offset, bytes: 0, records: 0, scanned: 0 }
    }

    fn has_room(&self, request: &ReadRequest<'_>) -> bool {
        let is_patient = self.scanned < PULL_SCAN_BYTES_MAX;
        let fits = self.records < request.records_max && self.bytes < request.bytes_max;
        is_patient && (self.batches.is_empty() || fits)
    }

    /// Adds a batch, counting what of it the reader is after.
    fn take(&mut self, batch: Arc<SharedBatch>, request: &ReadRequest<'_>) {
        let from = self.next_offset;
        let memory_bytes = batch.memory_bytes();
        let wanted = match request.tags {
            None => batch.decoded().iter_from(from).len(),
            Some(tags) => batch.tagged_from(from).filter(|(_, hash)| tags.contains(hash)).count(),
        };
        self.next_offset = batch.next_offset();
        self.scanned += memory_bytes;
        if wanted == 0 {
            return;
        }
        self.records += wanted;
        // Of a batch in which little is wanted, little leaves.
        self.bytes += memory_bytes / batch.decoded().len().max(1) * wanted;
        self.batches.push(batch);
    }
}

/// Where batches come from that are not decoded yet.
struct Source<'a> {
    node: &'a Node,
    cache: &'a BatchCache,
    partition: &'a Partition,
    reader: &'a LogReader,
    /// Exclusive.
    end: i64,
}

impl Source<'_> {
    /// Reads and decodes the next bytes of the log; returns false when there are none.
    ///
    /// All that was read is decoded and kept, also what this request has no room for: the next pull asks for it, and a
    /// decoded batch keeps the whole read in memory.
    async fn read_on(
        &self,
        request: &ReadRequest<'_>,
        bytes_max: usize,
        collected: &mut Collected,
    ) -> Result<bool> {
        let offset = collected.next_offset;
        let refused = |error| {
            self.partition.tell_if_damaged(&error);
            of_log(self.partition, &error)
        };
        let (read, aborted) = self
            .reader
            .read_with_aborted(offset, bytes_max, self.end, ReadMinimum::OneBatch)
            .map_err(refused)?;
        if read.next_offset <= offset {
            return Ok(false);
        }
        let aborted = Aborted::new(aborted);
        for piece in read.pieces {
            for batch in SharedBatches::new(piece) {
                let offset = collected.next_offset;
                let corrupt = |reason: String| refused(LogError::Corrupt { offset, reason });
                let (header, bytes) = batch.map_err(|error| corrupt(error.to_string()))?;
                let has_room = collected.has_room(request);
                if aborted.hides(&header) {
                    if has_room {
                        collected.next_offset = header.next_offset();
                        collected.scanned += header.size_in_bytes();
                    }
                    continue;
                }
                let decoded = if has_room {
                    self.node.batches.read(&bytes.clone(), decoding(bytes)).await
                } else {
                    // What is large or damaged is for the request that gets there.
                    let small = self.node.batches.read_small(&bytes.clone(), decoding(bytes));
                    let Some(Ok(decoded)) = small else { return Ok(true) };
                    Ok(decoded)
                };
                let decoded = decoded.map_err(|error| corrupt(error.to_string()))?;
                let appended = self.reader.append_time_at(header.base_offset).map_err(refused)?;
                let append_time_ms = appended.unwrap_or(header.max_timestamp);
                let batch = Arc::new(SharedBatch::new(decoded, append_time_ms));
                self.cache.put((self.partition.topic_id, self.partition.index), &batch);
                if has_room {
                    collected.take(batch, request);
                }
            }
        }
        // Offsets at the end that compaction has emptied belong to nobody.
        if collected.has_room(request) {
            collected.next_offset = collected.next_offset.max(read.next_offset);
        }
        Ok(true)
    }
}

/// Decodes a batch whose CRC fits: what clients are given has a checksum of its own, which would
/// vouch for damage.
fn decoding(
    batch: Bytes,
) -> impl Fn(&mut Decompressor, usize) -> std::result::Result<DecodedBatch, RecordError> {
    move |decompressor, limit| DecodedBatch::decode_verified(&batch, decompressor, limit)
}

/// Transactions that were aborted, as a reader meets them.
struct Aborted {
    /// By producer: first and last offset, both inclusive.
    by_producer: HashMap<i64, Vec<(i64, i64)>>,
}

impl Aborted {
    fn new(aborted: Vec<AbortedTxn>) -> Self {
        let mut by_producer: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
        for txn in aborted {
            let of_producer = by_producer.entry(txn.producer_id).or_default();
            of_producer.push((txn.first_offset, txn.last_offset));
        }
        Self { by_producer }
    }

    /// Whether a batch is nothing for consumers: a control batch, or data of an aborted transaction.
    fn hides(&self, header: &BatchHeader) -> bool {
        if header.is_control() {
            return true;
        }
        header.is_transactional()
            && self.by_producer.get(&header.producer_id.0).is_some_and(|aborted| {
                aborted.iter().any(|(first, last)| (*first..=*last).contains(&header.base_offset))
            })
    }
}

/// One past the last record below `end` that consumers see; the log start if there is none.
pub(super) async fn deliverable_end(partition: &Arc<Partition>, end: i64) -> Result<i64> {
    let reader = partition.reader().await.map_err(|error| of(partition, &error))?;
    let offsets = partition.offsets();
    let refused = |error| of_log(partition, &error);
    let mut end = end.min(offsets.last_stable);
    for _ in 0..HIDDEN_BATCHES_MAX {
        if end <= offsets.log_start {
            return Ok(offsets.log_start);
        }
        let last = end - 1;
        // The batch that holds the last offset reaches beyond it when only part of it counts.
        let read = reader.read_with_aborted(last, 1, offsets.last_stable, ReadMinimum::OneBatch);
        let (read, aborted) = read.map_err(refused)?;
        let Some(piece) = read.pieces.into_iter().next() else { return Ok(end) };
        let corrupt = |reason: String| BackendError::CorruptBatch { offset: last, reason };
        let header = BatchHeader::parse(&piece).map_err(|error| corrupt(error.to_string()))?;
        if header.base_offset > last {
            // A gap: whoever stands behind it has read all there is.
            return Ok(end);
        }
        if !Aborted::new(aborted).hides(&header) {
            return Ok(end);
        }
        end = header.base_offset;
    }
    Ok(end)
}

/// The offset for a time, by when records were appended.
pub(super) async fn search_append_time(
    partition: &Arc<Partition>,
    time_ms: i64,
    boundary: Boundary,
) -> Result<Option<i64>> {
    let reader = partition.reader().await.map_err(|error| of(partition, &error))?;
    let boundary = match boundary {
        Boundary::Lower => TimeBoundary::Lower,
        Boundary::Upper => TimeBoundary::Upper,
    };
    let found = reader.search_append_time(time_ms, boundary, partition.offsets().last_stable);
    found.map_err(|error| of_log(partition, &error))
}

/// Where records with a key may be, as far as the index of keys says. A part of it is made first.
pub(super) async fn find_key(
    partition: &Arc<Partition>,
    rule: KeyRule<'_>,
    hash: u32,
    range: Range<i64>,
) -> Result<KeyHits> {
    let reader = partition.reader().await.map_err(|error| of(partition, &error))?;
    let end = range.end.min(partition.offsets().last_stable);
    match reader.keys(hash, (range.start, end), rule) {
        Ok(hits) => Ok(hits),
        // Whoever reads the damaged batch will be told.
        Err(LogError::Corrupt { .. }) => {
            Ok(KeyHits { end_offset: range.start, ..KeyHits::default() })
        }
        Err(error) => Err(of_log(partition, &error)),
    }
}
