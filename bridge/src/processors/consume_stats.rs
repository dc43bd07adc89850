//! GET_CONSUME_STATS: code 208. A group's position and the end of each queue it reads.
//! What lies behind the last message of a queue (markers, aborted records) counts as consumed by a
//! group that has read all messages, and a position is never shown beyond the end: lags are never
//! below 0 and reach 0.
//! Source: AdminBrokerProcessor.getConsumeStats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Topic};
use crate::bodies::{ConsumeStats, MessageQueue, OffsetWrapper};
use crate::dispatch::Shared;
use crate::translate::names;

/// Separates the names in `topicList`.
const SEPARATOR: char = ';';

/// Positions by stored name of the topic and by queue.
type Positions = BTreeMap<Arc<str>, BTreeMap<i32, i64>>;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("consumerGroup")?;
    let topic: Option<&str> = call.request.optional_field("topic")?;
    let list: Option<&str> = call.request.optional_field("topicList")?;
    let positions = positions(&call.shared, group).await?;
    let mut all = ConsumeStats { consume_tps: 0.0, offsets: Vec::new() };
    for name in wanted(&call.shared, group, topic, list, &positions) {
        let Some(topic) = call.shared.topic(&name) else { continue };
        let of_topic = of_topic(&call.shared, group, &name, &topic, &positions).await?;
        all.consume_tps += of_topic.consume_tps;
        all.offsets.extend(of_topic.offsets);
    }
    Ok(call.reply.ok().with_body(all.encode()))
}

/// Everything of a group, topic by topic.
pub(super) async fn of_group<B: Backend>(
    shared: &Shared<B>,
    group: &str,
) -> Result<Vec<(Arc<Topic>, ConsumeStats)>, Refusal> {
    let positions = positions(shared, group).await?;
    let mut all = Vec::new();
    for name in wanted(shared, group, None, None, &positions) {
        let Some(topic) = shared.topic(&name) else { continue };
        let of_topic = of_topic(shared, group, &name, &topic, &positions).await?;
        all.push((topic, of_topic));
    }
    Ok(all)
}

async fn positions<B: Backend>(shared: &Shared<B>, group: &str) -> Result<Positions, Refusal> {
    let mut positions = Positions::new();
    for position in shared.backend.committed_offsets(group).await? {
        positions.entry(position.topic).or_default().insert(position.partition, position.offset);
    }
    Ok(positions)
}

async fn of_topic<B: Backend>(
    shared: &Shared<B>,
    group: &str,
    name: &str,
    topic: &Topic,
    positions: &Positions,
) -> Result<ConsumeStats, Refusal> {
    let positions = positions.get(&topic.name);
    let mut offsets = Vec::new();
    for queue_id in 0..topic.read_queues {
        let position = positions.and_then(|positions| positions.get(&queue_id)).copied();
        let queue = Queue { group, topic, queue_id };
        let wrapper = wrapper(shared, queue, position.unwrap_or(0)).await?;
        let broker_name = shared.backend.config().broker_name.clone();
        offsets.push((MessageQueue { topic: name.to_owned(), broker_name, queue_id }, wrapper));
    }
    let now_ms = shared.backend.now_ms();
    let consume_tps = shared.deliveries.per_second(group, topic.id, now_ms);
    Ok(ConsumeStats { consume_tps, offsets })
}

/// The topics asked for, or those the group has positions on; without a list only those that a live
/// group subscribes to.
fn wanted<B: Backend>(
    shared: &Shared<B>,
    group: &str,
    topic: Option<&str>,
    list: Option<&str>,
    positions: &Positions,
) -> Vec<String> {
    if let Some(list) = list.filter(|list| !list.trim().is_empty()) {
        // Each once, however often it is named.
        let names: BTreeSet<_> = list.split(SEPARATOR).filter(|name| !name.is_empty()).collect();
        if !names.is_empty() {
            return names.into_iter().map(str::to_owned).collect();
        }
    }
    let mut names: Vec<String> = match topic.filter(|name| !name.trim().is_empty()) {
        Some(topic) => vec![topic.to_owned()],
        None => {
            let stored = positions.keys().filter_map(|stored| names::rocketmq_name(stored));
            stored.map(std::borrow::Cow::into_owned).collect()
        }
    };
    let group = shared.backend.group(group);
    if let Some(group) = group.filter(|group| !group.subscriptions.is_empty()) {
        names.retain(|name| group.subscriptions.contains_key(&**name));
    }
    names
}

/// A queue and who reads it.
#[derive(Clone, Copy)]
struct Queue<'a> {
    group: &'a str,
    topic: &'a Topic,
    queue_id: i32,
}

async fn wrapper<B: Backend>(
    shared: &Shared<B>,
    queue: Queue<'_>,
    position: i64,
) -> Result<OffsetWrapper, Refusal> {
    let Queue { group, topic, queue_id } = queue;
    let view = shared.backend.partition(topic, queue_id).await.unwrap_or_default();
    let end = view.last_stable_offset;
    let deliverable_end = shared.deliverable_end(topic, queue_id, end).await?;
    let position = shown_position(Ends { deliverable_end, end }, position);
    let pulled = shared.deliveries.next_offset(group, topic.id, queue_id).unwrap_or(0);
    let stored = shared.last_store_time_ms(topic, queue_id, position).await?;
    Ok(OffsetWrapper {
        broker_offset: end,
        consumer_offset: position,
        // What was handed out and not consumed yet is between the two.
        pull_offset: pulled.min(end).max(position),
        last_timestamp: stored.unwrap_or(0),
    })
}

/// Where a queue ends.
#[derive(Clone, Copy)]
struct Ends {
    /// One past the last message.
    deliverable_end: i64,
    /// One past what follows it, too.
    end: i64,
}

/// A position as tools subtract it from the end.
fn shown_position(ends: Ends, position: i64) -> i64 {
    if position >= ends.deliverable_end && ends.deliverable_end > 0 {
        ends.end
    } else {
        position.min(ends.end)
    }
}

#[cfg(test)]
mod tests;
