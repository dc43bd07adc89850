//! One coordinator, of groups or of transactions: one partition of its internal topic.
//!
//! ```text
//! Cold ──── a request, or the round at start ──▶ Loading ── the log is read ──▶ Serving
//! Loading ─ the log cannot be read ────────────▶ Cold, for a while; then again of itself
//! Serving ─ an append failed after it may have
//!           reached the log ───────────────────▶ Loading: only the log knows what is true
//! any ───── the topic is gone, the node stops ─▶ Resigned
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use duolog_coordinator::runtime::{Effect, Runtime};
use duolog_coordinator::shard::{Answer, RequestId, Shard as Machine};
use duolog_coordinator::time::Now;
use duolog_log_core::ids::Offset;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::append::{self, OpenAppend};
use super::env::now;
use super::kind::{Event, Kind};
use super::load::{self, LoadError, Loaded};
use crate::partitions::{Partition, Registration};

/// A log that could not be read is left alone for so long, whoever asks.
const LOAD_AGAIN_AFTER_MS: i64 = 1_000;

/// And is read anew after so long at most though nobody asks: each time costs reading all of it.
const LOAD_AGAIN_WITHIN_MS: i64 = 60_000;

/// One coordinator.
pub(super) struct Shard<K: Kind> {
    index: usize,
    partition: Arc<Partition>,
    kind: Arc<K>,
    state: Mutex<State<K>>,
    /// Rung when a load has ended, and when there will be no more.
    settled: Notify,
}

struct State<K: Kind> {
    phase: Phase<K>,
    waiting: HashMap<RequestId, oneshot::Sender<Answer<K::Machine>>>,
    next_request: u64,
    memory: K::Memory,
    /// When the timer wakes this shard: at its next deadline, or earlier.
    alarm: Option<i64>,
    /// For how long the log is left alone when it cannot be read once more and nobody asks.
    load_again_ms: i64,
}

enum Phase<K: Kind> {
    Cold { not_before_ms: i64 },
    Loading,
    Serving(Box<Serving<K>>),
    Resigned,
}

struct Serving<K: Kind> {
    runtime: Runtime<K::Machine>,
    /// As far as the runtime knows the log: exclusive.
    log_end: i64,
}

impl<K: Kind> std::fmt::Debug for Shard<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let phase = match &self.state.lock().phase {
            Phase::Cold { .. } => "cold",
            Phase::Loading => "loading",
            Phase::Serving(_) => "serving",
            Phase::Resigned => "resigned",
        };
        let partition = self.partition.index;
        f.debug_struct("Shard").field("partition", &partition).field("phase", &phase).finish()
    }
}

impl<K: Kind> Shard<K> {
    pub(super) fn new(index: usize, partition: Arc<Partition>, kind: Arc<K>) -> Self {
        let state = State {
            phase: Phase::Cold { not_before_ms: i64::MIN },
            waiting: HashMap::new(),
            next_request: 0,
            memory: K::Memory::default(),
            alarm: None,
            load_again_ms: LOAD_AGAIN_AFTER_MS,
        };
        Self { index, partition, kind, state: Mutex::new(state), settled: Notify::new() }
    }

    /// Has `event` decided. The answer may be long in coming; it is lost only if the process ends.
    pub(super) fn submit(
        self: &Arc<Self>,
        event: Event<K>,
    ) -> oneshot::Receiver<Answer<K::Machine>> {
        let (reply, answer) = oneshot::channel();
        self.input(|state, now| {
            let refusal = match &mut state.phase {
                Phase::Serving(serving) => {
                    let request = RequestId(state.next_request);
                    state.next_request += 1;
                    state.waiting.insert(request, reply);
                    return serving.runtime.submit(request, event, now);
                }
                Phase::Cold { .. } | Phase::Loading => K::Machine::while_loading(&event),
                Phase::Resigned => Err(K::Machine::resigned()),
            };
            // Whoever asked may be gone.
            let _ = reply.send(refusal);
        });
        answer
    }

    /// Has a client's request decided that nobody waits for; a shard that does not serve yet, or has
    /// too much to do, will not hear of it.
    pub(super) fn offer(self: &Arc<Self>, event: Event<K>) {
        self.input(|state, now| {
            if let Phase::Serving(serving) = &mut state.phase {
                serving.runtime.offer(event, now);
            }
        });
    }

    /// Has news decided; a shard that does not serve yet will not hear of them.
    pub(super) fn notify(self: &Arc<Self>, event: Event<K>) {
        self.input(|state, now| {
            if let Phase::Serving(serving) = &mut state.phase {
                serving.runtime.notify(event, now);
            }
        });
    }

    /// As [`Self::notify`], or has `keep` remember it until the log is read.
    pub(super) fn notify_or_keep(
        self: &Arc<Self>,
        event: Event<K>,
        keep: impl FnOnce(&mut K::Memory),
    ) {
        self.input(|state, now| match &mut state.phase {
            Phase::Serving(serving) => serving.runtime.notify(event, now),
            Phase::Cold { .. } | Phase::Loading => keep(&mut state.memory),
            Phase::Resigned => {}
        });
    }

    /// The partition that its log is.
    pub(super) fn partition(&self) -> &Arc<Partition> {
        &self.partition
    }

    /// Whether requests are decided at once.
    pub(super) fn is_serving(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Serving(_))
    }

    /// Lets `look` read what was decided, if it is there.
    pub(super) fn read<T>(&self, look: impl FnOnce(&K::Machine) -> T) -> Option<T> {
        match &self.state.lock().phase {
            Phase::Serving(serving) => Some(look(serving.runtime.shard())),
            Phase::Cold { .. } | Phase::Loading | Phase::Resigned => None,
        }
    }

    /// Fires the timers that are due.
    pub(super) fn tick(self: &Arc<Self>) {
        self.input(|state, now| {
            state.alarm = None;
            if let Phase::Serving(serving) = &mut state.phase {
                serving.runtime.tick(now);
            }
        });
    }

    /// Resolves once the log was read, or could not be; begins with it if nobody has.
    pub(super) async fn ready(self: &Arc<Self>) {
        let settled = self.settled.notified();
        tokio::pin!(settled);
        // From here on no ring is missed.
        settled.as_mut().enable();
        self.input(|_, _| {});
        if matches!(self.state.lock().phase, Phase::Loading) {
            settled.await;
        }
    }

    /// Ends for good; whoever waits is told `NotCoordinator`.
    pub(super) fn resign(&self) {
        self.end(Phase::Resigned);
        self.settled.notify_waiters();
    }

    /// Gives the runtime one input, then performs what follows.
    fn input(self: &Arc<Self>, act: impl FnOnce(&mut State<K>, Now)) {
        let now = now();
        let mut state = self.state.lock();
        {
            let State { phase, memory, .. } = &mut *state;
            if let Phase::Serving(serving) = phase {
                serving.runtime.bound_batches(append::bytes_max(&self.partition));
                self.kind.before_input(&mut serving.runtime, memory, now);
            }
        }
        act(&mut state, now);
        if matches!(state.phase, Phase::Cold { not_before_ms } if not_before_ms <= now.tick_ms) {
            state.phase = Phase::Loading;
            self.kind.env().handle.spawn(self.clone().load());
        }
        let append = self.perform(&mut state);
        drop(state);
        if let Some(append) = append {
            self.kind.env().handle.spawn(self.clone().drive(append));
        }
    }

    /// Answers and tells, in order; returns the append to begin. There is one at a time.
    fn perform(&self, state: &mut State<K>) -> Option<OpenAppend> {
        let Phase::Serving(serving) = &mut state.phase else { return None };
        let mut append = None;
        while let Some(effect) = serving.runtime.poll_effect() {
            match effect {
                Effect::Append { id, records, batch, timestamp_ms } => {
                    append = Some(OpenAppend { id, records, batch, timestamp_ms });
                }
                Effect::Reply { request, answer } => {
                    if let Some(reply) = state.waiting.remove(&request) {
                        // Whoever asked may be gone.
                        let _ = reply.send(answer);
                    }
                }
                Effect::Notice(notice) => {
                    self.kind.tell(self.partition.index, notice, &mut state.memory)
                }
            }
        }
        // An alarm that comes too early costs less than one moved at every heartbeat.
        if let Some(deadline) = serving.runtime.next_deadline()
            && state.alarm.is_none_or(|alarm| deadline < alarm)
        {
            self.kind.env().timer.set(self.index, state.alarm, deadline);
            state.alarm = Some(deadline);
        }
        append
    }

    /// Performs `append`, and those that the runtime asks for after it.
    async fn drive(self: Arc<Self>, append: OpenAppend) {
        let mut next = Some(append);
        while let Some(append) = next {
            let outcome = append::write(&self.partition, &append, self.kind.flush()).await;
            let offsets = self.partition.offsets();
            let mut state = self.state.lock();
            let Phase::Serving(serving) = &mut state.phase else { return };
            match outcome {
                Ok(appended) => {
                    let base_offset = Offset(appended.base_offset);
                    serving.log_end = appended.last_offset + 1;
                    serving.runtime.appended(append.id, base_offset, now());
                    // The append was acknowledged by all, so it is committed whatever is published.
                    let committed = offsets.high_watermark.max(serving.log_end);
                    serving.runtime.advance_high_watermark(Offset(committed));
                }
                Err(error) if offsets.log_end == serving.log_end => {
                    // The partition has told why, once.
                    tracing::debug!(partition = self.partition.index, %error, "append refused");
                    serving.runtime.append_failed(append.id, error, now());
                }
                Err(error) => {
                    drop(state);
                    tracing::warn!(partition = self.partition.index, %error,
                        "append failed with its records in the log: reading the {} anew", K::CONTENT);
                    return self.reload();
                }
            }
            next = self.perform(&mut state);
        }
    }

    /// Leaves what is known for `phase`; whoever waits is told `NotCoordinator`.
    fn end(&self, phase: Phase<K>) {
        let mut state = self.state.lock();
        if let Phase::Serving(serving) = &mut state.phase {
            serving.runtime.resign();
        }
        // All that is left to perform are answers.
        let _ = self.perform(&mut state);
        state.phase = phase;
        self.kind.ended(&mut state.memory);
    }

    fn reload(self: &Arc<Self>) {
        self.end(Phase::Loading);
        self.kind.env().handle.spawn(self.clone().load());
    }

    async fn load(self: Arc<Self>) {
        let loaded = load::read(&self.partition, self.kind.machine()).await;
        let log_end = loaded.as_ref().map(|loaded| loaded.log_end).unwrap_or_default();
        self.input(|state, now| {
            if !matches!(state.phase, Phase::Loading) {
                return;
            }
            state.phase = match loaded {
                Ok(loaded) => {
                    let Loaded { mut runtime, log_end, high_watermark } = loaded;
                    runtime.bound_batches(append::bytes_max(&self.partition));
                    runtime.finish_load(Offset(log_end), Offset(high_watermark), now);
                    self.kind.loaded(&mut runtime, &mut state.memory, now);
                    state.load_again_ms = LOAD_AGAIN_AFTER_MS;
                    Phase::Serving(Box::new(Serving { runtime, log_end }))
                }
                Err(LoadError::Gone) => Phase::Resigned,
                Err(LoadError::Unreadable(error)) => {
                    tracing::error!(
                        partition = self.partition.index,
                        error,
                        "the {} cannot be read",
                        K::CONTENT
                    );
                    self.load_again(state, now);
                    Phase::Cold { not_before_ms: now.after(LOAD_AGAIN_AFTER_MS) }
                }
            };
        });
        self.settled.notify_waiters();
        self.follow(log_end).await;
    }

    /// Has the timer begin once more: nobody may ask, and what waits in the log is due all the same.
    fn load_again(&self, state: &mut State<K>, now: Now) {
        let at = now.after(state.load_again_ms);
        state.load_again_ms = state.load_again_ms.saturating_mul(2).min(LOAD_AGAIN_WITHIN_MS);
        self.kind.env().timer.set(self.index, state.alarm.replace(at), at);
    }

    /// What was read up to `log_end` may not have been committed yet: tells the runtime when it is.
    async fn follow(self: &Arc<Self>, log_end: i64) {
        loop {
            let registration = Registration::new(vec![self.partition.clone()]);
            let high_watermark = self.partition.offsets().high_watermark;
            let mut behind = false;
            self.input(|state, _| {
                if let Phase::Serving(serving) = &mut state.phase {
                    serving.runtime.advance_high_watermark(Offset(high_watermark));
                    behind = high_watermark < log_end;
                }
            });
            if !behind {
                return;
            }
            registration.moved().await;
        }
    }
}
