//! What a group may take from its window, what it takes, and what it is done with.

use std::collections::BTreeMap;

use super::event::{Fresh, Key, OffsetSet, Order, Plan, Response, Take};
use super::shard::{InflightShard, Outcome};
use super::window::{Batches, Flight, Window};
use crate::limits::{SHARD_FLIGHTS_MAX, WINDOW_FLIGHTS_FLOOR, WINDOW_FLIGHTS_MAX};
use crate::record::share::{DeliveryState, Lease, SharePartition, StateBatch};
use crate::shard::{RequestId, Undo};
use crate::time::Now;

impl InflightShard {
    pub(super) fn plan(
        &mut self,
        share: &SharePartition,
        count: usize,
        order: Option<&Order>,
        now: Now,
    ) -> Option<Plan> {
        let held = self.windows.get_mut(share)?;
        let mut plan = Plan { next: held.window.end(), ..Plan::default() };
        if held.is_blocked(order, now.wall_ms) {
            held.live.is_awaited = true;
            plan.is_blocked = true;
            return Some(plan);
        }
        let held = self.windows.get(share)?;
        let window = &held.window;
        if held.is_repeated(order) {
            let again = window.flights().take(count);
            plan.again = again.map(|(offset, flight)| (offset, flight.deliveries)).collect();
        } else {
            let alive = window.available(now.wall_ms).filter(|(_, it)| !window.is_spent(*it));
            let again = alive.take(count);
            plan.again = again
                .map(|(offset, flight)| (offset, flight.deliveries.saturating_add(1)))
                .collect();
        }
        plan.room = self.room(window);
        if plan.room == 0 && window.len() < WINDOW_FLIGHTS_MAX {
            self.crowded_out.insert(share.clone());
        }
        Some(plan)
    }

    /// How many more messages may be taken.
    pub(super) fn room(&self, window: &Window) -> usize {
        let own = WINDOW_FLIGHTS_MAX.saturating_sub(window.len());
        let floor = WINDOW_FLIGHTS_FLOOR.saturating_sub(window.len());
        own.min(SHARD_FLIGHTS_MAX.saturating_sub(self.flights).max(floor))
    }

    pub(super) fn take(
        &mut self,
        request: Option<RequestId>,
        key: Key,
        take: &Take,
        now: Now,
    ) -> Outcome {
        let mut out = Outcome::default();
        let Key::Window(share) = &key else { return out };
        let Some(batches) = self.taken(share, take, now) else {
            out.respond(request, Ok(Response::Taken(false)));
            return out;
        };
        if let Some(held) = self.windows.get_mut(share) {
            held.live.attempt = take.order.as_ref().and_then(|order| order.attempt.clone());
            out.undo = Undo::Group;
        }
        self.change(key, batches, Some(take.deliveries_max), &mut out);
        out.respond(request, Ok(Response::Taken(true)));
        out
    }

    /// What changes if all of this is taken; `None` if it cannot be.
    fn taken(&self, share: &SharePartition, take: &Take, now: Now) -> Option<Vec<StateBatch>> {
        let held = self.windows.get(share)?;
        let window = &held.window;
        let order = take.order.as_ref();
        if held.is_blocked(order, now.wall_ms) {
            return None;
        }
        let is_repeated = held.is_repeated(order);
        let mut old: BTreeMap<i64, Option<u16>> = BTreeMap::new();
        for (offsets, stays) in [(&take.again, true), (&take.gone, false)] {
            for offset in offsets {
                let flight = window.get(*offset)?;
                let is_free = is_repeated || flight.lease.until_ms <= now.wall_ms;
                if !is_free || (stays && !is_repeated && window.is_spent(flight)) {
                    return None;
                }
                let deliveries = flight.deliveries.saturating_add(u16::from(!is_repeated));
                old.insert(*offset, stays.then_some(deliveries));
            }
        }
        let mut batches = Batches::default();
        for (offset, deliveries) in old {
            match deliveries {
                Some(deliveries) => {
                    batches.flight(offset, Flight { deliveries, lease: take.lease });
                }
                None => batches.done(offset, offset.checked_add(1)?, DeliveryState::Archived),
            }
        }
        if let Some(fresh) = &take.fresh {
            if fresh.offsets.len() > self.room(window) || fresh.from != window.end() {
                return None;
            }
            add_fresh(fresh, take.lease, &mut batches)?;
        }
        Some(batches.0)
    }

    pub(super) fn settled(
        &self,
        share: &SharePartition,
        offsets: &OffsetSet,
        popped_ms: i64,
        state: DeliveryState,
    ) -> Vec<StateBatch> {
        let mut batches = Batches::default();
        let Some(window) = self.window(share) else { return Vec::new() };
        for (offset, flight) in window.flights_in(offsets.range()) {
            if flight.lease.popped_ms == popped_ms && offsets.contains(offset) {
                batches.done(offset, offset.saturating_add(1), state);
            }
        }
        batches.0
    }

    /// A message whose last delivery is this one, whether or not its time is up.
    pub(super) fn in_hand(
        &self,
        share: &SharePartition,
        offset: i64,
        popped_ms: i64,
    ) -> Option<Flight> {
        let flight = self.window(share)?.get(offset)?;
        (flight.lease.popped_ms == popped_ms).then_some(flight)
    }
}

/// `None` if the offsets do not lie as they should.
fn add_fresh(fresh: &Fresh, lease: Lease, batches: &mut Batches) -> Option<()> {
    let mut next = fresh.from;
    for offset in &fresh.offsets {
        if *offset < next || *offset >= fresh.next {
            return None;
        }
        batches.done(next, *offset, DeliveryState::Archived);
        batches.flight(*offset, Flight { deliveries: 1, lease });
        next = offset.checked_add(1)?;
    }
    batches.done(next, fresh.next, DeliveryState::Archived);
    Some(())
}
