//! When the earliest record that the node still has was appended.

use dashmap::DashMap;

use crate::node::Node;

/// The append time of each partition's first record, as long as its log starts there.
#[derive(Debug, Default)]
pub(super) struct EarliestAppends {
    /// By the partition's number: log start, and the time of the record there in ms.
    known: DashMap<u32, (i64, i64)>,
}

impl EarliestAppends {
    /// Over all partitions, in ms. `None` when there is no record at all.
    ///
    /// Logs that the last run left count once they are open, which they are soon after the start. A
    /// log is looked into once for each start it has.
    pub(super) async fn over_all(&self, node: &Node) -> Option<i64> {
        let partitions = node.partitions.all();
        if self.known.len() > partitions.len() {
            // Some are of topics that were deleted since.
            self.known.clear();
        }
        let mut earliest = None;
        for partition in partitions {
            let offsets = partition.offsets();
            if offsets.log_start >= offsets.high_watermark {
                continue;
            }
            let known = self.known.get(&partition.number).map(|known| *known);
            let time_ms = match known.filter(|(log_start, _)| *log_start == offsets.log_start) {
                Some((_, time_ms)) => time_ms,
                None => {
                    let Ok(reader) = partition.reader().await else { continue };
                    let Ok(Some(time_ms)) = reader.first_append_time() else { continue };
                    self.known.insert(partition.number, (reader.log_start_offset(), time_ms));
                    time_ms
                }
            };
            earliest = Some(earliest.map_or(time_ms, |earliest: i64| earliest.min(time_ms)));
        }
        earliest
    }
}
