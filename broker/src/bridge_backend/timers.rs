//! Messages that wait for their time, on their way to and from the timers.

use duolog_bridge::backend::{BackendError, NewRecord, Recall, Result, TimedRecord, Topic};
use duolog_coordinator::delivery::StoredMessage;
use duolog_coordinator::limits::TIMERS_MAX;
use duolog_coordinator::record::timer::TimedMessage;
use duolog_coordinator::timer::error::TimerError;
use duolog_log_core::ids::TopicPartition;

use crate::coordinators::timers::StoredTimer;
use crate::limits::SEND_BYTES_MAX;
use crate::node::Node;

pub(super) async fn store(
    node: &Node,
    topic: &Topic,
    partition: i32,
    timed: TimedRecord,
) -> Result<StoredTimer> {
    let TimedRecord { due_ms, id, record: NewRecord { timestamp_ms, payload } } = timed;
    let bytes = payload.len();
    let target = TopicPartition::new(topic.name.clone(), partition);
    let message = StoredMessage { timestamp_ms, payload };
    let stored = node.timers.store(TimedMessage { due_ms, target, id, message }).await;
    stored.map_err(|error| refusal(error, bytes))
}

pub(super) async fn recall(node: &Node, topic: &Topic, recall: Recall<'_>) -> Result<bool> {
    let range = (recall.from_ms, recall.to_ms);
    let recalled = node.timers.recall(&topic.name, recall.id, range).await;
    recalled.map_err(|error| refusal(error, 0))
}

fn refusal(error: TimerError, bytes: usize) -> BackendError {
    match error {
        TimerError::TooLarge => BackendError::RecordTooLarge { bytes, bytes_max: SEND_BYTES_MAX },
        // The original's text.
        TimerError::TooMany => BackendError::LimitReached {
            reason: format!(
                "timer message is under flow control, max num limit is {TIMERS_MAX} or the current \
                 value is greater than {0} and less than {TIMERS_MAX}, trigger random flow control",
                TIMERS_MAX / 2
            ),
        },
        TimerError::NotCoordinator | TimerError::Loading | TimerError::NotAvailable => {
            BackendError::NotWritable { reason: error.to_string() }
        }
    }
}
