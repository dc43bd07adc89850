//! The classic group: members join, a leader assigns, all consume until something changes.
//!
//! ```text
//! Empty ------- a member joins ------------------------> PreparingRebalance (initial)
//! Preparing --- (initial) group.initial.rebalance.delay
//!               is over, extended while members come --> CompletingRebalance
//! Preparing --- all members joined, or the rebalance
//!               timeout is over ------------------------> CompletingRebalance
//! Preparing --- the same with no member left ----------> Empty, recorded
//! Completing -- the leader's SyncGroup ----------------> Stable, recorded
//! Completing -- a member joins anew, leaves, expires,
//!               or does not sync in time --------------> PreparingRebalance
//! Stable ------ the same, or the leader joins again ---> PreparingRebalance
//! Stable ------ a static member comes back and the
//!               protocol stays -------------------------> Stable, recorded
//! ```
//!
//! Kafka's fifth state, Dead, is here the absence of the group.
//!
//! What is stored is one record per finished rebalance; in `Stable` and `Empty` this live state
//! says what that record says, and is rebuilt from it ([`ClassicGroup::from_value`]). A record that
//! the log refuses takes the live state back to it.
//!
//! Source: KIP-62, KIP-134, KIP-345, KIP-394, KIP-559, KIP-814; `GroupMetadataManager` and
//! `ClassicGroup` of Kafka 4.3.1. This answers where Kafka would leave a request without an
//! answer: a join or sync that the same member repeats, and the sync of a member that leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{GroupId, MemberId, Protocol, Timer};
use crate::group::response::{GroupState, Response};
use crate::record::consumer::StoredProtocol;
use crate::record::{GroupValue, MemberValue, Record};
use crate::shard::RequestId;
use member::{Member, Votes};

mod describe;
mod join;
mod leave;
mod member;
mod rebalance;
mod revoke;
mod sync;

/// Where the group is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Empty,
    PreparingRebalance(Joining),
    CompletingRebalance,
    Stable,
}

/// What ends the join phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    /// The group was empty: the delay, then as much again as members keep coming, up to the
    /// rebalance timeout.
    Initial { delay_ms: i32, remaining_ms: i32, member_added: bool },
    /// All members, or the rebalance timeout.
    Rejoin,
}

/// A classic group on its way from or to a consumer group (KIP-848).
#[derive(Debug)]
pub(in crate::group) struct Upgrading {
    /// As it would be stored.
    pub(in crate::group) value: GroupValue,
    /// All that each member offers.
    pub(in crate::group) protocols: BTreeMap<MemberId, Vec<StoredProtocol>>,
}

/// A classic group's live state.
#[derive(Debug)]
pub(in crate::group) struct ClassicGroup {
    phase: Phase,
    /// When it came into its phase, milliseconds since 1970, −1 if not known.
    state_ms: i64,
    generation: i32,
    protocol_type: Option<Arc<str>>,
    /// Chosen with the generation.
    protocol: Option<Arc<str>>,
    leader: Option<MemberId>,
    members: BTreeMap<MemberId, Member>,
    /// Member ids of static members by instance id.
    instances: BTreeMap<Arc<str>, MemberId>,
    /// Ids that were given and not yet come back with.
    pending: BTreeSet<MemberId>,
    /// Members that owe a SyncGroup in this generation.
    unsynced: BTreeSet<MemberId>,
    /// How many members wait in a join.
    joining: usize,
    votes: Votes,
}

impl ClassicGroup {
    /// The group as its last record has it; `None` for a group without one.
    pub(in crate::group) fn from_value(value: Option<&GroupValue>) -> Self {
        let mut group = Self {
            phase: Phase::Empty,
            state_ms: -1,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            joining: 0,
            votes: Votes::default(),
        };
        let Some(value) = value else { return group };
        group.state_ms = value.state_ms;
        group.generation = value.generation;
        group.protocol_type = Some(value.protocol_type.clone()).filter(|text| !text.is_empty());
        group.protocol = value.protocol.clone();
        group.leader = value.leader.clone();
        for stored in &value.members {
            group.insert(stored.member_id.clone(), Member::from_value(stored, value));
        }
        if !group.members.is_empty() {
            group.phase = Phase::Stable;
        }
        group
    }

    /// The record of this generation, if it ended now.
    fn to_value(&self) -> GroupValue {
        let members = self.members.iter().map(|(id, member)| MemberValue {
            member_id: id.clone(),
            group_instance_id: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            subscription: member.metadata(self.protocol.as_ref()),
            assignment: member.assignment.clone(),
        });
        GroupValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            state_ms: self.state_ms,
            members: members.collect(),
        }
    }

    /// The group as it goes over to the consumer protocol.
    pub(in crate::group) fn upgrading(&self) -> Upgrading {
        let stored = |offered: &Protocol| StoredProtocol {
            name: offered.name.clone(),
            metadata: offered.metadata.clone(),
        };
        let offers = |member: &Member| member.protocols.iter().map(stored).collect();
        let members = self.members.iter();
        let protocols = members.map(|(id, member)| (id.clone(), offers(member))).collect();
        Upgrading { value: self.to_value(), protocols }
    }

    /// The group as it comes from the consumer protocol, its members' sessions begun.
    pub(in crate::group) fn downgraded(from: Upgrading, cx: &mut Context<'_>) -> Self {
        let mut group = Self::from_value(Some(&from.value));
        for (id, protocols) in from.protocols {
            if let Some(member) = group.members.get_mut(&id) {
                group.votes.withdraw(&member.protocols);
                let offered = |stored: StoredProtocol| Protocol {
                    name: stored.name,
                    metadata: stored.metadata,
                };
                member.protocols = protocols.into_iter().map(offered).collect();
                group.votes.add(&member.protocols);
            }
        }
        for (id, member) in &group.members {
            cx.set_session(id, member.session_timeout_ms);
        }
        group
    }

    fn record(&self, group: &GroupId) -> Record {
        Record::Group { group: group.clone(), value: Some(self.to_value()) }
    }

    pub(in crate::group) fn state(&self) -> GroupState {
        match self.phase {
            Phase::Empty => GroupState::Empty,
            Phase::PreparingRebalance(_) => GroupState::PreparingRebalance,
            Phase::CompletingRebalance => GroupState::CompletingRebalance,
            Phase::Stable => GroupState::Stable,
        }
    }

    pub(in crate::group) fn protocol_type(&self) -> Option<&Arc<str>> {
        self.protocol_type.as_ref()
    }

    /// Whether Kafka clients hold the group: members, or ids that may yet come back.
    pub(in crate::group) fn is_held(&self) -> bool {
        !self.members.is_empty() || !self.pending.is_empty()
    }

    /// Whether it has no members; ids that were given out count for nothing.
    pub(in crate::group) fn is_empty(&self) -> bool {
        self.phase == Phase::Empty
    }

    /// Whether the stored record says all there is to say.
    pub(in crate::group) fn is_idle(&self) -> bool {
        self.phase == Phase::Empty && !self.is_held()
    }

    /// The live state as a record would have it, to be held against the stored one.
    #[cfg(test)]
    pub(in crate::group) fn value_at_rest(&self) -> Option<GroupValue> {
        match self.phase {
            Phase::Stable => Some(self.to_value()),
            _ => None,
        }
    }

    /// Starts the sessions of the members that the log has; a group above `group.max.size` has to
    /// shrink by a rebalance.
    pub(in crate::group) fn resume(&mut self, cx: &mut Context<'_>) {
        for (id, member) in &self.members {
            cx.set_session(id, member.session_timeout_ms);
        }
        if self.members.len() > cx.config.group_size_max {
            self.prepare_rebalance(cx);
        }
    }

    /// Answers all that waits with `error` and stops all timers: the group's live state ends.
    pub(in crate::group) fn abandon(&mut self, error: GroupError, cx: &mut Context<'_>) {
        for (id, member) in &mut self.members {
            for request in [member.joining.take(), member.syncing.take()].into_iter().flatten() {
                cx.respond(Some(request), Err(error));
            }
            cx.cancel_session(id);
        }
        self.joining = 0;
        for id in &self.pending {
            cx.cancel_session(id);
        }
        cx.cancel(Timer::Join(cx.group.clone()));
        cx.cancel(Timer::Sync(cx.group.clone()));
    }

    /// Heartbeat (key 12).
    pub(in crate::group) fn heartbeat(
        &mut self,
        member: &MemberId,
        instance: Option<&Arc<str>>,
        generation: i32,
        cx: &mut Context<'_>,
    ) -> Result<Response, GroupError> {
        self.validate(member, instance, generation)?;
        self.renew(member, cx);
        match self.phase {
            Phase::Empty => Err(GroupError::UnknownMemberId),
            Phase::PreparingRebalance(_) => Err(GroupError::RebalanceInProgress),
            Phase::CompletingRebalance | Phase::Stable => Ok(Response::Heartbeat),
        }
    }

    /// Whether a commit may come in (case B58). Renews the session of a member.
    pub(in crate::group) fn admit_commit(
        &mut self,
        member: &MemberId,
        instance: Option<&Arc<str>>,
        generation: i32,
        cx: &mut Context<'_>,
    ) -> Result<(), GroupError> {
        // Without a generation: an administrator, or a consumer that manages its partitions itself.
        // Its instance id means nothing then.
        if generation < 0 && self.phase == Phase::Empty {
            return Ok(());
        }
        if generation < 0 && member.is_empty() && instance.is_none() {
            return Err(GroupError::UnknownMemberId);
        }
        self.validate(member, instance, generation)?;
        match self.phase {
            // The member knows the generation from its join, but not yet its partitions.
            Phase::CompletingRebalance => Err(GroupError::RebalanceInProgress),
            Phase::Empty => Ok(()),
            Phase::PreparingRebalance(_) | Phase::Stable => {
                self.renew(member, cx);
                Ok(())
            }
        }
    }

    /// Is `member` in the group, under `instance` if that is given?
    fn validate_member(
        &self,
        member: &MemberId,
        instance: Option<&Arc<str>>,
    ) -> Result<(), GroupError> {
        if let Some(instance) = instance {
            match self.instances.get(instance) {
                None => return Err(GroupError::UnknownMemberId),
                Some(holder) if holder != member => return Err(GroupError::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member) { Ok(()) } else { Err(GroupError::UnknownMemberId) }
    }

    fn validate(
        &self,
        member: &MemberId,
        instance: Option<&Arc<str>>,
        generation: i32,
    ) -> Result<(), GroupError> {
        self.validate_member(member, instance)?;
        if generation == self.generation { Ok(()) } else { Err(GroupError::IllegalGeneration) }
    }

    /// Starts the member's session anew.
    fn renew(&self, id: &MemberId, cx: &mut Context<'_>) {
        if let Some(member) = self.members.get(id) {
            cx.set_session(id, member.session_timeout_ms);
        }
    }

    fn insert(&mut self, id: MemberId, member: Member) {
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.votes.add(&member.protocols);
        self.joining += usize::from(member.joining.is_some());
        self.members.insert(id, member);
    }

    /// Takes a member, or a pending id, out. What it waited for is the caller's to answer.
    fn remove(&mut self, id: &MemberId) -> Option<Member> {
        self.pending.remove(id);
        self.unsynced.remove(id);
        let member = self.members.remove(id)?;
        if let Some(instance) = &member.instance {
            self.instances.remove(instance);
        }
        self.votes.withdraw(&member.protocols);
        self.joining -= usize::from(member.joining.is_some());
        if self.leader.as_ref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Takes a member out and tells what waits of it that it is not known any more.
    fn expel(&mut self, id: &MemberId, cx: &mut Context<'_>) {
        let Some(member) = self.remove(id) else { return };
        cx.cancel_session(id);
        revoke::tell(id, (&member.held, &Bytes::new()), "no member any more", cx);
        if let Some(request) = member.joining {
            cx.refuse_join(request, Arc::from(""), GroupError::UnknownMemberId);
        }
        if let Some(request) = member.syncing {
            cx.respond(Some(request), Err(GroupError::UnknownMemberId));
        }
    }

    /// Puts a join to wait; an earlier one of the same member is told to try again.
    fn park_join(&mut self, id: &MemberId, request: RequestId, cx: &mut Context<'_>) {
        let Some(member) = self.members.get_mut(id) else { return };
        match member.joining.replace(request) {
            Some(earlier) => {
                cx.refuse_join(earlier, id.clone(), GroupError::RebalanceInProgress);
            }
            None => self.joining += 1,
        }
    }

    /// Whether a member of these protocols can be in the group.
    fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.phase == Phase::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|offered| self.votes.of(&offered.name) == self.members.len())
    }
}

#[cfg(test)]
mod scripts;
#[cfg(test)]
mod tests;
