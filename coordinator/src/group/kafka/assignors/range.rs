//! `range`: of each topic, each member gets consecutive partitions, so that topics with equally
//! many partitions are shared alike if all members want them.
//! Source: RangeAssignor of kafka-group-coordinator.

use std::collections::BTreeMap;

use super::{PartitionCounts, Subscriber};
use crate::group::event::MemberId;
use crate::record::consumer::Assignment;

pub(super) fn assign(
    members: &[Subscriber],
    counts: &PartitionCounts,
) -> BTreeMap<MemberId, Assignment> {
    let mut order: Vec<&Subscriber> = members.iter().collect();
    // Static members first: their names outlive their ids.
    order.sort_by_key(|member| match &member.instance {
        Some(instance) => (0, instance.clone()),
        None => (1, member.id.clone()),
    });
    let none = |member: &&Subscriber| (member.id.clone(), Assignment::new());
    let mut targets: BTreeMap<MemberId, Assignment> = order.iter().map(none).collect();
    for (topic, &count) in counts {
        let wanting: Vec<_> = order.iter().filter(|member| member.topics.contains(topic)).collect();
        let members = i32::try_from(wanting.len()).unwrap_or(i32::MAX).max(1);
        let (least, mut more) = (count / members, count % members);
        let mut first = 0;
        for member in wanting {
            let end = first + least + i32::from(more > 0);
            more -= i32::from(more > 0);
            if let (Some(target), true) = (targets.get_mut(&member.id), first < end) {
                target.insert(*topic, (first..end).collect());
            }
            first = end;
        }
    }
    targets
}
