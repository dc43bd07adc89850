//! `uniform`: members get equally many partitions, give or take one, as far as what they want
//! allows; then as few as possible change hands.
//!
//! Source: what UniformAssignor of kafka-group-coordinator promises. Which members get one more
//! depends there on the order of a Java hash map; here those that have one more already, then the
//! first by id.

use std::collections::{BTreeMap, BTreeSet};

use duolog_log_core::ids::TopicId;

use super::{PartitionCounts, Subscriber, partitions};
use crate::group::event::MemberId;
use crate::record::consumer::Assignment;

type Partitions = BTreeSet<(TopicId, i32)>;

pub(super) fn assign(
    members: &[Subscriber],
    counts: &PartitionCounts,
) -> BTreeMap<MemberId, Assignment> {
    let same = members.windows(2).all(|pair| match pair {
        [a, b] => a.topics == b.topics,
        _ => true,
    });
    let mut shares = kept(members, counts);
    if same {
        share_evenly(&mut shares, counts);
    } else {
        share_as_wanted(&mut shares, members, counts);
    }
    let share = members.iter().zip(shares).map(|(member, share)| {
        let mut target = Assignment::new();
        for (topic, index) in share {
            target.entry(topic).or_default().insert(index);
        }
        (member.id.clone(), target)
    });
    share.collect()
}

/// What each member had of what it may still have; nothing twice.
fn kept(members: &[Subscriber], counts: &PartitionCounts) -> Vec<Partitions> {
    let mut taken = Partitions::new();
    let mut keep = |member: &Subscriber| {
        let mut own = Partitions::new();
        for (topic, indexes) in &*member.target {
            let count = counts.get(topic).copied().unwrap_or(0);
            let wanted = member.topics.contains(topic);
            for &index in indexes.iter().filter(|index| wanted && (0..count).contains(*index)) {
                if taken.insert((*topic, index)) {
                    own.insert((*topic, index));
                }
            }
        }
        own
    };
    members.iter().map(&mut keep).collect()
}

/// All want the same: whoever has too much gives the rest up, whoever has too little gets it.
fn share_evenly(shares: &mut [Partitions], counts: &PartitionCounts) {
    if shares.is_empty() {
        return;
    }
    let total = partitions(counts).count();
    let (least, more) = (total / shares.len(), total % shares.len());
    // One more for those that have it already, then for the first.
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|&at| shares.get(at).is_none_or(|share| share.len() <= least));
    let mut quotas = vec![least; shares.len()];
    for at in order.into_iter().take(more) {
        if let Some(quota) = quotas.get_mut(at) {
            *quota += 1;
        }
    }
    for (share, &quota) in shares.iter_mut().zip(&quotas) {
        while share.len() > quota {
            share.pop_last();
        }
    }
    let held: Partitions = shares.iter().flatten().copied().collect();
    let mut free = partitions(counts).filter(|partition| !held.contains(partition));
    for (share, &quota) in shares.iter_mut().zip(&quotas) {
        let missing = quota.saturating_sub(share.len());
        share.extend(free.by_ref().take(missing));
    }
}

/// Members want different topics: what is free goes to the least loaded of those that want it,
/// topics with few takers first; then loads are evened out by single partitions.
fn share_as_wanted(shares: &mut [Partitions], members: &[Subscriber], counts: &PartitionCounts) {
    let takers: BTreeMap<TopicId, Vec<usize>> = counts
        .keys()
        .map(|topic| {
            let wants =
                |(at, member): (usize, &Subscriber)| member.topics.contains(topic).then_some(at);
            (*topic, members.iter().enumerate().filter_map(wants).collect())
        })
        .collect();
    let held: Partitions = shares.iter().flatten().copied().collect();
    let mut free: Vec<_> =
        partitions(counts).filter(|partition| !held.contains(partition)).collect();
    let taker_count = |topic: &TopicId| takers.get(topic).map_or(0, Vec::len);
    free.sort_by_key(|(topic, index)| (taker_count(topic), *topic, *index));
    for partition in free {
        if let Some(to) = least_loaded(shares, &takers, partition.0)
            && let Some(share) = shares.get_mut(to)
        {
            share.insert(partition);
        }
    }
    even_out(shares, &takers, counts);
}

fn least_loaded(
    shares: &[Partitions],
    takers: &BTreeMap<TopicId, Vec<usize>>,
    topic: TopicId,
) -> Option<usize> {
    let load = |at: &usize| shares.get(*at).map_or(usize::MAX, BTreeSet::len);
    takers.get(&topic)?.iter().copied().min_by_key(load)
}

/// Moves a partition while its owner has at least two more than somebody else who wants it. Each
/// move makes the sum of the squares of the loads smaller, so this ends.
fn even_out(
    shares: &mut [Partitions],
    takers: &BTreeMap<TopicId, Vec<usize>>,
    counts: &PartitionCounts,
) {
    let mut owners: BTreeMap<(TopicId, i32), usize> = BTreeMap::new();
    for (at, share) in shares.iter().enumerate() {
        owners.extend(share.iter().map(|&partition| (partition, at)));
    }
    loop {
        let mut moved = false;
        for partition in partitions(counts) {
            let Some(&from) = owners.get(&partition) else { continue };
            let Some(to) = least_loaded(shares, takers, partition.0) else { continue };
            let load = |at: usize| shares.get(at).map_or(0, BTreeSet::len);
            if load(from) < load(to) + 2 {
                continue;
            }
            if let Some(share) = shares.get_mut(from) {
                share.remove(&partition);
            }
            if let Some(share) = shares.get_mut(to) {
                share.insert(partition);
            }
            owners.insert(partition, to);
            moved = true;
        }
        if !moved {
            return;
        }
    }
}
