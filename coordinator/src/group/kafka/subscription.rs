//! Which topics a classic consumer group is subscribed to.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::record::reader::Reader;
use crate::record::{GroupValue, RecordError};

/// Protocol type of the groups whose members' metadata Kafka understands.
pub(in crate::group) const CONSUMER: &str = "consumer";

/// The topics that the members of `group` subscribe to; `None` if they are not consumers or say
/// it in a way that cannot be read. An empty group subscribes to none.
/// Source: `ClassicGroup.computeSubscribedTopics`.
pub(super) fn subscribed_topics(group: &GroupValue) -> Option<BTreeSet<Arc<str>>> {
    if &*group.protocol_type != CONSUMER {
        return None;
    }
    let mut topics = BTreeSet::new();
    if !group.members.is_empty() {
        group.protocol.as_ref()?;
    }
    for member in &group.members {
        collect_topics(&member.subscription, &mut topics).ok()?;
    }
    Some(topics)
}

/// Reads the part of a `ConsumerProtocolSubscription` that all its versions begin with: version,
/// topics.
fn collect_topics(
    subscription: &Bytes,
    topics: &mut BTreeSet<Arc<str>>,
) -> Result<(), RecordError> {
    let mut from = Reader::new(subscription);
    from.i16("version")?;
    for _ in 0..from.any_count("topics", 2)? {
        topics.insert(from.string("topic")?);
    }
    Ok(())
}
