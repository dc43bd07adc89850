//! What `__share_group_state` holds: which messages of a partition a group has in hand.
//!
//! | key version | key | value, version 0 |
//! | --- | --- | --- |
//! | [`SNAPSHOT_KEY_VERSION`] | group, topic id, partition | all of a window; none: it is forgotten |
//! | [`UPDATE_KEY_VERSION`] | the same | what of it changed |
//! | [`DEAD_KEY_VERSION`] | the same, and an offset | the copy of a message for the dead letters; ours |
//! | those of [`super::delivery`] | | |
//!
//! The first two are byte for byte Kafka's `ShareSnapshot` and `ShareUpdate` of 4.3.1. What Kafka does
//! not keep (until when a message is in whose hands, how often it may be delivered, which position was
//! the window's own) stands in tagged fields of numbers [`OWN_TAG`] and [`COMMITTED_TAG`], which its
//! tools pass over. Nothing is compacted: the log's start is
//! raised behind the oldest snapshot that is needed. Layouts: docs/formats.md.
//! Source: `ShareCoordinatorRecordHelpers` and the message schemas of kafka-share-coordinator 4.3.1.

use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::reader::Reader;
use super::writer::Writer;
use super::{RecordError, TooLong};
use crate::delivery::{DeliveryRecord, StoredMessage};
use crate::limits::WINDOW_FLIGHTS_MAX;
use crate::shard::RecordBytes;

/// Key version of [`ShareRecord::Snapshot`] and [`ShareRecord::Forgotten`].
pub const SNAPSHOT_KEY_VERSION: i16 = 0;

/// Key version of [`ShareRecord::Update`].
pub const UPDATE_KEY_VERSION: i16 = 1;

/// Key version of [`ShareRecord::Dead`].
pub const DEAD_KEY_VERSION: i16 = 0x4444;

/// Number of the tagged fields that are ours: "DL".
pub const OWN_TAG: u32 = 0x444C;

/// Number of the tagged field that has the window's committed start: "DM".
pub const COMMITTED_TAG: u32 = 0x444D;

const VALUE_VERSION: i16 = 0;

/// Two offsets, a state, a count, and no tagged field.
const BATCH_BYTES_MIN: usize = 20;

/// A group's share of a partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharePartition {
    /// The group.
    pub group: Arc<str>,
    /// The topic.
    pub topic: TopicId,
    /// 0-based.
    pub partition: i32,
}

/// What became of messages, with the numbers that Kafka gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be delivered, or delivered and not settled.
    Available,
    /// Done.
    Acknowledged,
    /// Passed over, or given up.
    Archived,
}

impl DeliveryState {
    fn number(self) -> u8 {
        match self {
            Self::Available => 0,
            Self::Acknowledged => 2,
            Self::Archived => 4,
        }
    }

    fn of(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Available),
            2 => Some(Self::Acknowledged),
            4 => Some(Self::Archived),
            _ => None,
        }
    }
}

/// A message is in somebody's hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// From then on it is to be delivered again, milliseconds since 1970.
    pub until_ms: i64,
    /// When it was delivered, which names this delivery among others of the same message.
    pub popped_ms: i64,
}

/// Neighbours with one fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBatch {
    /// First offset; inclusive.
    pub first: i64,
    /// Last offset; inclusive.
    pub last: i64,
    /// What became of them.
    pub state: DeliveryState,
    /// How often they were delivered.
    pub deliveries: u16,
    /// Of available ones that were delivered.
    pub lease: Option<Lease>,
}

/// A durable fact about messages in hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareRecord {
    /// All of a window.
    Snapshot {
        /// Whose.
        share: SharePartition,
        /// One more than in the snapshot before.
        epoch: i32,
        /// Below it all is done.
        start: i64,
        /// When the window came to be, milliseconds since 1970.
        created_ms: i64,
        /// When this was written.
        written_ms: i64,
        /// From `start` to the window's end, without a gap.
        batches: Vec<StateBatch>,
        /// How often a message is delivered.
        deliveries_max: u16,
        /// The last start that is known to be committed, and on disk.
        committed: Option<i64>,
    },
    /// A change of a window.
    Update {
        /// Whose.
        share: SharePartition,
        /// Of the snapshot that it builds on.
        epoch: i32,
        /// What changed.
        batches: Vec<StateBatch>,
        /// How often a message is delivered.
        deliveries_max: u16,
        /// As in a snapshot; `None`: it is as it was.
        committed: Option<i64>,
    },
    /// There is no such window any more.
    Forgotten(SharePartition),
    /// A copy of a message that was delivered too often.
    Dead {
        /// Whose message.
        share: SharePartition,
        /// Where it stands in its partition.
        offset: i64,
        /// The copy.
        message: StoredMessage,
    },
    /// Copies on their way.
    Delivery(DeliveryRecord),
}

impl ShareRecord {
    /// Key and value as they are stored.
    ///
    /// Errors: a name is too long.
    pub fn encode(&self) -> Result<RecordBytes, TooLong> {
        let mut value = Writer::new();
        value.i16(VALUE_VERSION);
        let key = match self {
            Self::Delivery(record) => return record.encode(),
            Self::Forgotten(share) => {
                let key = key(SNAPSHOT_KEY_VERSION, share)?.finish();
                return Ok(RecordBytes { key, value: None });
            }
            Self::Snapshot {
                share,
                epoch,
                start,
                created_ms,
                written_ms,
                batches,
                deliveries_max,
                committed,
            } => {
                value.i32(*epoch);
                // Epochs of the group's state and of the partition's leader.
                value.i32(0);
                value.i32(0);
                value.i64(*start);
                value.i64(*created_ms);
                value.i64(*written_ms);
                write_batches(batches, &mut value);
                write_own(*deliveries_max, *committed, &mut value);
                key(SNAPSHOT_KEY_VERSION, share)?
            }
            Self::Update { share, epoch, batches, deliveries_max, committed } => {
                value.i32(*epoch);
                value.i32(0);
                // The start is where the batches say.
                value.i64(-1);
                write_batches(batches, &mut value);
                write_own(*deliveries_max, *committed, &mut value);
                key(UPDATE_KEY_VERSION, share)?
            }
            Self::Dead { share, offset, message } => {
                value.i64(message.timestamp_ms);
                value.bytes(&message.payload);
                let mut key = key(DEAD_KEY_VERSION, share)?;
                key.i64(*offset);
                key
            }
        };
        Ok(RecordBytes { key: key.finish(), value: Some(value.finish()) })
    }

    /// Reads a stored record; `None` for one of a kind that is not known.
    ///
    /// Errors: a known kind that cannot be read.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Self>, RecordError> {
        if let Some(record) = DeliveryRecord::decode(key, value)? {
            return Ok(Some(Self::Delivery(record)));
        }
        let mut key = Reader::new(key);
        let version = key.i16("key version")?;
        if ![SNAPSHOT_KEY_VERSION, UPDATE_KEY_VERSION, DEAD_KEY_VERSION].contains(&version) {
            return Ok(None);
        }
        let share = SharePartition {
            group: key.string("group")?,
            topic: TopicId(key.uuid("topic id")?),
            partition: key.i32("partition")?,
        };
        let Some(value) = value else {
            return match version {
                SNAPSHOT_KEY_VERSION => Ok(Some(Self::Forgotten(share))),
                _ => Err(RecordError::Truncated("value")),
            };
        };
        let mut value = Reader::new(value);
        let value_version = value.i16("value version")?;
        if value_version != VALUE_VERSION {
            return Err(RecordError::ValueVersion { key: version, value: value_version });
        }
        Ok(Some(match version {
            SNAPSHOT_KEY_VERSION => snapshot(share, &mut value)?,
            UPDATE_KEY_VERSION => {
                let epoch = value.i32("snapshot epoch")?;
                value.i32("leader epoch")?;
                value.i64("start offset")?;
                let batches = read_batches(&mut value)?;
                let (deliveries_max, committed) = read_own(&mut value)?;
                Self::Update { share, epoch, batches, deliveries_max, committed }
            }
            _ => {
                let offset = key.i64("offset")?;
                let timestamp_ms = value.i64("timestamp")?;
                let payload = value.any_bytes("payload")?;
                Self::Dead { share, offset, message: StoredMessage { timestamp_ms, payload } }
            }
        }))
    }
}

fn snapshot(share: SharePartition, value: &mut Reader<'_>) -> Result<ShareRecord, RecordError> {
    let epoch = value.i32("snapshot epoch")?;
    value.i32("state epoch")?;
    value.i32("leader epoch")?;
    let start = value.i64("start offset")?;
    let created_ms = value.i64("create timestamp")?;
    let written_ms = value.i64("write timestamp")?;
    let batches = read_batches(value)?;
    let (deliveries_max, committed) = read_own(value)?;
    Ok(ShareRecord::Snapshot {
        share,
        epoch,
        start,
        created_ms,
        written_ms,
        batches,
        deliveries_max,
        committed,
    })
}

fn key(version: i16, share: &SharePartition) -> Result<Writer, TooLong> {
    let mut key = Writer::new();
    key.i16(version);
    key.string("group", &share.group)?;
    key.uuid(share.topic.0);
    key.i32(share.partition);
    Ok(key)
}

fn write_batches(batches: &[StateBatch], value: &mut Writer) {
    value.compact_count(batches.len());
    for batch in batches {
        value.i64(batch.first);
        value.i64(batch.last);
        value.u8(batch.state.number());
        value.i16(i16::try_from(batch.deliveries).unwrap_or(i16::MAX));
        match batch.lease {
            Some(Lease { until_ms, popped_ms }) => {
                let mut lease = [0; 16];
                let (until, popped) = lease.split_at_mut(8);
                until.copy_from_slice(&until_ms.to_be_bytes());
                popped.copy_from_slice(&popped_ms.to_be_bytes());
                value.uvarint(1);
                value.tag(OWN_TAG.into(), &lease);
            }
            None => value.uvarint(0),
        }
    }
}

fn write_own(deliveries_max: u16, committed: Option<i64>, value: &mut Writer) {
    value.uvarint(1 + u64::from(committed.is_some()));
    value.tag(OWN_TAG.into(), &deliveries_max.to_be_bytes());
    if let Some(committed) = committed {
        value.tag(COMMITTED_TAG.into(), &committed.to_be_bytes());
    }
}

fn read_batches(value: &mut Reader<'_>) -> Result<Vec<StateBatch>, RecordError> {
    value.flexible = true;
    let count = value.any_count("state batches", BATCH_BYTES_MIN)?;
    let mut batches = Vec::with_capacity(count);
    for _ in 0..count {
        batches.push(read_batch(value)?);
    }
    Ok(batches)
}

fn read_own(value: &mut Reader<'_>) -> Result<(u16, Option<i64>), RecordError> {
    let (mut deliveries_max, mut committed) = (u16::MAX, None);
    value.tags(|number, bytes| {
        if let (OWN_TAG, Ok(bytes)) = (number, bytes.try_into()) {
            deliveries_max = u16::from_be_bytes(bytes);
        }
        if let (COMMITTED_TAG, Ok(bytes)) = (number, bytes.try_into()) {
            committed = Some(i64::from_be_bytes(bytes));
        }
    })?;
    Ok((deliveries_max, committed))
}

fn read_batch(value: &mut Reader<'_>) -> Result<StateBatch, RecordError> {
    let first = value.i64("first offset")?;
    let last = value.i64("last offset")?;
    let state = DeliveryState::of(value.u8("delivery state")?);
    let state = state.ok_or(RecordError::Truncated("delivery state"))?;
    let deliveries = value.i16("delivery count")?;
    let mut lease = None;
    value.tags(|number, bytes| {
        if number == OWN_TAG
            && let Some((until, popped)) = bytes.split_first_chunk::<8>()
            && let Ok(popped) = popped.try_into()
        {
            let (until_ms, popped_ms) = (i64::from_be_bytes(*until), i64::from_be_bytes(popped));
            lease = Some(Lease { until_ms, popped_ms });
        }
    })?;
    let span = last.checked_sub(first).filter(|span| *span >= 0);
    let is_bounded = state != DeliveryState::Available
        || span.is_some_and(|span| span < WINDOW_FLIGHTS_MAX as i64);
    if first < 0 || span.is_none() || last == i64::MAX || !is_bounded {
        return Err(RecordError::Truncated("offsets"));
    }
    let deliveries = u16::try_from(deliveries).unwrap_or_default();
    Ok(StateBatch { first, last, state, deliveries, lease })
}
