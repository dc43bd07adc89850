//! Record batches of format 2: the bytes that clients send, that logs store and that readers get.
//!
//! A batch is never decoded and encoded again on its way through: [`batch`] reads its header and
//! patches what the log decides, [`record`] walks over borrowed bytes.

pub mod batch;
pub mod compression;
pub mod error;
#[expect(
    clippy::module_inception,
    reason = "a batch is made of records: both names are the field's"
)]
pub mod record;
pub mod varint;

pub use batch::{Batch, BatchHeader, Batches, SharedBatches, TimestampType};
pub use compression::Compression;
pub use error::RecordError;
pub use record::{Header, Headers, Record, Records};
