//! Who may do what in a consumer group, and the words in which others are refused (Kafka's).

use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::{Draft, Owned};
use crate::error::{GroupError, Refusal};
use crate::group::config::GroupConfig;
use crate::group::event::{
    CommitForm, ConsumerGroupHeartbeat, GroupId, JOIN_EPOCH, LEAVE_EPOCH, LEAVE_FOR_NOW_EPOCH,
    MemberId, MemberIdMaker, OffsetCommit,
};
use crate::group::image::consumer::{ConsumerImage, ConsumerMember};
use crate::record::consumer::{ConsumerFact, CurrentAssignment};

/// Whether the request is one that a member may send at all (case B57).
pub(in crate::group) fn check(
    request: &ConsumerGroupHeartbeat,
    config: &GroupConfig,
) -> Result<(), Refusal> {
    let wrong = |text: &str| Err(Refusal::new(GroupError::InvalidRequest, text));
    let is_blank = |text: &Option<Arc<str>>| text.as_ref().is_some_and(|t| t.trim().is_empty());
    let needs_id = request.epoch != JOIN_EPOCH || request.id_maker == MemberIdMaker::Client;
    if needs_id && request.member.trim().is_empty() {
        return wrong("MemberId can't be empty.");
    }
    if request.group.trim().is_empty() {
        return wrong("GroupId can't be empty.");
    }
    if is_blank(&request.instance) {
        return wrong("InstanceId can't be empty.");
    }
    if is_blank(&request.rack) {
        return wrong("RackId can't be empty.");
    }
    match request.epoch {
        JOIN_EPOCH => {
            if request.rebalance_timeout_ms.is_none() {
                return wrong("RebalanceTimeoutMs must be provided in first request.");
            }
            if request.owned.as_ref().is_none_or(|owned| !owned.is_empty()) {
                return wrong("TopicPartitions must be empty when (re-)joining.");
            }
            if request.topics.is_none() && request.regex.is_none() {
                return wrong(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when \
                     (re-)joining.",
                );
            }
        }
        LEAVE_FOR_NOW_EPOCH if request.instance.is_none() => {
            return wrong("InstanceId can't be null.");
        }
        LEAVE_EPOCH | LEAVE_FOR_NOW_EPOCH => {}
        epoch if epoch < 0 => return wrong("MemberEpoch is invalid."),
        _ => {}
    }
    check_assignor(request, config)
}

fn check_assignor(request: &ConsumerGroupHeartbeat, config: &GroupConfig) -> Result<(), Refusal> {
    let Some(asked) = &request.assignor else { return Ok(()) };
    let names: Vec<&str> = config.consumer.assignors.iter().map(|known| known.name()).collect();
    if names.contains(&&**asked) {
        return Ok(());
    }
    let known = names.join(", ");
    let text = format!("ServerAssignor {asked} is not supported. Supported assignors: {known}.");
    Err(Refusal::new(GroupError::UnsupportedAssignor, text))
}

/// The id of a request's member, made if it has none.
pub(super) fn member_id(request: &ConsumerGroupHeartbeat) -> MemberId {
    if request.member.is_empty() {
        TopicId(request.uuid).to_string().into()
    } else {
        request.member.clone()
    }
}

/// Whether another member may come in.
pub(super) fn check_room(
    image: &ConsumerImage,
    member: &MemberId,
    config: &GroupConfig,
) -> Result<(), Refusal> {
    let size_max = config.consumer.group_size_max;
    if image.members.len() < size_max || image.members.contains_key(member) {
        return Ok(());
    }
    let text =
        format!("The consumer group has reached its maximum capacity of {size_max} members.");
    Err(Refusal::new(GroupError::GroupMaxSizeReached, text))
}

/// The member of a heartbeat as it was: known, new, or come back in the place of its former self.
pub(super) fn member(
    draft: &mut Draft<'_>,
    id: &MemberId,
    request: &ConsumerGroupHeartbeat,
) -> Result<Arc<ConsumerMember>, Refusal> {
    let (epoch, owned) = (request.epoch, request.owned.as_deref());
    let Some(instance) = &request.instance else {
        if let Some(member) = draft.members.get(id) {
            check_epoch(member, epoch, owned)?;
            return Ok(member.clone());
        }
        return match epoch {
            JOIN_EPOCH => Ok(Arc::default()),
            _ => Err(unknown(&request.group, id)),
        };
    };
    if epoch != JOIN_EPOCH {
        let (_, member) = static_member(draft, id, instance)?;
        check_epoch(member, epoch, owned)?;
        return Ok(member.clone());
    }
    match draft.static_member(instance).map(|(holder, member)| (holder.clone(), member.clone())) {
        None => Ok(draft.members.get(id).cloned().unwrap_or_default()),
        Some((holder, member)) => {
            if !member.is_classic() && member.current.epoch != LEAVE_FOR_NOW_EPOCH {
                let text = format!(
                    "Static member {id} with instance id {instance} cannot join the group because \
                     the instance id is owned by {holder} member."
                );
                return Err(Refusal::new(GroupError::UnreleasedInstanceId, text));
            }
            Ok(replace(draft, &holder, &member, id))
        }
    }
}

/// Gives all that a static member is and has to `id`, in epoch 0.
pub(super) fn replace(
    draft: &mut Draft<'_>,
    former: &MemberId,
    member: &ConsumerMember,
    id: &MemberId,
) -> Arc<ConsumerMember> {
    let target = draft.target(former);
    for fact in super::leave::removal(former) {
        draft.decide(fact);
    }
    draft.decide(ConsumerFact::Member(id.clone(), Some(member.metadata.clone())));
    draft.decide(ConsumerFact::Target(id.clone(), Some((*target).clone())));
    let current = CurrentAssignment { epoch: 0, previous_epoch: 0, ..member.current.clone() };
    draft.decide(ConsumerFact::Current(id.clone(), Some(current)));
    super::client_member(draft, id)
}

/// The holder of an instance id, which must be `id`.
pub(super) fn static_member<'a>(
    image: &'a ConsumerImage,
    id: &MemberId,
    instance: &str,
) -> Result<(&'a MemberId, &'a Arc<ConsumerMember>), Refusal> {
    let Some((holder, member)) = image.static_member(instance) else {
        let text = format!("Instance id {instance} is unknown.");
        return Err(Refusal::new(GroupError::UnknownMemberId, text));
    };
    if holder == id {
        return Ok((holder, member));
    }
    let text =
        format!("Static member {id} with instance id {instance} was fenced by member {holder}.");
    Err(Refusal::new(GroupError::FencedInstanceId, text))
}

/// That there is no such member.
pub(super) fn unknown(group: &GroupId, id: &MemberId) -> Refusal {
    let text = format!("Member {id} is not a member of group {group}.");
    Refusal::new(GroupError::UnknownMemberId, text)
}

/// A member may name its epoch, or the one before it if it has no more than it then had: the
/// answer that told it the new one may be lost.
fn check_epoch(member: &ConsumerMember, epoch: i32, owned: Owned<'_>) -> Result<(), Refusal> {
    let current = &member.current;
    if epoch == JOIN_EPOCH || epoch == current.epoch {
        return Ok(());
    }
    let repeats = epoch == current.previous_epoch && has_no_more(member, owned);
    if epoch < current.epoch && repeats {
        return Ok(());
    }
    let than = if epoch > current.epoch { "greater" } else { "smaller" };
    let text = format!(
        "The consumer group member has a {than} member epoch ({epoch}) than the one known by the \
         group coordinator ({}). The member must abandon all its partitions and rejoin.",
        current.epoch
    );
    Err(Refusal::new(GroupError::FencedMemberEpoch, text))
}

fn has_no_more(member: &ConsumerMember, owned: Owned<'_>) -> bool {
    let has = |topic: &TopicId, index: &i32| {
        member.current.assigned.get(topic).is_some_and(|of| of.contains_key(index))
    };
    owned.is_some_and(|owned| {
        owned.iter().all(|(topic, indexes)| indexes.iter().all(|index| has(topic, index)))
    })
}

/// Whether a commit may come in. A member that has gone on to a later epoch may still commit what
/// it had then and has (KIP-1251).
pub(in crate::group) fn check_commit(
    image: &ConsumerImage,
    commit: &OffsetCommit,
    topic_id: impl Fn(&str) -> Option<TopicId>,
) -> Result<(), GroupError> {
    if commit.generation < 0 && image.members.is_empty() {
        return Ok(());
    }
    let member = image.members.get(&commit.member).ok_or(GroupError::UnknownMemberId)?;
    if member.is_classic() {
        let fits = commit.generation == member.current.epoch;
        return if fits { Ok(()) } else { Err(GroupError::IllegalGeneration) };
    }
    if commit.form == CommitForm::Generation {
        return Err(GroupError::UnsupportedVersion);
    }
    if commit.generation == member.current.epoch {
        return Ok(());
    }
    let had = |topic: TopicId, index| {
        member.assignment_epoch(topic, index).is_some_and(|since| commit.generation >= since)
    };
    let all_had = commit.topics.iter().all(|asked| {
        topic_id(&asked.topic)
            .is_some_and(|id| asked.partitions.iter().all(|partition| had(id, partition.partition)))
    });
    let is_late = (0..member.current.epoch).contains(&commit.generation);
    if is_late && all_had { Ok(()) } else { Err(GroupError::StaleMemberEpoch) }
}

/// Whether positions may be read in a member's name; anybody may read them in nobody's.
pub(in crate::group) fn check_fetch(
    image: &ConsumerImage,
    member: Option<&(MemberId, i32)>,
) -> Result<(), GroupError> {
    let Some((id, epoch)) = member else { return Ok(()) };
    let member = image.members.get(id).ok_or(GroupError::UnknownMemberId)?;
    match (*epoch == member.current.epoch, member.is_classic()) {
        (true, _) => Ok(()),
        (false, true) => Err(GroupError::IllegalGeneration),
        (false, false) => Err(GroupError::StaleMemberEpoch),
    }
}
