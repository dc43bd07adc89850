//! Which client may consume a queue in order; the ordered lock.
//!
//! ```text
//! free -- lock ----------------------------------------> held, for 60 s
//! held -- lock by the same client ---------------------> held, for 60 s from then on
//! held -- lock by another client ----------------------> held, that one is refused
//! held -- unlock by the same client, 60 s without lock -> free
//! held -- unlock by another client --------------------> held
//! ```
//!
//! A lease says nothing of membership: a client that dies keeps its queues until they lapse, one
//! that has left its group without an unlock too, and whoever asks need not be a member. Nothing of
//! it is stored: after a change of the coordinator whoever asks first is the owner; stock clients
//! ask every 20 s and consume for 30 s after their last lock. So a lesson sees what RocketMQ does.
//!
//! Source: RocketMQ's `RebalanceLockManager`, `ProcessQueue`.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::event::{Event as Observed, EventKind, Events, Protocol};

use crate::group::event::{GroupId, LockQueues, Queue, Timer};
use crate::group::shard::GroupShard;
use crate::limits::LOCKED_QUEUES_MAX;
use crate::shard::{Outcome, TimerChange};
use crate::time::Now;

/// Who holds a queue.
#[derive(Debug)]
struct Lease {
    client: Arc<str>,
    /// The last moment at which it is held, on the steady clock.
    deadline: i64,
}

impl Lease {
    fn has_lapsed(&self, now: Now) -> bool {
        self.deadline < now.tick_ms
    }
}

/// All locked queues of a shard's groups.
#[derive(Debug, Default)]
pub(in crate::group) struct QueueLocks {
    /// No group is empty.
    groups: BTreeMap<GroupId, BTreeMap<Queue, Lease>>,
    count: usize,
}

impl QueueLocks {
    /// Locks each of the queues that is free, and renews those that the client holds. Returns, in
    /// the order asked, whether it holds them now; with too many locked all others are refused.
    pub(in crate::group) fn lock(
        &mut self,
        request: LockQueues,
        lease_ms: i64,
        events: &Events,
        now: Now,
        out: &mut Outcome<GroupShard>,
    ) -> Vec<bool> {
        let LockQueues { group, client, queues } = request;
        let deadline = now.after(lease_ms);
        let was_empty = self.count == 0;
        let mut locked = Vec::with_capacity(queues.len());
        for queue in queues {
            let held = self.groups.get_mut(&group).and_then(|queues| queues.get_mut(&queue));
            let (holds, cause) = match held {
                Some(lease) if lease.client == client || lease.has_lapsed(now) => {
                    let cause = if lease.client == client { "renewed" } else { "granted" };
                    *lease = Lease { client: client.clone(), deadline };
                    (true, cause.to_owned())
                }
                Some(lease) => (false, format!("refused, {} holds it", lease.client)),
                None if self.count >= LOCKED_QUEUES_MAX => {
                    (false, format!("refused, {LOCKED_QUEUES_MAX} queues are locked"))
                }
                None => {
                    let lease = Lease { client: client.clone(), deadline };
                    self.groups.entry(group.clone()).or_default().insert(queue.clone(), lease);
                    self.count += 1;
                    (true, "granted".to_owned())
                }
            };
            tell(events, now, &group, &queue, &client, &cause);
            locked.push(holds);
        }
        if was_empty && self.count > 0 {
            // Renewals only put deadlines off, so the timer is not moved then.
            out.timers.push(TimerChange::Set(Timer::QueueLocks, deadline.saturating_add(1)));
        }
        locked
    }

    /// Whether any queue of the group is held.
    pub(in crate::group) fn are_held(&self, group: &str, now: Now) -> bool {
        let held = self.groups.get(group);
        held.is_some_and(|queues| queues.values().any(|lease| !lease.has_lapsed(now)))
    }

    /// Frees those of the queues that the client holds.
    pub(in crate::group) fn unlock(&mut self, request: &LockQueues, events: &Events, now: Now) {
        let LockQueues { group, client, queues } = request;
        let Some(held) = self.groups.get_mut(group) else { return };
        for queue in queues {
            if held.get(queue).is_some_and(|lease| lease.client == *client) {
                held.remove(queue);
                self.count -= 1;
                tell(events, now, group, queue, client, "released");
            }
        }
        if held.is_empty() {
            self.groups.remove(group);
        }
    }

    /// [`Timer::QueueLocks`] fired: forgets what has lapsed.
    pub(in crate::group) fn expire(
        &mut self,
        events: &Events,
        now: Now,
        out: &mut Outcome<GroupShard>,
    ) {
        let mut next: Option<i64> = None;
        let count = &mut self.count;
        self.groups.retain(|group, queues| {
            queues.retain(|queue, lease| {
                if lease.has_lapsed(now) {
                    *count -= 1;
                    tell(events, now, group, queue, &lease.client, "lapsed");
                    return false;
                }
                next = Some(next.map_or(lease.deadline, |next| next.min(lease.deadline)));
                true
            });
            !queues.is_empty()
        });
        if let Some(next) = next {
            out.timers.push(TimerChange::Set(Timer::QueueLocks, next.saturating_add(1)));
        }
    }
}

fn tell(events: &Events, now: Now, group: &GroupId, queue: &Queue, client: &Arc<str>, cause: &str) {
    tracing::debug!(%group, %client, topic = %queue.topic, queue = queue.id, cause, "queue lock");
    events.emit(|| {
        Observed::new(EventKind::RocketmqLock, now.wall_ms)
            .at(&queue.topic, queue.id)
            .protocol(Protocol::RocketMq)
            .client(client.clone())
            .cause(format!("group {group}: {cause}"))
    });
}

#[cfg(test)]
mod tests;
