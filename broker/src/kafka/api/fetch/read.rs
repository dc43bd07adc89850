//! Reading what a fetch asks for, again and again until there is enough of it.

use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::ids::LeaderEpoch;
use duolog_log_core::log::{LogError, LogReader, ReadMinimum};
use tokio::time::Instant;

use super::coming::Coming;
use crate::kafka::codec::Records;
use crate::kafka::codec::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, PartitionData,
};
use crate::kafka::errors::ErrorCode;
use crate::kafka::fetch_sessions::{Answered, Ask, Content, Told};
use crate::node::Node;
use crate::partitions::append::AppendError;
use crate::partitions::{Offsets, Partition, Registration};
use crate::server::memory::Unwritten;

/// How far a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// To the high watermark.
    ReadUncommitted,
    /// To the last stable offset.
    ReadCommitted,
}

impl Isolation {
    fn end(self, offsets: Offsets) -> i64 {
        match self {
            Self::ReadUncommitted => offsets.high_watermark,
            Self::ReadCommitted => offsets.last_stable,
        }
    }
}

/// The bounds of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) max_wait_ms: u64,
    pub(super) min_bytes: i32,
    pub(super) max_bytes: i32,
    pub(super) isolation: Isolation,
}

/// Where a partition is read.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Partition(Arc<Partition>),
    /// It is not known here; whoever asks for others too may wait for them.
    Unknown(ErrorCode),
    /// It cannot be read, which the client should hear of at once.
    Failed(ErrorCode),
}

impl Source {
    /// As a replica sees it that no partition has here.
    pub(super) fn not_led(self) -> Self {
        match self {
            Self::Partition(_) | Self::Failed(_) => Self::Failed(ErrorCode::NotLeaderOrFollower),
            Self::Unknown(code) => Self::Unknown(code),
        }
    }
}

/// One partition of a fetch.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) ask: &'a Ask,
    /// What the client was told before, if it wants news only.
    pub(super) told: Option<Told>,
    pub(super) source: Source,
}

impl Wanted<'_> {
    fn is_answered_with(&self, data: &PartitionData) -> bool {
        self.told.is_none_or(|told| answered(data).is_news(told))
    }
}

/// What one look at all partitions gave.
pub(super) struct Look {
    /// By place among those that are wanted: those that were read, then the unknown ones.
    pub(super) answers: Vec<(usize, PartitionData)>,
    bytes: i64,
    /// Something that the client should hear of at once.
    urgent: bool,
    /// Its records in the node's memory, from before they were read.
    _counted: Unwritten,
}

/// Looks again and again until there is enough, something to tell, or no more time.
pub(super) async fn look_until_enough(node: &Node, bounds: &Bounds, wanted: &[Wanted<'_>]) -> Look {
    let first = look(node, bounds, wanted);
    let enough = |look: &Look| look.urgent || look.bytes >= i64::from(bounds.min_bytes);
    if bounds.max_wait_ms == 0 || enough(&first) {
        return first;
    }
    drop(first);
    let deadline = Instant::now() + Duration::from_millis(bounds.max_wait_ms);
    let partitions = || {
        wanted.iter().filter_map(|wanted| match &wanted.source {
            Source::Partition(partition) => Some(partition.clone()),
            Source::Unknown(_) | Source::Failed(_) => None,
        })
    };
    let mut coming = Coming::nothing(wanted);
    loop {
        let registration = Registration::new(partitions().collect());
        if coming.is_enough(bounds, min_bytes(node, bounds), wanted) {
            let again = look(node, bounds, wanted);
            if again.urgent || again.bytes > 0 {
                return again;
            }
            // What was counted has been deleted since.
            coming = Coming::nothing(wanted);
        }
        tokio::select! {
            () = registration.moved() => {}
            () = tokio::time::sleep_until(deadline) => return look(node, bounds, wanted),
            () = node.stopping.cancelled() => return look(node, bounds, wanted),
        }
    }
}

/// How much is worth an answer: no more than there is room for.
fn min_bytes(node: &Node, bounds: &Bounds) -> i64 {
    let room = node.answers.reserve(usize::try_from(bounds.max_bytes).unwrap_or_default());
    i64::try_from(room.bytes()).unwrap_or(i64::MAX).min(i64::from(bounds.min_bytes))
}

/// Reads every partition once, within the request's bounds and the node's memory for answers.
fn look(node: &Node, bounds: &Bounds, wanted: &[Wanted<'_>]) -> Look {
    let counted = node.answers.reserve(usize::try_from(bounds.max_bytes).unwrap_or_default());
    let room = i64::try_from(counted.bytes()).unwrap_or(i64::MAX);
    let (mut answers, mut bytes_read) = (Vec::new(), 0_i64);
    let mut unknown = Vec::new();
    let mut left = room;
    let mut all_unknown = true;
    let mut urgent = false;
    for (index, wanted) in wanted.iter().enumerate() {
        // The first partition with data gives one whole batch however large (KIP-74, case B09).
        let minimum = if bytes_read == 0 { ReadMinimum::OneBatch } else { ReadMinimum::Nothing };
        let limit = i64::from(wanted.ask.max_bytes).min(left).max(0);
        let limit = usize::try_from(limit).unwrap_or_default();
        let answer = match &wanted.source {
            Source::Partition(partition) => {
                read(wanted.ask, partition, bounds.isolation, limit, minimum)
            }
            Source::Failed(code) => Err(*code),
            Source::Unknown(code) => {
                unknown.push((index, refused(wanted.ask, *code)));
                continue;
            }
        };
        all_unknown = false;
        let answer = answer.unwrap_or_else(|code| PartitionData {
            aborted_transactions: None,
            ..refused(wanted.ask, code)
        });
        let bytes = answer.records.as_ref().map_or(0, Records::len);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        bytes_read = bytes_read.saturating_add(bytes);
        left = left.saturating_sub(bytes);
        urgent |= answer.error_code != 0 || answer.diverging_epoch.epoch >= 0;
        if wanted.is_answered_with(&answer) {
            answers.push((index, answer));
        }
    }
    answers.append(&mut unknown);
    // There is nothing to wait for where nothing is known, nor for more than there is room for.
    let is_cut = bytes_read > 0 && room < i64::from(bounds.min_bytes);
    Look {
        answers,
        bytes: bytes_read,
        urgent: urgent || all_unknown || is_cut,
        _counted: counted.became(usize::try_from(bytes_read).unwrap_or_default()),
    }
}

/// What a partition has for a reader at one moment.
pub(super) enum Found {
    /// No records: all that there is to say.
    Said(PartitionData),
    /// Records up to an offset, exclusive, and what is said beside them.
    Records(Arc<LogReader>, i64, PartitionData),
}

/// Looks without reading records.
pub(super) fn find(
    ask: &Ask,
    partition: &Partition,
    isolation: Isolation,
) -> Result<Found, ErrorCode> {
    let offsets = partition.offsets();
    let mut data = PartitionData {
        partition_index: ask.key.partition,
        high_watermark: offsets.high_watermark,
        last_stable_offset: offsets.last_stable,
        log_start_offset: offsets.log_start,
        records: Some(Records::EMPTY),
        aborted_transactions: (isolation == Isolation::ReadCommitted).then(Vec::new),
        ..PartitionData::default()
    };
    if partition.is_offline() {
        return Err(ErrorCode::KafkaStorageError);
    }
    let end = isolation.end(offsets);
    let outside = ask.fetch_offset < offsets.log_start || ask.fetch_offset > offsets.log_end;
    if ask.last_fetched_epoch < 0 && !outside && ask.fetch_offset >= end {
        // Who waits for more of a deleted topic would wait in vain.
        return if partition.is_gone() {
            Err(ErrorCode::UnknownTopicOrPartition)
        } else {
            Ok(Found::Said(data))
        };
    }
    let reader = partition.open_reader();
    let reader = reader.ok_or_else(|| ErrorCode::from(&AppendError::Stopping))?;
    if let Some(diverging) = diverging(ask, partition, &reader, offsets)? {
        data.diverging_epoch = diverging;
        return Ok(Found::Said(data));
    }
    if outside {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    if ask.fetch_offset >= end {
        return Ok(Found::Said(data));
    }
    Ok(Found::Records(reader, end, data))
}

fn read(
    ask: &Ask,
    partition: &Partition,
    isolation: Isolation,
    limit: usize,
    minimum: ReadMinimum,
) -> Result<PartitionData, ErrorCode> {
    let (reader, end, mut data) = match find(ask, partition, isolation)? {
        Found::Said(data) => return Ok(data),
        Found::Records(reader, end, data) => (reader, end, data),
    };
    let refused = |error: LogError| {
        partition.tell_if_damaged(&error);
        ErrorCode::from(&error)
    };
    let (at, aborted) = (ask.fetch_offset, &mut data.aborted_transactions);
    let batches = if let Some(aborted) = aborted {
        let read = reader.read_with_aborted(at, limit, end, minimum);
        let (batches, found) = read.map_err(refused)?;
        aborted.extend(found.iter().map(|aborted| AbortedTransaction {
            producer_id: aborted.producer_id,
            first_offset: aborted.first_offset,
        }));
        batches
    } else {
        reader.read(at, limit, end, minimum).map_err(refused)?
    };
    data.records = Some(batches.pieces.into());
    Ok(data)
}

/// Where the log of a client that has read `last_fetched_epoch` parts from this one, if it does
/// (Partition.readRecords).
///
/// Errors: `OffsetOutOfRange` when nothing is known of that epoch, or what is asked for was deleted.
fn diverging(
    ask: &Ask,
    partition: &Partition,
    reader: &LogReader,
    offsets: Offsets,
) -> Result<Option<EpochEndOffset>, ErrorCode> {
    let asked = LeaderEpoch(ask.last_fetched_epoch);
    if asked <= LeaderEpoch::UNKNOWN {
        return Ok(None);
    }
    let end = partition.epoch_end(reader, asked).ok_or(ErrorCode::OffsetOutOfRange)?;
    if ask.fetch_offset < offsets.log_start {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    let diverges = end.epoch < asked || end.end_offset.0 < ask.fetch_offset;
    Ok(diverges.then_some(EpochEndOffset { epoch: end.epoch.0, end_offset: end.end_offset.0 }))
}

pub(super) fn refused(ask: &Ask, code: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index: ask.key.partition,
        error_code: code.code(),
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        records: Some(Records::EMPTY),
        ..PartitionData::default()
    }
}

/// An answer in a session's terms.
pub(super) fn answered(data: &PartitionData) -> Answered {
    let content = if data.error_code != 0 {
        Content::Error
    } else if data.records.as_ref().is_some_and(|records| !records.is_empty()) {
        Content::Records
    } else if data.diverging_epoch.epoch >= 0 {
        Content::Divergence
    } else {
        Content::Nothing
    };
    let told = Told { high_watermark: data.high_watermark, log_start: data.log_start_offset };
    Answered { told, content }
}
