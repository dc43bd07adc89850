//! What members lose, told partition by partition.

use std::collections::BTreeSet;

use bytes::Bytes;
use duolog_log_core::event::{Event, EventKind, Protocol};

use crate::group::context::Context;
use crate::group::event::MemberId;
use crate::group::kafka::subscription::assigned_partitions;

/// Tells the partitions that `member` held and does not get again. Of an assignment that is no
/// consumer's nobody can say what it holds.
pub(super) fn tell(
    member: &MemberId,
    (held, given): (&Bytes, &Bytes),
    cause: &str,
    cx: &Context<'_>,
) {
    if !cx.events.is_listening() || held == given {
        return;
    }
    let (Some(held), Some(given)) = (assigned_partitions(held), assigned_partitions(given)) else {
        return;
    };
    let nothing = BTreeSet::new();
    for (topic, partitions) in &held {
        for &partition in partitions.difference(given.get(topic).unwrap_or(&nothing)) {
            cx.events.emit(|| {
                Event::new(EventKind::GroupRevoke, cx.now.wall_ms)
                    .at(topic, partition)
                    .protocol(Protocol::Kafka)
                    .client(member.clone())
                    .cause(format!("group {}: {cause}", cx.group))
            });
        }
    }
}
