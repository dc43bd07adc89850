//! The consumer group (KIP-848): members say what they want and have, the server says what they
//! shall have, and each goes there at its own pace.
//!
//! ```text
//! Empty ------- a member joins -------------------------> Assigning, Reconciling or Stable
//! Stable ------ a member comes, goes or wants others,
//!               or the topics it wants change:
//!               the group's epoch grows -----------------> Assigning
//! Assigning --- the next heartbeat, if the last targets
//!               are old enough (KIP-1263): new targets --> Reconciling
//! Reconciling - every member has its target -------------> Stable
//! any --------- the last member goes --------------------> Empty
//! any --------- all that are left speak the classic
//!               protocol --------------------------------> a classic group (`convert`)
//!
//! a member:
//! Stable ------ a target of a later epoch takes
//!               partitions from it ----------------------> UnrevokedPartitions, in the old epoch
//! Stable ------ one that gives it what others still own -> UnreleasedPartitions, in the new epoch
//! Stable ------ any other ------------------------------> Stable, in the new epoch
//! Unrevoked --- a heartbeat without them ----------------> as from Stable
//! Unrevoked --- its rebalance timeout is over -----------> out
//! Unreleased -- a heartbeat after they were released ----> as from Stable
//! any --------- silent for the session timeout ----------> out
//! ```
//!
//! All of this is stored, each part in a record of its own, and nothing of it lives besides: a
//! decision tries its records on a copy of the image ([`Draft`]) and hands them over. What lives
//! are timers, and which metadata the group was last held against ([`Live`]).
//!
//! Regular expressions are looked up as soon as a topic comes or goes and in the heartbeat that
//! brings one; Kafka does so apart, and every ten seconds at most.
//!
//! Source: KIP-848, KIP-1082, KIP-1101, KIP-1251, KIP-1263; `GroupMetadataManager`, `ConsumerGroup`,
//! `CurrentAssignmentBuilder`, `TargetAssignmentBuilder` of Kafka 4.3.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::ids::TopicId;

use crate::error::Refusal;
use crate::group::context::Context;
use crate::group::event::{ConsumerGroupHeartbeat, JOIN_EPOCH, MemberId, Timer};
use crate::group::image::consumer::{ConsumerImage, ConsumerMember};
use crate::group::response::HeartbeatResponse;
use crate::record::consumer::{
    Assignment, ConsumerFact, EpochValue, MemberMetadata, MemberState, OwnedPartitions,
};

mod admission;
mod classic;
mod convert;
mod describe;
mod draft;
mod leave;
mod protocol;
mod reconcile;
mod subscription;
mod target;

pub(in crate::group) use admission::{check, check_commit, check_fetch};
pub(in crate::group) use convert::{from_classic, to_classic, upgrade_allowed};
pub(in crate::group) use describe::describe;
pub(in crate::group) use draft::Draft;
pub(in crate::group) use leave::Leaving;

/// What lives of a consumer group.
#[derive(Debug, Default)]
pub(in crate::group) struct Live {
    /// Version of the metadata that the group was last held against.
    seen: Option<u64>,
    /// Classic members that were told to join again.
    rejoining: BTreeSet<MemberId>,
}

/// Partitions that a member says it has.
pub(in crate::group) type Owned<'a> = Option<&'a [(TopicId, Vec<i32>)]>;

/// What a request changes of what its member wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Same,
    Changed,
}

impl Live {
    /// Starts the sessions of the members that the log has.
    pub(in crate::group) fn resume(image: &ConsumerImage, cx: &mut Context<'_>) -> Self {
        for (id, member) in &image.members {
            let session_ms = session_timeout_ms(member, cx);
            cx.set_session(id, session_ms);
            if member.current.state == MemberState::UnrevokedPartitions && !member.is_classic() {
                let timer = Timer::Revocation(cx.group.clone(), id.clone());
                cx.set_timer(timer, member.metadata.rebalance_timeout_ms);
            }
        }
        Self::default()
    }

    /// Stops all timers: the group's live half ends.
    pub(in crate::group) fn abandon(image: &ConsumerImage, cx: &mut Context<'_>) {
        image.members.keys().for_each(|id| cancel_timers(id, cx));
    }

    /// A heartbeat that stays or joins.
    pub(in crate::group) fn heartbeat(
        &mut self,
        mut draft: Draft<'_>,
        request: ConsumerGroupHeartbeat,
        cx: &mut Context<'_>,
    ) -> Result<HeartbeatResponse, Refusal> {
        let id = admission::member_id(&request);
        admission::check_room(&draft, &id, cx.config)?;
        let before = admission::member(&mut draft, &id, &request)?;
        let is_new = !draft.members.contains_key(&id);
        let after = updated(&before.metadata, &request);
        let wish = subscription::wish(&before.metadata, &after);
        if is_new || after != before.metadata {
            draft.decide(ConsumerFact::Member(id.clone(), Some(after)));
        }
        self.follow_subscriptions(&mut draft, &before.metadata, wish, cx)?;
        target::update(&mut draft, cx);
        let owned = request.owned.as_deref();
        let moved = reconcile::advance(&mut draft, &id, owned, wish, cx)?;
        let Some(member) = draft.members.get(&id).cloned() else {
            unreachable!("the member was decided above")
        };
        let is_full = request.rebalance_timeout_ms.is_some()
            && (request.topics.is_some() || request.regex.is_some())
            && owned.is_some();
        let tell = request.epoch == JOIN_EPOCH
            || is_full
            || !same_partitions(&before.current.assigned, &member.current.assigned);
        cx.set_session(&id, session_timeout_ms(&member, cx));
        if moved {
            tell_moved(&id, &before, &member, cx);
        }
        if is_new {
            tell_joined(&id, cx);
        }
        self.rejoining.remove(&id);
        draft.commit(cx);
        Ok(HeartbeatResponse {
            epoch: member.current.epoch,
            heartbeat_interval_ms: heartbeat_interval_ms(cx),
            assignment: tell.then(|| without_epochs(&member.current.assigned)),
            member: id,
        })
    }

    /// Resolves regular expressions and lets the group's epoch grow if what is subscribed to, or
    /// what there is of it, has changed.
    fn follow_subscriptions(
        &mut self,
        draft: &mut Draft<'_>,
        before: &MemberMetadata,
        wish: Wish,
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        let is_news = self.seen != Some(cx.known.version);
        if is_news || wish == Wish::Changed {
            subscription::drop_regex(draft, &before.regex);
            subscription::resolve(draft, is_news, cx)?;
        }
        if is_news || wish == Wish::Changed {
            let metadata_hash = subscription::hash(draft, cx);
            if wish == Wish::Changed || metadata_hash != draft.epoch.metadata_hash {
                grow(draft, metadata_hash);
            }
            self.seen = Some(cx.known.version);
        }
        Ok(())
    }
}

/// The next epoch of the group.
fn grow(draft: &mut Draft<'_>, metadata_hash: i64) {
    let epoch = draft.epoch.epoch.saturating_add(1);
    draft.decide(ConsumerFact::Epoch(Some(EpochValue { epoch, metadata_hash })));
}

/// What the member is now, given what it was.
fn updated(before: &MemberMetadata, request: &ConsumerGroupHeartbeat) -> MemberMetadata {
    let mut after = before.clone();
    if request.instance.is_some() {
        after.instance.clone_from(&request.instance);
    }
    if request.rack.is_some() {
        after.rack.clone_from(&request.rack);
    }
    if let Some(timeout_ms) = request.rebalance_timeout_ms {
        after.rebalance_timeout_ms = timeout_ms;
    }
    if request.assignor.is_some() {
        after.assignor.clone_from(&request.assignor);
    }
    if let Some(topics) = &request.topics {
        after.topics = topics.iter().cloned().collect();
    }
    if let Some(regex) = &request.regex {
        after.regex = regex.clone();
    }
    after.client_id = request.client_id.clone();
    after.client_host = request.client_host.clone();
    after.classic = None;
    after
}

/// A classic member brings its own; the group's, then the node's setting else.
fn session_timeout_ms(member: &ConsumerMember, cx: &Context<'_>) -> i32 {
    let own = member.metadata.classic.as_ref().map(|classic| classic.session_timeout_ms);
    own.or_else(|| cx.known.metadata.group_settings(cx.group).session_timeout_ms)
        .unwrap_or(cx.config.consumer.session_timeout_ms)
}

fn heartbeat_interval_ms(cx: &Context<'_>) -> i32 {
    let settings = cx.known.metadata.group_settings(cx.group);
    settings.heartbeat_interval_ms.unwrap_or(cx.config.consumer.heartbeat_interval_ms)
}

fn cancel_timers(id: &MemberId, cx: &mut Context<'_>) {
    cx.cancel_session(id);
    for timer in [Timer::Revocation, Timer::Rejoin, Timer::MemberSync] {
        cx.cancel(timer(cx.group.clone(), id.clone()));
    }
}

fn same_partitions(a: &OwnedPartitions, b: &OwnedPartitions) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|((topic, a), (other, b))| topic == other && a.keys().eq(b.keys()))
}

fn without_epochs(owned: &OwnedPartitions) -> Assignment {
    let indexes = |of: &BTreeMap<i32, i32>| of.keys().copied().collect();
    owned.iter().map(|(topic, partitions)| (*topic, indexes(partitions))).collect()
}

fn tell_joined(id: &MemberId, cx: &Context<'_>) {
    tracing::debug!(group = %cx.group, member = %id, "member joins");
    cx.events.emit(|| {
        Event::new(EventKind::GroupJoin, cx.now.wall_ms)
            .protocol(Protocol::Kafka)
            .client(id.clone())
            .cause(format!("group {}: joined", cx.group))
    });
}

/// Tells what a member is to give up, and what it got.
fn tell_moved(id: &MemberId, before: &ConsumerMember, after: &ConsumerMember, cx: &Context<'_>) {
    let count = |owned: &OwnedPartitions| owned.values().map(BTreeMap::len).sum::<usize>();
    let (revoking, assigned) = (count(&after.current.revoking), count(&after.current.assigned));
    let had = count(&before.current.assigned);
    let event = |kind, what: String| {
        Event::new(kind, cx.now.wall_ms)
            .protocol(Protocol::Kafka)
            .client(id.clone())
            .cause(format!("group {}: epoch {}, {what}", cx.group, after.current.epoch))
    };
    if revoking > 0 {
        cx.events
            .emit(|| event(EventKind::GroupRevoke, format!("{revoking} partitions to give up")));
    }
    if assigned != had || before.current.epoch != after.current.epoch {
        cx.events.emit(|| event(EventKind::GroupAssign, format!("{assigned} partitions")));
    }
}

/// The member as Kafka's descriptions count it.
fn client_member(draft: &Draft<'_>, id: &MemberId) -> Arc<ConsumerMember> {
    draft.members.get(id).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests;
