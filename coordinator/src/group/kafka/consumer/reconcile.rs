//! A member on its way to its target: gives up first, gets after (`CurrentAssignmentBuilder`).

use std::collections::{BTreeMap, BTreeSet};

use duolog_log_core::ids::TopicId;

use super::{Draft, Owned, Wish, subscription};
use crate::error::{GroupError, Refusal};
use crate::group::context::Context;
use crate::group::event::{MemberId, Timer};
use crate::group::image::consumer::{ConsumerImage, ConsumerMember};
use crate::record::consumer::{
    Assignment, ConsumerFact, CurrentAssignment, MemberState, OwnedPartitions,
};

/// Where a member goes.
struct Goal {
    epoch: i32,
    /// Its target, without topics that it does not want any more.
    target: Assignment,
    /// What it wants.
    wanted: BTreeSet<TopicId>,
}

/// Takes the member as far as it can go now; whether that changed anything. Starts and stops the
/// time in which it has to give up partitions.
pub(super) fn advance(
    draft: &mut Draft<'_>,
    id: &MemberId,
    owned: Owned<'_>,
    wish: Wish,
    cx: &mut Context<'_>,
) -> Result<bool, Refusal> {
    let member = super::client_member(draft, id);
    let epoch = draft.target_epoch.epoch;
    if wish == Wish::Same && member.is_reconciled_to(epoch) {
        return Ok(false);
    }
    let wanted = subscription::wanted(draft, &member.metadata, cx);
    let mut target = (*draft.target(id)).clone();
    target.retain(|topic, _| wanted.contains(topic));
    let goal = Goal { epoch, target, wanted };
    let Some(next) = next(draft, id, &member, &goal, owned, wish)? else { return Ok(false) };
    if next == member.current {
        return Ok(false);
    }
    if !member.is_classic() {
        let timer = Timer::Revocation(cx.group.clone(), id.clone());
        if next.state == MemberState::UnrevokedPartitions {
            cx.set_timer(timer, member.metadata.rebalance_timeout_ms);
        } else {
            cx.cancel(timer);
        }
    }
    draft.decide(ConsumerFact::Current(id.clone(), Some(next)));
    Ok(true)
}

fn next(
    image: &ConsumerImage,
    id: &MemberId,
    member: &ConsumerMember,
    goal: &Goal,
    owned: Owned<'_>,
    wish: Wish,
) -> Result<Option<CurrentAssignment>, Refusal> {
    let current = &member.current;
    let still_has = has_any(owned, &current.revoking);
    match current.state {
        MemberState::Stable if current.epoch == goal.epoch => {
            Ok((wish == Wish::Changed).then(|| without_unwanted(current, goal, owned)))
        }
        MemberState::UnrevokedPartitions if still_has => {
            Ok((wish == Wish::Changed).then(|| without_unwanted(current, goal, owned)))
        }
        MemberState::Unknown if owned.is_none_or(|owned| !owned.is_empty()) => {
            let text = "The consumer group member is in a unknown state. The member must abandon \
                        all its partitions and rejoin.";
            Err(Refusal::new(GroupError::FencedMemberEpoch, text))
        }
        MemberState::Unknown => Ok(Some(toward(image, id, member, goal, goal.epoch, owned))),
        MemberState::Stable
        | MemberState::UnrevokedPartitions
        | MemberState::UnreleasedPartitions => {
            Ok(Some(toward(image, id, member, goal, current.epoch, owned)))
        }
    }
}

/// Whether a member has one of `partitions`, or does not say.
fn has_any(owned: Owned<'_>, partitions: &OwnedPartitions) -> bool {
    let Some(owned) = owned else { return true };
    owned.iter().any(|(topic, indexes)| {
        partitions.get(topic).is_some_and(|of| indexes.iter().any(|index| of.contains_key(index)))
    })
}

/// What it does not want any more goes at once, whatever its target.
fn without_unwanted(
    current: &CurrentAssignment,
    goal: &Goal,
    owned: Owned<'_>,
) -> CurrentAssignment {
    let mut next = current.clone();
    let unwanted = current.assigned.iter().filter(|(topic, _)| !goal.wanted.contains(topic));
    let unwanted: OwnedPartitions = unwanted.map(|(topic, of)| (*topic, of.clone())).collect();
    if unwanted.is_empty() {
        return next;
    }
    next.assigned.retain(|topic, _| goal.wanted.contains(topic));
    let mut revoking = current.revoking.clone();
    for (topic, of) in unwanted {
        revoking.entry(topic).or_default().extend(of);
    }
    next.previous_epoch = current.epoch;
    if has_any(owned, &revoking) {
        next.state = MemberState::UnrevokedPartitions;
        next.revoking = revoking;
    }
    next
}

/// One step towards the goal, in `epoch` while something is to be given up.
fn toward(
    image: &ConsumerImage,
    id: &MemberId,
    member: &ConsumerMember,
    goal: &Goal,
    epoch: i32,
    owned: Owned<'_>,
) -> CurrentAssignment {
    let current = &member.current;
    let mut assigned = OwnedPartitions::new();
    let mut revoking = OwnedPartitions::new();
    for (topic, of) in &current.assigned {
        for (&index, &since) in of {
            let stays = goal.target.get(topic).is_some_and(|target| target.contains(&index));
            let to = if stays { &mut assigned } else { &mut revoking };
            to.entry(*topic).or_default().insert(index, since);
        }
    }
    let step = |state, epoch, assigned, revoking| CurrentAssignment {
        epoch,
        previous_epoch: current.epoch,
        state,
        assigned,
        revoking,
    };
    if !revoking.is_empty() && has_any(owned, &revoking) {
        return step(MemberState::UnrevokedPartitions, epoch, assigned, revoking);
    }
    let mut state = MemberState::Stable;
    let taken = taken_by_others(image, id, &goal.target);
    for (topic, target) in &goal.target {
        for &index in target {
            let has = assigned.get(topic).is_some_and(|of| of.contains_key(&index));
            if has {
                continue;
            }
            if taken.contains(&(*topic, index)) {
                state = MemberState::UnreleasedPartitions;
            } else {
                assigned.entry(*topic).or_default().insert(index, goal.epoch);
            }
        }
    }
    step(state, goal.epoch, assigned, OwnedPartitions::new())
}

/// Which partitions of `target` other members own.
fn taken_by_others(
    image: &ConsumerImage,
    id: &MemberId,
    target: &Assignment,
) -> BTreeSet<(TopicId, i32)> {
    let mut taken = BTreeSet::new();
    for (_, other) in image.members.iter().filter(|(other, _)| *other != id) {
        for owned in [&other.current.assigned, &other.current.revoking] {
            for (topic, of) in owned.iter().filter(|(topic, _)| target.contains_key(topic)) {
                taken.extend(of.keys().map(|index| (*topic, *index)));
            }
        }
    }
    taken
}

/// Whether what a member waits for is still others'.
pub(super) fn waits_for_others(
    image: &ConsumerImage,
    id: &MemberId,
    member: &ConsumerMember,
) -> bool {
    let target = image.target(id);
    let taken = taken_by_others(image, id, &target);
    let none = BTreeMap::new();
    target.iter().any(|(topic, indexes)| {
        let has = member.current.assigned.get(topic).unwrap_or(&none);
        indexes.iter().any(|index| !has.contains_key(index) && taken.contains(&(*topic, *index)))
    })
}
