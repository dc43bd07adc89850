//! Messages in hand, of the node in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::FakeBackend;
use super::state::State;
use crate::backend::{
    Backend, BackendError, PopAgain, PopBackend, PopOffsets, PopOrder, PopPlan, PopQueue, PopTake,
    Result,
};

/// What a group has of a queue.
#[derive(Debug, Default)]
pub(super) struct Window {
    end: i64,
    flights: BTreeMap<i64, Flight>,
    attempt: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    times: i32,
    until_ms: i64,
    popped_ms: i64,
}

impl Window {
    fn is_in_hand(&self, now_ms: i64) -> bool {
        self.flights.values().any(|flight| flight.until_ms > now_ms)
    }
}

fn window<'a>(state: &'a mut State, queue: PopQueue<'_>) -> Option<&'a mut Window> {
    let key = (queue.group.to_owned(), queue.topic.name.clone(), queue.partition);
    let committed = state.offsets.get(&key).copied()?;
    let window = state.windows.entry(key).or_insert_with(|| Window::new(committed));
    // As whoever set the position wants it.
    if window.start() != committed {
        *window = Window::new(committed);
    }
    Some(window)
}

impl Window {
    fn new(end: i64) -> Self {
        Self { end, ..Self::default() }
    }

    fn start(&self) -> i64 {
        self.flights.first_key_value().map_or(self.end, |(offset, _)| *offset)
    }
}

fn commit(state: &mut State, queue: PopQueue<'_>) {
    let key = (queue.group.to_owned(), queue.topic.name.clone(), queue.partition);
    let start = state.windows.get(&key).map(Window::start);
    state.offsets.extend(start.map(|start| (key, start)));
}

impl PopBackend for FakeBackend {
    async fn pop_plan(
        &self,
        queue: PopQueue<'_>,
        count: usize,
        order: Option<PopOrder>,
    ) -> Result<Option<PopPlan>> {
        let now_ms = self.now_ms();
        let mut state = self.state.lock();
        let room = state.pop_room.unwrap_or(100);
        let Some(window) = window(&mut state, queue) else { return Ok(None) };
        let attempt = order.as_ref().and_then(|order| order.attempt.clone());
        let is_repeated = attempt.is_some() && attempt == window.attempt;
        let is_blocked = order.is_some() && window.is_in_hand(now_ms) && !is_repeated;
        let free = window.flights.iter();
        let free = free.filter(|(_, flight)| is_repeated || flight.until_ms <= now_ms);
        let before = |flight: &Flight| flight.times - i32::from(is_repeated);
        let again = free.map(|(offset, flight)| (*offset, before(flight))).take(count);
        let again = if is_blocked { Vec::new() } else { again.collect() };
        let room = room.saturating_sub(window.flights.len());
        Ok(Some(PopPlan { again, next: window.end, room, is_blocked }))
    }

    async fn pop_begin(&self, queue: PopQueue<'_>, offset: i64) -> Result<()> {
        let key = (queue.group.to_owned(), queue.topic.name.clone(), queue.partition);
        self.state.lock().offsets.entry(key).or_insert(offset);
        Ok(())
    }

    async fn pop_reset(&self, queue: PopQueue<'_>, offset: i64) -> Result<()> {
        let key = (queue.group.to_owned(), queue.topic.name.clone(), queue.partition);
        let mut state = self.state.lock();
        state.offsets.insert(key.clone(), offset);
        state.windows.insert(key, Window::new(offset));
        Ok(())
    }

    async fn pop_take(&self, queue: PopQueue<'_>, take: PopTake) -> Result<bool> {
        let mut state = self.state.lock();
        if let Some(settled) = state.settled_meanwhile.take() {
            if let Some(window) = window(&mut state, queue) {
                window.flights.remove(&settled);
            }
            commit(&mut state, queue);
            return Ok(false);
        }
        let PopTake { popped_ms, until_ms, .. } = take;
        let Some(window) = window(&mut state, queue) else { return Ok(false) };
        let attempt = take.order.and_then(|order| order.attempt);
        let is_repeated = attempt.is_some() && attempt == window.attempt;
        window.attempt = attempt;
        for offset in &take.again {
            if let Some(flight) = window.flights.get_mut(offset) {
                let times = flight.times + i32::from(!is_repeated);
                *flight = Flight { times, until_ms, popped_ms };
            }
        }
        take.gone.iter().for_each(|offset| _ = window.flights.remove(offset));
        if let Some(fresh) = take.fresh {
            assert_eq!(fresh.from, window.end);
            window.end = fresh.next;
            let flight = Flight { times: 1, until_ms, popped_ms };
            window.flights.extend(fresh.offsets.into_iter().map(|offset| (offset, flight)));
        }
        commit(&mut state, queue);
        Ok(true)
    }

    async fn pop_settle(
        &self,
        queue: PopQueue<'_>,
        offsets: PopOffsets,
        popped_ms: i64,
    ) -> Result<usize> {
        let mut state = self.state.lock();
        if state.unsettled.contains(&queue.partition) {
            return Err(BackendError::CoordinatorNotReady { group: queue.group.to_owned() });
        }
        let Some(window) = window(&mut state, queue) else { return Ok(0) };
        let before = window.flights.len();
        window
            .flights
            .retain(|offset, flight| !offsets.contains(*offset) || flight.popped_ms != popped_ms);
        let settled = before - window.flights.len();
        commit(&mut state, queue);
        Ok(settled)
    }

    async fn pop_delay(
        &self,
        queue: PopQueue<'_>,
        offset: i64,
        popped_ms: i64,
        again: PopAgain,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        let Some(window) = window(&mut state, queue) else { return Ok(false) };
        let flight = window.flights.get_mut(&offset).filter(|it| it.popped_ms == popped_ms);
        let is_in_hand = flight.is_some();
        if let Some(flight) = flight {
            (flight.until_ms, flight.popped_ms) = (again.until_ms, again.renamed_ms);
        }
        Ok(is_in_hand)
    }
}
