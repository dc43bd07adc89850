//! Messages on their way out of a coordinator's log into the partitions that they are meant for:
//! each of them once, whatever stops in between.
//!
//! ```text
//! stored ── a note names it ──▶ noted ── appended to its target ──▶ there ── done ──▶ forgotten
//! ```
//! 1. The machine decides that messages of its log go to a target, in this order, and its log has a
//!    [`DeliveryRecord::Note`] of that. A note is followed once it is on disk.
//! 2. Who drives the machine appends them to the target, each at the position that the note's own
//!    offset gives it (`duolog_log_core::producers::DeliveryPosition`). What a run before has
//!    appended is known there by its position and is passed over.
//! 3. Once the target has them on disk, a [`DeliveryRecord::Done`] says so.
//!
//! A stop anywhere repeats the open notes from step 2 on. No marker is written to the target, and no
//! offset there is left out. Notes of one target are followed in their order.

pub(crate) mod refusals;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::{Offset, TopicPartition};
use duolog_log_core::producers::DeliveryPosition;

use crate::shard::Shard;

pub use crate::record::delivery::{DeliveryRecord, Note, Noted};

/// Messages of one note, at most.
pub const NOTED_MAX: usize = DeliveryPosition::MESSAGES_MAX;

/// A note whose messages may not all be in their target yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenNote {
    /// Where it stands in the machine's log.
    pub at: Offset,
    /// The messages, in the order in which they are to stand in the target.
    pub messages: Arc<[Noted]>,
}

impl OpenNote {
    /// The first offset of the log that it needs: a message, or itself.
    fn first_needed(&self) -> Offset {
        self.messages.iter().map(|noted| noted.offset).fold(self.at, Offset::min)
    }
}

/// The notes of one log that are not done; the durable half of a machine that delivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// No target is without.
    open: BTreeMap<TopicPartition, Way>,
    /// What each note needs first, and where it stands.
    needed: BTreeSet<(Offset, Offset)>,
    message_count: usize,
}

/// What is open for one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Way {
    /// In order of `at`.
    notes: VecDeque<OpenNote>,
    message_count: usize,
}

impl Deliveries {
    /// Applies a record that stands in the log at `at`.
    pub fn replay(&mut self, record: DeliveryRecord, at: Offset) {
        match record {
            DeliveryRecord::Note(Note { target, messages }) => {
                let note = OpenNote { at, messages: messages.into() };
                let count = note.messages.len();
                self.needed.insert((note.first_needed(), at));
                self.message_count += count;
                let way = self.open.entry(target).or_default();
                way.message_count += count;
                way.notes.push_back(note);
            }
            DeliveryRecord::Done { target, through } => {
                let Some(way) = self.open.get_mut(&target) else { return };
                while let Some(note) = way.notes.pop_front_if(|note| note.at <= through) {
                    self.needed.remove(&(note.first_needed(), note.at));
                    self.message_count -= note.messages.len();
                    way.message_count -= note.messages.len();
                }
                if way.notes.is_empty() {
                    self.open.remove(&target);
                }
            }
        }
    }

    /// The notes for `target` behind the one at `after`, the first ones up to `count`.
    #[must_use]
    pub fn open(&self, target: &TopicPartition, after: Offset, count: usize) -> Vec<OpenNote> {
        let Some(Way { notes, .. }) = self.open.get(target) else { return Vec::new() };
        // Many may wait before it for their target to be on disk.
        let first = notes.partition_point(|note| note.at <= after);
        notes.range(first..).take(count).cloned().collect()
    }

    /// Where something is to be delivered.
    pub fn targets(&self) -> impl Iterator<Item = &TopicPartition> {
        self.open.keys()
    }

    /// Messages in open notes.
    #[must_use]
    pub fn message_count(&self) -> usize {
        self.message_count
    }

    /// Those for one target.
    #[must_use]
    pub fn message_count_for(&self, target: &TopicPartition) -> usize {
        self.open.get(target).map_or(0, |way| way.message_count)
    }

    /// What says that all notes for `target` up to `through`, inclusive, are done; `None` if that
    /// has been said.
    #[must_use]
    pub fn done(&self, target: &TopicPartition, through: Offset) -> Option<DeliveryRecord> {
        let first = self.open.get(target)?.notes.front()?;
        let target = target.clone();
        (first.at <= through).then_some(DeliveryRecord::Done { target, through })
    }

    /// The first offset of the log that an open note needs: a message, or the note itself.
    #[must_use]
    pub fn first_needed(&self) -> Option<Offset> {
        self.needed.first().map(|(first, _)| *first)
    }
}

/// A message as it goes into its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// CreateTime, milliseconds since 1970.
    pub timestamp_ms: i64,
    /// What `duolog_log_core::record::NewRecord::encode_payload` writes.
    pub payload: Bytes,
}

/// A machine that delivers messages of its log.
///
/// When the log has a note, the machine tells its driver the target by a notice, and so it does for
/// each of [`Deliveries::targets`] when it was loaded.
pub trait Delivers: Shard {
    /// What is on its way.
    fn deliveries(&self) -> &Deliveries;

    /// The event that all notes for `target` up to `through`, inclusive, are done: the messages are
    /// in the target and on disk, or can never be.
    fn done(target: TopicPartition, through: Offset) -> Self::Event;

    /// The message in a record of the log; `None` if it holds none.
    fn message(key: &[u8], value: &[u8]) -> Option<StoredMessage>;
}

#[cfg(test)]
mod tests;
