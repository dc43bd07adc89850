//! Appending: what is admitted, numbered, written in one go, and made visible.
//!
//! A batch goes through admission (sequence, epoch), gets its offsets, and waits in a group; the
//! group is written with one call, then indexed, then published. A batch that is refused leaves the
//! others alone. A write that fails takes the whole group back.

use std::io::IoSlice;

use bytes::Bytes;

use super::marker::{Marker, aborted, marker_of};
use super::outcome::{AppendBatch, AppendOrigin, Appended, Novelty};
use super::roll::GroupSoFar;
use super::tail::ChunksChanged;
use super::verification::{TxnEpochs, Verified};
use super::{Log, LogError};
use crate::ids::{LeaderEpoch, Offset};
use crate::producers::{CompletedTxn, SavedProducer, SentBatch};
use crate::record::batch::{NO_TIMESTAMP, assign_offset};
use crate::record::{BatchHeader, TimestampType};
use crate::storage::disk::DiskErrorKind;

/// Batches that wait to be written together to the active segment.
#[derive(Debug)]
struct Group {
    batches: Vec<Staged>,
    bytes: u64,
    saved: Vec<SavedProducer>,
    /// The answers that fall with this group: of its batches, and of duplicates of them.
    answers: Vec<usize>,
    end_offset: i64,
}

#[derive(Debug)]
struct Staged {
    bytes: Bytes,
    header: BatchHeader,
    completed: Option<CompletedTxn>,
}

/// What admission says of a batch.
enum Admitted {
    New(Option<Marker>),
    Duplicate(SentBatch),
}

impl Group {
    const fn starting_at(end_offset: i64) -> Self {
        Self { batches: Vec::new(), bytes: 0, saved: Vec::new(), answers: Vec::new(), end_offset }
    }
}

impl Log {
    /// Appends as leader: gives each batch its offsets and `leader_epoch`, checks its producer, and
    /// writes all of them with one call as far as they fit one segment.
    ///
    /// Answers in the order of `batches`; a refused one does not disturb the others. Nothing is
    /// synced: see [`Self::flush_point`]. Errors: those of the producer (`OutOfOrderSequence`,
    /// `InvalidProducerEpoch`, `InvalidTxnState`, `UnverifiedTxn`, `CoordinatorFenced`), `FencedLeaderEpoch`,
    /// `InvalidBatch`, `BatchLargerThanSegment`, `StorageFull`, `OutOfFiles`, `Storage`, `Closed`.
    pub fn append_as_leader(
        &mut self,
        batches: Vec<AppendBatch>,
        leader_epoch: LeaderEpoch,
        now_ms: i64,
    ) -> Vec<Result<Appended, LogError>> {
        let mut failed = self.check_writable().and_then(|()| self.check_epoch(leader_epoch)).err();
        let mut answers: Vec<Result<Appended, LogError>> = Vec::with_capacity(batches.len());
        let mut group = Group::starting_at(self.log_end);
        for batch in batches {
            let answer = match &failed {
                Some(failed) => Err(failed.clone()),
                None => self.stage(batch, leader_epoch, &mut group, &mut answers, now_ms),
            };
            if let Err(
                error @ (LogError::Storage(_) | LogError::StorageFull(_) | LogError::OutOfFiles(_)),
            ) = &answer
            {
                failed = Some(error.clone());
            }
            answers.push(answer);
        }
        _ = self.write(&mut group, &mut answers, now_ms);
        answers
    }

    /// Appends what a leader sent, with the offsets and epochs that it gave: whole batches with a
    /// right CRC, one per item. Answers the log end. When a write fails, what comes before it stays.
    ///
    /// Errors: `UnexpectedAppendOffset` when a batch does not follow the log end, `InvalidBatch`,
    /// `StorageFull`, `Storage`, `Closed`.
    pub fn append_as_follower(
        &mut self,
        batches: Vec<Bytes>,
        now_ms: i64,
    ) -> Result<i64, LogError> {
        self.check_writable()?;
        let mut expected = self.log_end;
        let mut checked = Vec::with_capacity(batches.len());
        for bytes in batches {
            let header = whole_batch(&bytes)?;
            let offset = header.base_offset;
            if offset < expected {
                return Err(LogError::UnexpectedAppendOffset { offset, expected });
            }
            expected = header.next_offset();
            let marker = if header.is_control() { marker_of(&bytes)? } else { None };
            checked.push((bytes, header, marker));
        }
        let mut group = Group::starting_at(self.log_end);
        for (bytes, header, marker) in checked {
            self.make_room(&header, &mut group, &mut [], now_ms)?;
            self.add(bytes, header, marker, &mut group);
        }
        self.write(&mut group, &mut [], now_ms)?;
        Ok(self.log_end)
    }

    fn check_epoch(&self, leader_epoch: LeaderEpoch) -> Result<(), LogError> {
        match self.epochs.latest() {
            Some(latest) if latest.epoch > leader_epoch => Err(LogError::FencedLeaderEpoch {
                incoming: leader_epoch.0,
                current: latest.epoch.0,
            }),
            _ => Ok(()),
        }
    }

    /// Admits one batch into the group, writing the group and rolling first when it has no room.
    fn stage(
        &mut self,
        batch: AppendBatch,
        leader_epoch: LeaderEpoch,
        group: &mut Group,
        answers: &mut [Result<Appended, LogError>],
        now_ms: i64,
    ) -> Result<Appended, LogError> {
        let AppendBatch { mut bytes, origin } = batch;
        let mut header = whole_batch(&bytes)?;
        let size = bytes.len();
        if size as u64 > u64::from(self.config.segment_bytes) {
            let maximum = self.config.segment_bytes;
            return Err(LogError::BatchLargerThanSegment { size, maximum });
        }
        let marker = match self.admit(&bytes, &header, origin, group.end_offset)? {
            Admitted::New(marker) => marker,
            Admitted::Duplicate(sent) => {
                if sent.first_offset() >= self.log_end {
                    group.answers.push(answers.len());
                }
                return Ok(self.duplicate(sent));
            }
        };
        self.make_room(&header, group, answers, now_ms)?;
        assign_offset(&mut bytes, group.end_offset, leader_epoch)?;
        header.base_offset = group.end_offset;
        header.partition_leader_epoch = leader_epoch;
        group.answers.push(answers.len());
        self.add(bytes.freeze(), header, marker, group);
        let append_time_ms = match header.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            TimestampType::CreateTime => NO_TIMESTAMP,
        };
        Ok(Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            append_time_ms,
            log_start_offset: self.log_start,
            novelty: Novelty::New,
        })
    }

    fn admit(
        &self,
        bytes: &[u8],
        header: &BatchHeader,
        origin: AppendOrigin,
        offset: i64,
    ) -> Result<Admitted, LogError> {
        match (origin, header.is_control()) {
            (
                AppendOrigin::Client
                | AppendOrigin::ClientInTransaction(_)
                | AppendOrigin::Delivery,
                true,
            ) => Err(LogError::InvalidBatch("only coordinators write control batches".to_owned())),
            (AppendOrigin::Delivery, false) => {
                let known = self.producers.admit_delivery(header, offset)?;
                Ok(known.map_or(Admitted::New(None), Admitted::Duplicate))
            }
            (AppendOrigin::Client, false) if header.has_producer_id() => {
                self.admit_client(header, Verified::Unasked, offset)
            }
            (AppendOrigin::ClientInTransaction(verified), false) if header.has_producer_id() => {
                self.admit_client(header, verified, offset)
            }
            (AppendOrigin::CoordinatorInTransaction(verified), false) => {
                self.verifications.check(&self.producers, header, verified, offset)?;
                self.producers.admit_epoch(header)?;
                Ok(Admitted::New(None))
            }
            (AppendOrigin::CoordinatorRaisingEpoch, true) => {
                self.admit_marker(bytes, header, TxnEpochs::Rise)
            }
            (AppendOrigin::Coordinator | AppendOrigin::CoordinatorInTransaction(_), true) => {
                self.admit_marker(bytes, header, TxnEpochs::Stay)
            }
            (
                AppendOrigin::Client
                | AppendOrigin::ClientInTransaction(_)
                | AppendOrigin::Coordinator
                | AppendOrigin::CoordinatorRaisingEpoch,
                false,
            ) => Ok(Admitted::New(None)),
        }
    }

    fn admit_client(
        &self,
        header: &BatchHeader,
        verified: Verified,
        offset: i64,
    ) -> Result<Admitted, LogError> {
        if header.producer_id.is_of_delivery() {
            let producer_id = header.producer_id;
            return Err(LogError::InvalidBatch(format!(
                "producer id {producer_id} is one of those that no client is given"
            )));
        }
        // A repeated batch is answered whatever has become of its transaction.
        if let Some(sent) = self.producers.duplicate(header) {
            return Ok(Admitted::Duplicate(sent));
        }
        if header.is_transactional() {
            self.verifications.check(&self.producers, header, verified, offset)?;
        }
        self.producers.admit(header, offset)?;
        Ok(Admitted::New(None))
    }

    fn admit_marker(
        &self,
        bytes: &[u8],
        header: &BatchHeader,
        epochs: TxnEpochs,
    ) -> Result<Admitted, LogError> {
        let marker = marker_of(bytes)?;
        if let Some(Marker { marker, .. }) = &marker {
            self.producers.admit_marker(header, marker, epochs)?;
        }
        Ok(Admitted::New(marker))
    }

    fn duplicate(&self, sent: SentBatch) -> Appended {
        Appended {
            base_offset: sent.first_offset(),
            last_offset: sent.last_offset,
            append_time_ms: sent.timestamp,
            log_start_offset: self.log_start,
            novelty: Novelty::Duplicate,
        }
    }

    /// Writes the group and rolls when the next batch would not fit the active segment.
    fn make_room(
        &mut self,
        next: &BatchHeader,
        group: &mut Group,
        answers: &mut [Result<Appended, LogError>],
        now_ms: i64,
    ) -> Result<(), LogError> {
        let end_offset = group.end_offset;
        let first_timestamp = group.batches.first().map(|staged| staged.header.max_timestamp);
        let before = GroupSoFar { bytes: group.bytes, first_timestamp };
        if !self.must_roll(next, end_offset, before, now_ms) {
            return Ok(());
        }
        self.write(group, answers, now_ms)?;
        // A follower's batch may leave a gap before it; the segment starts with the batch then.
        self.roll_to(next.base_offset.max(end_offset), now_ms)
    }

    fn add(
        &mut self,
        bytes: Bytes,
        header: BatchHeader,
        marker: Option<Marker>,
        group: &mut Group,
    ) {
        if header.has_producer_id() {
            group.saved.push(self.producers.save(header.producer_id.0));
        }
        if header.is_transactional() {
            self.verifications.appended(header.producer_id.0);
            self.transactions_changed += 1;
        }
        let completed = match marker {
            Some(Marker { marker, timestamp }) => {
                self.producers.append_marker(&header, &marker, timestamp)
            }
            None => {
                self.producers.append(&header);
                None
            }
        };
        group.bytes += bytes.len() as u64;
        group.end_offset = header.next_offset();
        group.batches.push(Staged { bytes, header, completed });
    }

    /// Writes the group and publishes it; empties it. On an error the log is as it was before the
    /// group, and so are the answers that stand for it.
    fn write(
        &mut self,
        group: &mut Group,
        answers: &mut [Result<Appended, LogError>],
        now_ms: i64,
    ) -> Result<(), LogError> {
        if group.batches.is_empty() {
            return Ok(());
        }
        let position = self.active.size();
        let pieces: Vec<IoSlice<'_>> =
            group.batches.iter().map(|staged| IoSlice::new(&staged.bytes)).collect();
        if let Err(error) = self.active.segment.log.write_at(position, &pieces) {
            // What was written of it lies behind the published end, but a later restart would find
            // it; and a half batch must not stay where the next write fails too.
            if error.kind != DiskErrorKind::OutOfFiles
                && let Err(error) = self.active.segment.log.truncate(position)
            {
                self.fail(&error);
            }
            let error = LogError::from(error);
            for answer in group.answers.drain(..) {
                if let Some(answer) = answers.get_mut(answer) {
                    *answer = Err(error.clone());
                }
            }
            self.give_up(group);
            return Err(error);
        }
        self.take_in(group, position, now_ms);
        Ok(())
    }

    /// Undoes what the group did to the producers.
    fn give_up(&mut self, group: &mut Group) {
        let saved = std::mem::take(&mut group.saved);
        self.producers.take_back(saved, self.log_end);
        self.transactions_changed += 1;
        *group = Group::starting_at(self.log_end);
    }

    /// Indexes and publishes batches that are in the file.
    fn take_in(&mut self, group: &mut Group, mut position: u64, now_ms: i64) {
        let end_offset = group.end_offset;
        let group = std::mem::replace(group, Group::starting_at(end_offset));
        if self.first_unflushed_ms.is_none() {
            self.first_unflushed_ms = Some(now_ms);
        }
        let (mut chunks_changed, mut epochs_changed) = (ChunksChanged::No, false);
        for Staged { bytes, header, completed } in group.batches {
            self.active.observe(&header, position, now_ms);
            position += bytes.len() as u64;
            if let Some(txn) = completed.as_ref().and_then(aborted) {
                self.active.observe_aborted(txn);
            }
            epochs_changed |=
                self.epochs.assign(header.partition_leader_epoch, Offset(header.base_offset));
            let max_bytes = self.config.tail_cache_bytes;
            if self.tail.push(&header, bytes, max_bytes) == ChunksChanged::Yes {
                chunks_changed = ChunksChanged::Yes;
            }
        }
        self.active.segment.set_size(position);
        self.log_end = end_offset;
        if epochs_changed {
            self.epochs_changed += 1;
        }
        match chunks_changed {
            _ if epochs_changed => self.publish(),
            ChunksChanged::Yes => self.publish_tail(),
            ChunksChanged::No => self.shared.publish_log_end(end_offset),
        }
        if self.active.has_many_pending() {
            // They stay pending when this fails; the log itself is written.
            _ = self.active.write_indexes(&*self.disk);
        }
    }
}

/// The header of bytes that are exactly one batch.
fn whole_batch(bytes: &[u8]) -> Result<BatchHeader, LogError> {
    let header = BatchHeader::parse(bytes)?;
    if header.size_in_bytes() != bytes.len() || header.last_offset_delta < 0 {
        let (size, len) = (header.size_in_bytes(), bytes.len());
        return Err(LogError::InvalidBatch(format!("{size} bytes by its header, {len} given")));
    }
    Ok(header)
}
