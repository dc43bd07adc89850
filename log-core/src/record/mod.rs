//! Record batches of format 2: the bytes that clients send, that logs store and that readers get.
//!
//! A batch is never decoded and encoded again on its way through: [`batch`] reads its header and
//! patches what the log decides, [`validate`] checks what a client sent, [`record`] walks over
//! borrowed bytes. [`builder`] makes batches of our own, [`decoded`] keeps one uncompressed.

pub mod batch;
pub mod builder;
pub mod compression;
pub mod control;
pub mod decoded;
pub mod error;
pub mod recompress;
#[expect(
    clippy::module_inception,
    reason = "a batch is made of records: both names are the field's"
)]
pub mod record;
pub mod validate;
pub mod varint;

pub use batch::{Batch, BatchHeader, Batches, SharedBatches, TimestampType};
pub use builder::{BatchBuilder, BatchKind, BatchParams, NewRecord, ProducerSequence};
pub use compression::{Compression, Compressor, Decompressor};
pub use control::{ControlType, EndTransactionMarker, TransactionOutcome};
pub use decoded::DecodedBatch;
pub use error::RecordError;
pub use recompress::recompress;
pub use record::{Header, Headers, Record, Records};
pub use validate::{ProduceRules, Validated, validate};

#[cfg(test)]
mod tests;
