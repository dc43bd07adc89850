//! The durable half of a consumer group (KIP-848).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use crate::group::event::MemberId;
use crate::group::response::GroupState;
use crate::record::consumer::{
    Assignment, ConsumerFact, CurrentAssignment, EpochValue, MemberMetadata, MemberState,
    OwnedPartitions, ResolvedRegex, TargetEpochValue,
};

/// Epoch of a new group and of its targets, of which no record is written.
const FIRST_EPOCH: i32 = 1;

/// A member: who it is and what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerMember {
    /// Who it is and what it wants.
    pub metadata: MemberMetadata,
    /// What it has.
    pub current: CurrentAssignment,
}

impl ConsumerMember {
    /// Whether it speaks the classic protocol.
    #[must_use]
    pub fn is_classic(&self) -> bool {
        self.metadata.classic.is_some()
    }

    /// Whether it is in epoch `epoch` and has all that it shall have.
    #[must_use]
    pub fn is_reconciled_to(&self, epoch: i32) -> bool {
        self.current.state == MemberState::Stable && self.current.epoch == epoch
    }

    /// Whether it may consume the partition, or has not given it up yet.
    #[must_use]
    pub fn owns(&self, topic: TopicId, partition: i32) -> bool {
        [&self.current.assigned, &self.current.revoking].into_iter().any(|owned| {
            owned.get(&topic).is_some_and(|partitions| partitions.contains_key(&partition))
        })
    }

    /// All that it owns, also what it has to give up: what ConsumerGroupDescribe tells.
    #[must_use]
    pub fn owned(&self) -> Assignment {
        let mut all = Assignment::new();
        for (topic, of) in self.current.assigned.iter().chain(&self.current.revoking) {
            all.entry(*topic).or_default().extend(of.keys());
        }
        all
    }

    /// The epoch in which it got a partition that it owns.
    #[must_use]
    pub fn assignment_epoch(&self, topic: TopicId, partition: i32) -> Option<i32> {
        let of = |owned: &OwnedPartitions| owned.get(&topic)?.get(&partition).copied();
        of(&self.current.assigned).or_else(|| of(&self.current.revoking))
    }
}

/// A consumer group as the log has it. Changed by [`Self::apply`] and nothing else. Members are
/// shared, so that a decision can try its records on a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerImage {
    /// The group's epoch; 1 until a record says more.
    pub epoch: EpochValue,
    /// For which epoch the targets are.
    pub target_epoch: TargetEpochValue,
    /// By id.
    pub members: BTreeMap<MemberId, Arc<ConsumerMember>>,
    /// What each member shall have.
    pub targets: BTreeMap<MemberId, Arc<Assignment>>,
    /// What each regular expression means.
    pub regexes: BTreeMap<Arc<str>, Arc<ResolvedRegex>>,
}

impl Default for ConsumerImage {
    /// A group that has had no subscription yet.
    fn default() -> Self {
        Self {
            epoch: EpochValue { epoch: FIRST_EPOCH, metadata_hash: 0 },
            target_epoch: TargetEpochValue { epoch: FIRST_EPOCH, assigned_ms: 0 },
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            regexes: BTreeMap::new(),
        }
    }
}

impl ConsumerImage {
    /// Applies one part; whether anything is left of the group.
    #[must_use]
    pub fn apply(&mut self, fact: ConsumerFact) -> bool {
        match fact {
            ConsumerFact::Epoch(Some(value)) => self.epoch = value,
            ConsumerFact::Epoch(None) => return false,
            ConsumerFact::Member(id, Some(metadata)) => {
                Arc::make_mut(self.members.entry(id).or_default()).metadata = metadata;
            }
            ConsumerFact::Member(id, None) => {
                self.members.remove(&id);
            }
            ConsumerFact::TargetEpoch(value) => {
                self.target_epoch = value.unwrap_or(Self::default().target_epoch);
            }
            ConsumerFact::Target(id, Some(target)) => {
                self.targets.insert(id, Arc::new(target));
            }
            ConsumerFact::Target(id, None) => {
                self.targets.remove(&id);
            }
            ConsumerFact::Current(id, Some(current)) => {
                Arc::make_mut(self.members.entry(id).or_default()).current = current;
            }
            // Its member goes with the next record, or comes back anew.
            ConsumerFact::Current(id, None) => {
                if let Some(member) = self.members.get_mut(&id) {
                    Arc::make_mut(member).current = CurrentAssignment::default();
                }
            }
            ConsumerFact::Regex(regex, Some(resolved)) => {
                self.regexes.insert(regex, Arc::new(resolved));
            }
            ConsumerFact::Regex(regex, None) => {
                self.regexes.remove(&regex);
            }
        }
        true
    }

    /// State as Kafka's tools know it.
    #[must_use]
    pub fn state(&self) -> GroupState {
        let target = self.target_epoch.epoch;
        if self.members.is_empty() {
            GroupState::Empty
        } else if self.epoch.epoch > target {
            GroupState::Assigning
        } else if self.members.values().all(|member| member.is_reconciled_to(target)) {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
    }

    /// The member that has this `group.instance.id`.
    #[must_use]
    pub fn static_member(&self, instance: &str) -> Option<(&MemberId, &Arc<ConsumerMember>)> {
        let has = |member: &ConsumerMember| member.metadata.instance.as_deref() == Some(instance);
        self.members.iter().find(|(_, member)| has(member))
    }

    /// What a member shall have.
    #[must_use]
    pub fn target(&self, member: &MemberId) -> Arc<Assignment> {
        self.targets.get(member).cloned().unwrap_or_default()
    }

    /// How many members subscribe to a regular expression.
    #[must_use]
    pub fn regex_subscribers(&self, regex: &str) -> usize {
        self.members.values().filter(|member| &*member.metadata.regex == regex).count()
    }

    /// Names that a member subscribes to, by name or by what its regular expression means.
    pub fn subscription<'a>(
        &'a self,
        metadata: &'a MemberMetadata,
    ) -> impl Iterator<Item = &'a Arc<str>> {
        let resolved = self.regexes.get(&metadata.regex).filter(|_| !metadata.regex.is_empty());
        metadata.topics.iter().chain(resolved.into_iter().flat_map(|regex| &regex.topics))
    }

    /// Names that any member subscribes to.
    #[must_use]
    pub fn subscribed_topics(&self) -> BTreeSet<Arc<str>> {
        let members = self.members.values();
        members.flat_map(|member| self.subscription(&member.metadata)).cloned().collect()
    }

    /// The facts that end the group, in an order in which each can be replayed.
    #[must_use]
    pub fn tombstones(&self) -> Vec<ConsumerFact> {
        let ids = || self.members.keys().cloned();
        let currents = ids().map(|id| ConsumerFact::Current(id, None));
        let targets = self.targets.keys().cloned().map(|id| ConsumerFact::Target(id, None));
        let members = ids().map(|id| ConsumerFact::Member(id, None));
        let regexes = self.regexes.keys().cloned().map(|regex| ConsumerFact::Regex(regex, None));
        currents
            .chain(targets)
            .chain([ConsumerFact::TargetEpoch(None)])
            .chain(members)
            .chain(regexes)
            .chain([ConsumerFact::Epoch(None)])
            .collect()
    }
}
