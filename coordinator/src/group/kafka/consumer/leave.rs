//! Members that leave or are put out.

use std::collections::BTreeSet;
use std::sync::Arc;

use duolog_log_core::event::{Event, EventKind, Protocol};

use super::{Draft, Live, admission, cancel_timers, grow, subscription};
use crate::error::Refusal;
use crate::group::context::Context;
use crate::group::event::{ConsumerGroupHeartbeat, LEAVE_FOR_NOW_EPOCH, MemberId, Timer};
use crate::group::image::consumer::ConsumerImage;
use crate::group::response::HeartbeatResponse;
use crate::record::consumer::{ConsumerFact, CurrentAssignment, MemberState, OwnedPartitions};

/// What a member that leaves leaves behind.
#[derive(Debug)]
pub(in crate::group) enum Leaving {
    /// Its place, which a static member will take again.
    ForNow(HeartbeatResponse),
    /// Nothing: it is to be taken out.
    ForGood(HeartbeatResponse, MemberId),
}

/// The facts that end a member.
pub(super) fn removal(id: &MemberId) -> [ConsumerFact; 3] {
    [
        ConsumerFact::Current(id.clone(), None),
        ConsumerFact::Target(id.clone(), None),
        ConsumerFact::Member(id.clone(), None),
    ]
}

impl Live {
    /// A heartbeat that leaves.
    pub(in crate::group) fn leave(
        mut draft: Draft<'_>,
        request: ConsumerGroupHeartbeat,
        cx: &mut Context<'_>,
    ) -> Result<Leaving, Refusal> {
        let id = request.member;
        let member = match &request.instance {
            Some(instance) => admission::static_member(&draft, &id, instance)?.1.clone(),
            None => {
                let member = draft.members.get(&id).cloned();
                member.ok_or_else(|| admission::unknown(cx.group, &id))?
            }
        };
        let response = HeartbeatResponse {
            member: id.clone(),
            epoch: request.epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        };
        if request.epoch != LEAVE_FOR_NOW_EPOCH {
            return Ok(Leaving::ForGood(response, id));
        }
        // Its session goes on: it must be back before that ends.
        let current = CurrentAssignment {
            epoch: LEAVE_FOR_NOW_EPOCH,
            revoking: OwnedPartitions::new(),
            ..member.current.clone()
        };
        draft.decide(ConsumerFact::Current(id.clone(), Some(current)));
        cx.cancel(Timer::Revocation(cx.group.clone(), id));
        draft.commit(cx);
        Ok(Leaving::ForNow(response))
    }

    /// Takes members out; the group's epoch grows.
    pub(in crate::group) fn expel(
        &mut self,
        image: &ConsumerImage,
        ids: &BTreeSet<MemberId>,
        cause: &str,
        cx: &mut Context<'_>,
    ) {
        let mut draft = Draft::of(image);
        let regexes = ids.iter().filter_map(|id| image.members.get(id));
        let regexes: BTreeSet<Arc<str>> =
            regexes.map(|member| member.metadata.regex.clone()).collect();
        for id in ids {
            for fact in removal(id) {
                draft.decide(fact);
            }
            cancel_timers(id, cx);
            self.rejoining.remove(id);
            tell_left(id, cause, cx);
        }
        for regex in &regexes {
            subscription::drop_regex(&mut draft, regex);
        }
        let metadata_hash = subscription::hash(&draft, cx);
        grow(&mut draft, metadata_hash);
        draft.commit(cx);
    }

    /// Whether a member that had so long to give up partitions has not done so.
    pub(in crate::group) fn is_late(image: &ConsumerImage, id: &MemberId) -> bool {
        let state = image.members.get(id).map(|member| member.current.state);
        state == Some(MemberState::UnrevokedPartitions)
    }
}

pub(super) fn tell_left(id: &MemberId, cause: &str, cx: &Context<'_>) {
    tracing::debug!(group = %cx.group, member = %id, cause, "member left");
    cx.events.emit(|| {
        Event::new(EventKind::GroupLeave, cx.now.wall_ms)
            .protocol(Protocol::Kafka)
            .client(id.clone())
            .cause(format!("group {}: {cause}", cx.group))
    });
}
