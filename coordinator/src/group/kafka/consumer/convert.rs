//! Classic groups that become consumer groups while their members go on, and back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Draft, protocol};
use crate::error::{GroupError, Refusal};
use crate::group::config::GroupConfig;
use crate::group::context::Context;
use crate::group::event::{GroupId, MemberId};
use crate::group::image::consumer::{ConsumerImage, ConsumerMember};
use crate::group::kafka::classic::Upgrading;
use crate::group::kafka::subscription::CONSUMER;
use crate::record::consumer::{
    Assignment, ClassicMetadata, ConsumerFact, CurrentAssignment, EpochValue, MemberMetadata,
    MemberState, StoredProtocol, TargetEpochValue,
};
use crate::record::{GroupValue, MemberValue, Record};

/// Whether a classic group may become a consumer group.
pub(in crate::group) fn upgrade_allowed(upgrading: &Upgrading, config: &GroupConfig) -> bool {
    config.consumer.migration.allows_upgrade()
        && upgrading.value.protocol_type.as_ref() == CONSUMER
        && upgrading.value.members.len() <= config.consumer.group_size_max
}

/// A classic group as a consumer group: its members have what they were assigned last, and are to
/// have the same.
///
/// Errors: what the members say cannot be read.
pub(in crate::group) fn from_classic<'a>(
    upgrading: &Upgrading,
    cx: &Context<'_>,
) -> Result<Draft<'a>, Refusal> {
    let group = cx.group.clone();
    let mut draft = Draft::new(vec![Record::Group { group, value: None }]);
    let value = &upgrading.value;
    let mut taken = BTreeSet::new();
    let mut targets: BTreeMap<MemberId, Assignment> = BTreeMap::new();
    for member in &value.members {
        let protocols = upgrading.protocols.get(&member.member_id).cloned().unwrap_or_default();
        let read = member_metadata(member, protocols).map_err(|_| unreadable(cx.group))?;
        let named = protocol::assignment(&member.assignment).map_err(|_| unreadable(cx.group))?;
        let mut target = Assignment::new();
        for (topic, indexes) in protocol::by_ids(&named, &*cx.known.metadata) {
            // A client's own assignor may have given one partition twice.
            let indexes: BTreeSet<i32> =
                indexes.into_iter().filter(|index| taken.insert((topic, *index))).collect();
            if !indexes.is_empty() {
                target.entry(topic).or_default().extend(indexes);
            }
        }
        draft.decide(ConsumerFact::Member(member.member_id.clone(), Some(read)));
        targets.insert(member.member_id.clone(), target);
    }
    let epoch = value.generation;
    draft.decide(ConsumerFact::Epoch(Some(EpochValue { epoch, metadata_hash: 0 })));
    for (id, target) in &targets {
        draft.decide(ConsumerFact::Target(id.clone(), Some(target.clone())));
    }
    draft.decide(ConsumerFact::TargetEpoch(Some(TargetEpochValue { epoch, assigned_ms: 0 })));
    for (id, target) in targets {
        let current = CurrentAssignment {
            epoch,
            previous_epoch: epoch,
            state: MemberState::Stable,
            assigned: protocol::owned_since(&target, epoch),
            ..CurrentAssignment::default()
        };
        draft.decide(ConsumerFact::Current(id, Some(current)));
    }
    Ok(draft)
}

fn unreadable(group: &GroupId) -> Refusal {
    let text = format!(
        "Cannot upgrade classic group {group} to consumer group because the embedded consumer \
         protocol is malformed."
    );
    Refusal::new(GroupError::GroupIdNotFound, text)
}

fn member_metadata(
    member: &MemberValue,
    protocols: Vec<StoredProtocol>,
) -> Result<MemberMetadata, crate::record::RecordError> {
    let first = protocols.first().map(|first| &first.metadata);
    let told = Some(&member.subscription).filter(|bytes| !bytes.is_empty()).or(first);
    let subscription = told.map_or_else(|| Ok(Default::default()), protocol::subscription)?;
    Ok(MemberMetadata {
        instance: member.group_instance_id.clone(),
        rack: subscription.rack,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        topics: subscription.topics,
        regex: Arc::from(""),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        assignor: None,
        classic: Some(ClassicMetadata { session_timeout_ms: member.session_timeout_ms, protocols }),
    })
}

/// A consumer group without `leaving` as a classic group, if all that are left speak the classic
/// protocol and it may become one: what it is then, what ends it and begins that.
pub(in crate::group) fn to_classic(
    image: &ConsumerImage,
    leaving: &BTreeSet<MemberId>,
    cx: &Context<'_>,
) -> Option<(Upgrading, Vec<Record>)> {
    let left: BTreeMap<&MemberId, &Arc<ConsumerMember>> =
        image.members.iter().filter(|(id, _)| !leaving.contains(*id)).collect();
    let fits = !left.is_empty()
        && left.values().all(|member| member.is_classic())
        && cx.config.consumer.migration.allows_downgrade()
        && left.len() <= cx.config.group_size_max;
    if !fits {
        return None;
    }
    let name = common_protocol(&left)?;
    let group = cx.group.clone();
    let members = left.iter().map(|(id, member)| member_value(image, id, member, &name, cx));
    let value = GroupValue {
        protocol_type: Arc::from(CONSUMER),
        generation: image.epoch.epoch,
        protocol: Some(name.clone()),
        leader: left.keys().next().map(|id| (*id).clone()),
        state_ms: cx.now.wall_ms,
        members: members.collect(),
    };
    let protocols = left.iter().filter_map(|(id, member)| {
        let classic = member.metadata.classic.as_ref()?;
        Some(((*id).clone(), classic.protocols.clone()))
    });
    let protocols = protocols.collect();
    let ends = image.tombstones().into_iter();
    let mut records: Vec<Record> =
        ends.map(|fact| Record::Consumer { group: group.clone(), fact }).collect();
    records.push(Record::Group { group, value: Some(value.clone()) });
    Some((Upgrading { value, protocols }, records))
}

fn member_value(
    image: &ConsumerImage,
    id: &MemberId,
    member: &ConsumerMember,
    protocol: &Arc<str>,
    cx: &Context<'_>,
) -> MemberValue {
    let classic = member.metadata.classic.as_ref();
    let offered = classic.and_then(|c| c.protocols.iter().find(|of| of.name == *protocol));
    let subscription = offered.map(|of| of.metadata.clone()).unwrap_or_default();
    MemberValue {
        member_id: id.clone(),
        group_instance_id: member.metadata.instance.clone(),
        client_id: member.metadata.client_id.clone(),
        client_host: member.metadata.client_host.clone(),
        rebalance_timeout_ms: member.metadata.rebalance_timeout_ms,
        session_timeout_ms: classic.map_or(0, |classic| classic.session_timeout_ms),
        assignment: protocol::to_bytes(&image.target(id), &subscription, &*cx.known.metadata),
        subscription,
    }
}

/// The protocol that most members would take of those that all offer, the first by name among
/// equals.
fn common_protocol(members: &BTreeMap<&MemberId, &Arc<ConsumerMember>>) -> Option<Arc<str>> {
    let offers: Vec<Vec<&Arc<str>>> = members
        .values()
        .filter_map(|member| member.metadata.classic.as_ref())
        .map(|classic| classic.protocols.iter().map(|of| &of.name).collect())
        .collect();
    let is_common = |name: &&&Arc<str>| offers.iter().all(|names| names.contains(*name));
    let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
    for names in &offers {
        if let Some(choice) = names.iter().find(is_common) {
            *votes.entry(*choice).or_default() += 1;
        }
    }
    let most = votes.values().copied().max()?;
    votes.into_iter().find(|&(_, count)| count == most).map(|(name, _)| name.clone())
}
