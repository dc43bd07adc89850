//! What the machine keeps in step with its log, and does by itself: alarms, positions, snapshots.

use std::collections::BTreeSet;
use std::mem;

use duolog_log_core::ids::Offset;

use super::event::{Ask, Event, Key, Moved, Notice, Response};
use super::shard::{Held, InflightShard, Live, Outcome, snapshot};
use super::window::Window;
use crate::limits::SHARD_FLIGHTS_MAX;
use crate::record::share::{DeliveryState, SharePartition, ShareRecord, StateBatch};
use crate::shard::{RequestId, TimerChange};
use crate::time::Now;

/// However late the first message is due, the clock is looked at so often: it may be set.
const LOOK_EVERY_MS: i64 = 1_000;

/// A snapshot that lies so many records back is written anew, and the log's start is raised by so
/// many at least.
pub(super) const TRIM_STEP: i64 = 4_096;

/// The one alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm;

/// When what is to be done.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    /// Where the last snapshot of each window stands.
    snapshots: BTreeSet<(Offset, SharePartition)>,
    /// When each window has something due that was not told; at most one entry for each.
    due: BTreeSet<(i64, SharePartition)>,
    /// When the alarm rings, on the steady clock.
    alarm: Option<i64>,
    /// Below it nothing was needed when that was last told.
    trimmed: Offset,
}

impl InflightShard {
    /// Puts a window in the place of what was there.
    pub(super) fn replace(&mut self, share: SharePartition, window: Window, at: Offset) {
        self.flights += window.len();
        let live = match self.windows.remove(&share) {
            Some(old) => {
                self.flights -= old.window.len();
                self.upkeep.snapshots.remove(&(old.snapshot_at, share.clone()));
                old.live
            }
            None => Live::default(),
        };
        self.upkeep.snapshots.insert((at, share.clone()));
        self.windows.insert(share.clone(), Held { window, snapshot_at: at, live });
        self.list(&share);
    }

    pub(super) fn update(
        &mut self,
        share: &SharePartition,
        batches: &[StateBatch],
        deliveries_max: u16,
    ) {
        let Some(held) = self.windows.get_mut(share) else { return };
        self.flights -= held.window.len();
        if deliveries_max < held.window.deliveries_max {
            // What may be taken may be dead by that: all that is due is looked at again.
            held.live.told_ms = i64::MIN;
        }
        held.window.deliveries_max = deliveries_max;
        for batch in batches {
            held.window.apply(batch);
            if let Some(lease) = batch.lease.filter(|it| it.until_ms <= held.live.told_ms) {
                // It is due, or will be, though all that was due then has been told.
                held.live.told_ms = lease.until_ms.saturating_sub(1);
            }
            if batch.state != DeliveryState::Available {
                let done = (share.clone(), batch.first)..=(share.clone(), batch.last);
                let copies: Vec<_> = self.copies.range(done).map(|(key, _)| key.clone()).collect();
                copies.iter().for_each(|key| _ = self.copies.remove(key));
            }
        }
        self.flights += held.window.len();
        self.list(share);
    }

    pub(super) fn forget(&mut self, share: &SharePartition) {
        let Some(old) = self.windows.remove(share) else { return };
        self.flights -= old.window.len();
        self.upkeep.snapshots.remove(&(old.snapshot_at, share.clone()));
        if let Some(listed_ms) = old.live.listed_ms {
            self.upkeep.due.remove(&(listed_ms, share.clone()));
        }
        self.copies.retain(|(of, _), _| of != share);
        self.crowded_out.remove(share);
    }

    /// Notes when the window has something due.
    fn list(&mut self, share: &SharePartition) {
        let Some(Held { window, live, .. }) = self.windows.get_mut(share) else { return };
        let next = window.next_due_ms(live.told_ms);
        if next == live.listed_ms {
            return;
        }
        if let Some(listed_ms) = live.listed_ms {
            self.upkeep.due.remove(&(listed_ms, share.clone()));
        }
        live.listed_ms = next;
        if let Some(next) = next {
            self.upkeep.due.insert((next, share.clone()));
        }
    }

    /// What was due may be in hand again if the clock was set back: it will be told again.
    pub(super) fn look_at_clock(&mut self, share: &SharePartition, now: Now, out: &mut Outcome) {
        let Some(Held { live, .. }) = self.windows.get_mut(share) else { return };
        if live.told_ms > now.wall_ms {
            live.told_ms = now.wall_ms;
            self.list(share);
            self.set_alarm(out, now);
        }
    }

    /// Tells what may be taken again, and what is dead.
    pub(super) fn due(&mut self, now: Now) -> Outcome {
        let mut out = Outcome::default();
        self.upkeep.alarm = None;
        while let Some((due_ms, share)) = self.upkeep.due.first().cloned() {
            if due_ms > now.wall_ms {
                break;
            }
            self.upkeep.due.pop_first();
            let Some(Held { window, live, .. }) = self.windows.get_mut(&share) else { continue };
            live.told_ms = now.wall_ms;
            live.listed_ms = None;
            let (mut is_ready, mut is_dead) = (false, false);
            for (_, flight) in window.available(now.wall_ms) {
                let is_spent = window.is_spent(flight);
                is_ready |= !is_spent;
                is_dead |= is_spent;
            }
            if is_ready {
                out.notices.push(Notice::Ready(share.clone()));
            }
            if is_dead {
                out.notices.push(Notice::Dead(share.clone()));
            }
            self.list(&share);
        }
        self.set_alarm(&mut out, now);
        out
    }

    /// Has the alarm ring when the first message is due, or when the clock is to be looked at.
    pub(super) fn set_alarm(&mut self, out: &mut Outcome, now: Now) {
        let Some((due_ms, _)) = self.upkeep.due.first() else { return };
        let at_ms = now.after(due_ms.saturating_sub(now.wall_ms).clamp(0, LOOK_EVERY_MS));
        if self.upkeep.alarm.is_none_or(|alarm| at_ms < alarm) {
            self.upkeep.alarm = Some(at_ms);
            out.timers.push(TimerChange::Set(Alarm, at_ms));
        }
    }

    /// What follows once a change of a window is in the log.
    pub(super) fn moved(
        &mut self,
        share: &SharePartition,
        moved: Moved,
        now: Now,
        out: &mut Outcome,
    ) {
        if let Some(Held { window, live, .. }) = self.windows.get_mut(share) {
            if let Some(offset) = moved.opened {
                live.own_from = Some(offset);
            }
            if let Some(offset) = moved.reset {
                live.committed = Some(offset);
                live.committing = None;
                live.attempt = None;
            }
            let is_free = live.is_awaited && !window.has_in_hand(now.wall_ms);
            live.is_awaited &= !is_free;
            if moved.made_room || is_free {
                out.notices.push(Notice::Ready(share.clone()));
            }
        }
        if self.flights < SHARD_FLIGHTS_MAX {
            out.notices.extend(mem::take(&mut self.crowded_out).into_iter().map(Notice::Ready));
        }
        self.tell_position(share, out);
        self.set_alarm(out, now);
        if let Some((at, oldest)) = self.upkeep.snapshots.first()
            && self.end.0.saturating_sub(at.0) > TRIM_STEP
        {
            let key = Key::Window(oldest.clone());
            out.follow_ups.push((None, Event::Of { key, ask: Ask::Refresh }));
        }
        out.follow_ups.push((None, Event::Trim));
    }

    /// Has the start committed, unless another one is just being committed.
    pub(super) fn tell_position(&mut self, share: &SharePartition, out: &mut Outcome) {
        let Some(Held { window, live, .. }) = self.windows.get_mut(share) else { return };
        let start = window.start();
        if live.committing.is_none() && live.committed != Some(start) {
            live.committing = Some(start);
            let (share, own) = (share.clone(), live.own());
            out.notices.push(Notice::Position { share, own, offset: start });
        }
    }

    /// The start that was told is committed: so says the log, first.
    pub(super) fn committed(
        &mut self,
        request: Option<RequestId>,
        key: Key,
        offset: i64,
        out: &mut Outcome,
    ) {
        let Key::Window(share) = &key else { return };
        match self.windows.get_mut(share) {
            Some(Held { window, live, .. }) if live.committing == Some(offset) => {
                if window.committed != Some(offset) {
                    out.records.push(ShareRecord::Update {
                        share: share.clone(),
                        epoch: window.epoch,
                        batches: Vec::new(),
                        deliveries_max: window.deliveries_max,
                        committed: Some(offset),
                    });
                    let ask = Ask::Committed(offset);
                    return out.follow_ups.push((request, Event::Of { key, ask }));
                }
                live.committing = None;
                live.committed = Some(offset);
                self.tell_position(share, out);
            }
            // Another word came in between.
            _ => {}
        }
        out.respond(request, Ok(Response::Done));
    }

    /// Writes a window anew, or forgets it if the committed position says all that there is to say.
    pub(super) fn refresh(&self, key: Key, now: Now, out: &mut Outcome) {
        let Key::Window(share) = &key else { return };
        let Some(Held { window, snapshot_at, .. }) = self.windows.get(share) else { return };
        if self.end.0.saturating_sub(snapshot_at.0) <= TRIM_STEP {
            return;
        }
        if window.is_empty() && window.committed == Some(window.start()) {
            out.records.push(ShareRecord::Forgotten(share.clone()));
        } else {
            let mut next = window.clone();
            next.epoch = next.epoch.wrapping_add(1);
            out.records.push(snapshot(share, &next, now));
        }
        out.follow_ups.push((None, Event::Of { key, ask: Ask::Moved(Moved::default()) }));
    }

    /// The group goes on at `start`; nothing is in hand any more.
    pub(super) fn reset(&self, key: Key, start: i64, now: Now, out: &mut Outcome) {
        let Key::Window(share) = &key else { return };
        let Some(Held { window: old, .. }) = self.windows.get(share) else { return };
        let mut window = Window::new(start, old.epoch.wrapping_add(1), old.created_ms);
        (window.deliveries_max, window.committed) = (old.deliveries_max, Some(start));
        out.records.push(snapshot(share, &window, now));
        let moved = Moved { reset: Some(start), made_room: true, ..Moved::default() };
        out.follow_ups.push((None, Event::Of { key, ask: Ask::Moved(moved) }));
    }

    /// There is no such window any more.
    pub(super) fn end(&self, key: Key, out: &mut Outcome) {
        let Key::Window(share) = &key else { return };
        if self.windows.contains_key(share) {
            out.records.push(ShareRecord::Forgotten(share.clone()));
            out.follow_ups.push((None, Event::Of { key, ask: Ask::Moved(Moved::default()) }));
        }
    }

    pub(super) fn forget_all(&self, is_gone: impl Fn(&SharePartition) -> bool) -> Outcome {
        let gone = self.windows.keys().filter(|share| is_gone(share));
        let forget = |share: &SharePartition| Event::Of {
            key: Key::Window(share.clone()),
            ask: Ask::Forget,
        };
        let follow_ups = gone.map(|share| (None, forget(share))).collect();
        Outcome { follow_ups, ..Outcome::default() }
    }

    pub(super) fn trim(&mut self) -> Outcome {
        let mut out = Outcome::default();
        let snapshot = self.upkeep.snapshots.first().map(|(at, _)| *at);
        let copy = self.copies.values().min().copied();
        let needed = [snapshot, copy, self.deliveries.first_needed()];
        let first = needed.into_iter().flatten().min().unwrap_or(self.end);
        if first.0 >= self.upkeep.trimmed.0.saturating_add(TRIM_STEP) {
            self.upkeep.trimmed = first;
            out.notices.push(Notice::Trim(first));
        }
        out
    }
}
