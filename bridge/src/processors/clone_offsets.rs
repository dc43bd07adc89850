//! CLONE_GROUP_OFFSET (314) and QUERY_CORRECTION_OFFSET (308): what one group's positions are to
//! another. Clone: the positions of one group become those of another, on one topic or on all that
//! the first has positions on; unless `offline`, of those that its live members subscribe to.
//! Correction: the least position of all groups on each queue of a topic; one that the group to
//! compare with has not reached counts as infinite.
//! Unlike the original, a clone without a topic clones all topics (there: none), and groups to be
//! left out of a comparison keep their positions (there they lose them).
//! Source: AdminBrokerProcessor.cloneGroupOffset, queryCorrectionOffset.

use std::collections::BTreeMap;

use super::{Call, Outcome};
use crate::backend::{Backend, CommittedOffset};
use crate::bodies::QueryCorrectionOffsetBody;
use crate::translate::names;

pub(crate) async fn clone<B: Backend>(call: Call<B>) -> Outcome {
    let from: &str = call.request.field("srcGroup")?;
    let to: &str = call.request.field("destGroup")?;
    let name: &str = call.request.optional_field("topic")?.unwrap_or_default();
    let is_offline: bool = call.request.optional_field("offline")?.unwrap_or(false);
    let only = (!name.trim().is_empty()).then_some(name);
    let view = if is_offline { None } else { call.backend().group(from) };
    for position in call.backend().committed_offsets(from).await? {
        let Some(name) = names::rocketmq_name(&position.topic) else { continue };
        let is_subscribed =
            view.as_ref().is_none_or(|view| view.subscriptions.contains_key(&*name));
        if only.is_some_and(|only| only != name) || !is_subscribed {
            continue;
        }
        let Some(topic) = call.shared.topic(&name) else { continue };
        let CommittedOffset { partition, offset, .. } = position;
        call.backend().commit_offset(to, &topic, partition, offset).await?;
    }
    Ok(call.reply.ok())
}

pub(crate) async fn correction<B: Backend>(call: Call<B>) -> Outcome {
    let name: &str = call.request.field("topic")?;
    let compared: &str = call.request.field("compareGroup")?;
    let left_out: &str = call.request.optional_field("filterGroups")?.unwrap_or_default();
    let left_out: Vec<&str> = left_out.split(',').map(str::trim).collect();
    let mut least = BTreeMap::<i32, i64>::new();
    let mut own = BTreeMap::<i32, i64>::new();
    if let Some(topic) = call.shared.topic(name) {
        for group in call.backend().groups_with_positions(&topic) {
            let positions = call.backend().committed_offsets(&group).await?;
            for position in positions.iter().filter(|one| one.topic == topic.name) {
                let CommittedOffset { partition, offset, .. } = *position;
                if group == compared {
                    own.insert(partition, offset);
                }
                let view = call.backend().partition(&topic, partition).await.unwrap_or_default();
                if !left_out.contains(&&*group) && offset >= view.log_start_offset {
                    let least = least.entry(partition).or_insert(offset);
                    *least = offset.min(*least);
                }
            }
        }
    }
    for (queue_id, offset) in own {
        if let Some(least) = least.get_mut(&queue_id).filter(|least| **least > offset) {
            *least = i64::MAX;
        }
    }
    Ok(call.reply.ok().with_body(QueryCorrectionOffsetBody { offsets: least }.encode()))
}

#[cfg(test)]
mod tests;
