//! One member of a classic group, and what all members can agree on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::group::event::{JoinGroup, MemberId, Protocol};
use crate::record::{GroupValue, MemberValue};
use crate::shard::RequestId;

/// A member's live state.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) instance: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) client_host: Arc<str>,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    /// In order of preference.
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// What it was given last, until it gets another assignment or is out: events tell the difference.
    pub(super) held: Bytes,
    /// The join that waits for the rebalance.
    pub(super) joining: Option<RequestId>,
    /// The sync that waits for the leader.
    pub(super) syncing: Option<RequestId>,
    /// Its first join is not answered yet: it has no id to send heartbeats with.
    pub(super) is_new: bool,
}

impl Member {
    pub(super) fn joining(join: JoinGroup) -> Self {
        let protocols = join.protocols.into_iter().map(kept).collect();
        Self {
            instance: join.instance,
            client_id: join.client_id,
            client_host: join.client_host,
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            session_timeout_ms: join.session_timeout_ms,
            protocols,
            assignment: Bytes::new(),
            held: Bytes::new(),
            joining: None,
            syncing: None,
            is_new: true,
        }
    }

    pub(super) fn from_value(stored: &MemberValue, group: &GroupValue) -> Self {
        let protocol = |name: &Arc<str>| Protocol {
            name: name.clone(),
            metadata: stored.subscription.clone(),
        };
        Self {
            instance: stored.group_instance_id.clone(),
            client_id: stored.client_id.clone(),
            client_host: stored.client_host.clone(),
            // Version 0 of the record has no rebalance timeout.
            rebalance_timeout_ms: match stored.rebalance_timeout_ms {
                -1 => stored.session_timeout_ms,
                timeout_ms => timeout_ms,
            },
            session_timeout_ms: stored.session_timeout_ms,
            protocols: group.protocol.iter().map(protocol).collect(),
            assignment: stored.assignment.clone(),
            held: stored.assignment.clone(),
            joining: None,
            syncing: None,
            is_new: false,
        }
    }

    /// Its metadata for a protocol; empty for one it does not offer.
    pub(super) fn metadata(&self, protocol: Option<&Arc<str>>) -> Bytes {
        self.protocols
            .iter()
            .find(|offered| Some(&offered.name) == protocol)
            .map_or_else(Bytes::new, |offered| offered.metadata.clone())
    }

    /// Silence is no fault while the server owes it an answer; a new member that nobody waits for
    /// any more is one, though.
    pub(super) fn may_be_silent(&self) -> bool {
        !self.is_new && (self.joining.is_some() || self.syncing.is_some())
    }
}

/// A protocol to be kept: its metadata must not hold the request that they came in.
pub(super) fn kept(offered: Protocol) -> Protocol {
    Protocol { metadata: Bytes::copy_from_slice(&offered.metadata), ..offered }
}

/// How many members offer each protocol.
#[derive(Debug, Default)]
pub(super) struct Votes {
    offers: BTreeMap<Arc<str>, usize>,
}

impl Votes {
    /// Each name once, however often a member lists it.
    fn names(protocols: &[Protocol]) -> BTreeSet<&Arc<str>> {
        protocols.iter().map(|offered| &offered.name).collect()
    }

    pub(super) fn add(&mut self, protocols: &[Protocol]) {
        for name in Self::names(protocols) {
            *self.offers.entry(name.clone()).or_default() += 1;
        }
    }

    pub(super) fn withdraw(&mut self, protocols: &[Protocol]) {
        for name in Self::names(protocols) {
            if let Some(count) = self.offers.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.offers.remove(name);
                }
            }
        }
    }

    pub(super) fn of(&self, name: &str) -> usize {
        self.offers.get(name).copied().unwrap_or(0)
    }

    /// Each member votes for the first of its protocols that all offer; the most votes win, the
    /// first by name among equals.
    pub(super) fn winner(&self, members: &BTreeMap<MemberId, Member>) -> Option<Arc<str>> {
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in members.values() {
            let choice = member.protocols.iter().find(|p| self.of(&p.name) == members.len());
            if let Some(choice) = choice {
                *votes.entry(&choice.name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|&(_, count)| count == most).map(|(name, _)| name.clone())
    }
}
