//! GET_CONSUME_STATS: code 208. A group's position and the end of each queue it reads.
//! What lies behind the last message of a queue (markers, aborted records) counts as consumed by a
//! group that has read all messages, and a position is never shown beyond the end: lags are never
//! below 0 and reach 0.
//! Leaves out: `consumeTps`; a pull offset ahead of the position (it is shown equal to it).
//! Source: AdminBrokerProcessor.getConsumeStats.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, PartitionView, Topic};
use crate::bodies::{ConsumeStats, MessageQueue, OffsetWrapper};
use crate::dispatch::Shared;
use crate::translate::names;

/// Separates the names in `topicList`.
const SEPARATOR: char = ';';

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("consumerGroup")?;
    let topic: Option<&str> = call.request.optional_field("topic")?;
    let list: Option<&str> = call.request.optional_field("topicList")?;
    let mut committed: BTreeMap<Arc<str>, BTreeMap<i32, i64>> = BTreeMap::new();
    for position in call.backend().committed_offsets(group).await? {
        committed.entry(position.topic).or_default().insert(position.partition, position.offset);
    }
    let mut offsets = Vec::new();
    for name in wanted(&call.shared, group, topic, list, &committed) {
        let Some(topic) = call.shared.topic(&name) else { continue };
        let positions = committed.get(&topic.name);
        for queue_id in 0..topic.read_queues {
            let position = positions.and_then(|positions| positions.get(&queue_id)).copied();
            let wrapper = wrapper(&call.shared, &topic, queue_id, position.unwrap_or(0)).await?;
            let broker_name = call.backend().config().broker_name.clone();
            offsets.push((MessageQueue { topic: name.clone(), broker_name, queue_id }, wrapper));
        }
    }
    let body = ConsumeStats { consume_tps: 0.0, offsets };
    Ok(call.reply.ok().with_body(body.encode()))
}

/// The topics asked for, or those the group has positions on; without a list only those that a live
/// group subscribes to.
fn wanted<B: Backend>(
    shared: &Shared<B>,
    group: &str,
    topic: Option<&str>,
    list: Option<&str>,
    committed: &BTreeMap<Arc<str>, BTreeMap<i32, i64>>,
) -> Vec<String> {
    if let Some(list) = list {
        let names = list.split(SEPARATOR).filter(|name| !name.is_empty());
        return names.map(str::to_owned).collect();
    }
    let mut names: Vec<String> = match topic.filter(|name| !name.trim().is_empty()) {
        Some(topic) => vec![topic.to_owned()],
        None => {
            let stored = committed.keys().filter_map(|stored| names::rocketmq_name(stored));
            stored.map(std::borrow::Cow::into_owned).collect()
        }
    };
    let group = shared.backend.group(group);
    if let Some(group) = group.filter(|group| !group.subscriptions.is_empty()) {
        names.retain(|name| group.subscriptions.contains_key(&**name));
    }
    names
}

async fn wrapper<B: Backend>(
    shared: &Shared<B>,
    topic: &Topic,
    queue_id: i32,
    position: i64,
) -> Result<OffsetWrapper, Refusal> {
    let view = shared.backend.partition(topic, queue_id).unwrap_or_default();
    let position = shown_position(view, position);
    let last_consumed = position.min(view.deliverable_end).saturating_sub(1);
    let stored = shared.store_time_ms(topic, queue_id, last_consumed).await?;
    Ok(OffsetWrapper {
        broker_offset: view.last_stable_offset,
        consumer_offset: position,
        pull_offset: position,
        last_timestamp: stored.unwrap_or(0),
    })
}

/// A position as tools subtract it from the end.
pub(super) fn shown_position(view: PartitionView, position: i64) -> i64 {
    if position >= view.deliverable_end && view.deliverable_end > 0 {
        view.last_stable_offset
    } else {
        position.min(view.last_stable_offset)
    }
}

#[cfg(test)]
mod tests;
