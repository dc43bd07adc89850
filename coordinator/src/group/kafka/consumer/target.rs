//! What the members of a group shall have.

use std::collections::BTreeMap;

use super::{Draft, subscription};
use crate::group::config::Assignor;
use crate::group::context::Context;
use crate::group::image::consumer::ConsumerImage;
use crate::group::kafka::assignors::{self, PartitionCounts, Subscriber};
use crate::record::consumer::{ConsumerFact, TargetEpochValue};

/// Computes new targets if they are not of the group's epoch, unless the last ones are younger than
/// the group's assignment interval (KIP-1263).
pub(super) fn update(draft: &mut Draft<'_>, cx: &Context<'_>) {
    let settings = cx.known.metadata.group_settings(cx.group);
    let interval_ms =
        settings.assignment_interval_ms.unwrap_or(cx.config.consumer.assignment_interval_ms);
    let assigned_ms = draft.target_epoch.assigned_ms;
    // A clock that was set back must not stop assignments.
    let is_young = assigned_ms != 0
        && (assigned_ms..assigned_ms.saturating_add(i64::from(interval_ms)))
            .contains(&cx.now.wall_ms);
    if draft.epoch.epoch <= draft.target_epoch.epoch || is_young {
        return;
    }
    let (subscribers, counts) = subscribers(draft, cx);
    let assignor = preferred(draft, cx.config.consumer.assignors.as_slice());
    for (id, target) in assignors::assign(assignor, &subscribers, &counts) {
        if draft.targets.get(&id).is_none_or(|known| **known != target) {
            draft.decide(ConsumerFact::Target(id, Some(target)));
        }
    }
    let epoch = draft.epoch.epoch;
    let value = TargetEpochValue { epoch, assigned_ms: cx.now.wall_ms };
    draft.decide(ConsumerFact::TargetEpoch(Some(value)));
    tracing::debug!(group = %cx.group, epoch, assignor = assignor.name(), "new targets");
}

fn subscribers(image: &ConsumerImage, cx: &Context<'_>) -> (Vec<Subscriber>, PartitionCounts) {
    let mut counts = PartitionCounts::new();
    let subscribers = image.members.iter().map(|(id, member)| {
        let topics = subscription::wanted(image, &member.metadata, cx);
        Subscriber {
            id: id.clone(),
            instance: member.metadata.instance.clone(),
            topics,
            target: image.target(id),
        }
    });
    let subscribers: Vec<Subscriber> = subscribers.collect();
    for name in image.subscribed_topics() {
        if let Some(topic) = cx.known.metadata.topic(&name) {
            counts.insert(topic.id, topic.partitions);
        }
    }
    (subscribers, counts)
}

/// The assignor that most members ask for, the first by name among equals; the first of the node's
/// if nobody asks.
pub(super) fn preferred(image: &ConsumerImage, known: &[Assignor]) -> Assignor {
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    for member in image.members.values() {
        if let Some(name) = &member.metadata.assignor {
            *votes.entry(name).or_default() += 1;
        }
    }
    let most = votes.values().copied().max().unwrap_or(0);
    let named = votes.into_iter().filter(|&(_, count)| count == most);
    let find = |(name, _): (&str, usize)| known.iter().find(|of| of.name() == name).copied();
    let first = known.first().copied().unwrap_or(Assignor::Uniform);
    named.filter_map(find).next().unwrap_or(first)
}
