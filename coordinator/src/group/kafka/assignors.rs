//! Assignors that run on the server (KIP-848): who of a group shall have which partition.
//!
//! Pure functions of what the members want and had; the same input gives the same targets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use crate::group::config::Assignor;
use crate::group::event::MemberId;
use crate::record::consumer::Assignment;

mod range;
mod uniform;

/// A member as an assignor sees it.
#[derive(Clone, Debug)]
pub(in crate::group) struct Subscriber {
    pub(in crate::group) id: MemberId,
    pub(in crate::group) instance: Option<Arc<str>>,
    /// Existing topics that it wants.
    pub(in crate::group) topics: BTreeSet<TopicId>,
    /// What it was to have so far.
    pub(in crate::group) target: Arc<Assignment>,
}

/// The partitions of every topic that somebody wants.
pub(in crate::group) type PartitionCounts = BTreeMap<TopicId, i32>;

/// What each of `members` shall have: all of them are in the answer, each partition of a topic that
/// somebody wants is in one of them.
pub(in crate::group) fn assign(
    assignor: Assignor,
    members: &[Subscriber],
    counts: &PartitionCounts,
) -> BTreeMap<MemberId, Assignment> {
    match assignor {
        Assignor::Uniform => uniform::assign(members, counts),
        Assignor::Range => range::assign(members, counts),
    }
}

/// Every partition of `counts`, by topic and number.
fn partitions(counts: &PartitionCounts) -> impl Iterator<Item = (TopicId, i32)> + '_ {
    counts.iter().flat_map(|(&topic, &count)| (0..count).map(move |index| (topic, index)))
}

#[cfg(test)]
mod tests;
