//! Members of one group that want different things.
//!
//! Each member divides the queues of the topics that it knows of among all members, so where their
//! subscriptions differ, queues have no reader and messages pass filters that they should not. The
//! latest heartbeat speaks for the group, silently; this says so on the console. `mqadmin
//! consumerStatus` shows the same by asking the members themselves.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::backend::{Backend, Subscription};
use crate::complaints::shortened;
use crate::dispatch::Shared;
use crate::limits::COMPARED_MEMBERS_MAX;

/// What each member of each group said last.
#[derive(Debug, Default)]
pub(crate) struct Compared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    groups: HashMap<Box<str>, HashMap<Arc<str>, u64>>,
    members: usize,
}

/// What a member wants, in short: topics and expressions, not when it said so.
pub(crate) fn signature(subscriptions: &[Arc<Subscription>]) -> u64 {
    let mut all: Vec<_> = subscriptions
        .iter()
        .map(|one| (&*one.topic, &*one.expression, &*one.expression_type))
        .collect();
    all.sort_unstable();
    let mut hasher = DefaultHasher::new();
    all.hash(&mut hasher);
    hasher.finish()
}

impl Compared {
    /// Remembers what a member wants; one of `live` that wants something else.
    fn differing(
        &self,
        group: &str,
        client: &Arc<str>,
        signature: u64,
        live: impl Fn(&str) -> bool,
    ) -> Option<Arc<str>> {
        let mut state = self.0.lock();
        let state = &mut *state;
        // What is forgotten is compared again with the next heartbeats.
        if state.members >= COMPARED_MEMBERS_MAX {
            *state = State::default();
        }
        let members = state.groups.entry(group.into()).or_default();
        let before = members.len();
        members.retain(|known, _| live(known));
        members.insert(Arc::clone(client), signature);
        let other = members.iter().find(|(_, known)| **known != signature);
        let other = other.map(|(other, _)| Arc::clone(other));
        state.members = (state.members + members.len()).saturating_sub(before);
        other
    }
}

impl<B: Backend> Shared<B> {
    /// Compares what a member of `group` wants with what the others do.
    pub(crate) fn compare_subscriptions(&self, group: &str, client: &Arc<str>, signature: u64) {
        let view = self.backend.group(group);
        let live = |id: &str| {
            let mut members = view.iter().flat_map(|view| &view.members);
            members.any(|member| *member.client.client_id == *id)
        };
        let Some(other) = self.compared.differing(group, client, signature, live) else { return };
        let subject = format!("subscriptions of {group}");
        if self.complaints.is_due(client, &subject, self.backend.now_ms()) {
            tracing::warn!(
                group = ?shortened(group),
                client = ?shortened(client),
                other = ?shortened(&other),
                "members of one group have different subscriptions: the latest heartbeat's are in \
                 force, and queues may have no reader",
            );
        }
    }
}

#[cfg(test)]
mod tests;
