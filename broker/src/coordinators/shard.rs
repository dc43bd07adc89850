//! One coordinator: the groups of one partition of `__consumer_offsets`.
//!
//! ```text
//! Cold ──── a request, or the round at start ──▶ Loading ── the log is read ──▶ Serving
//! Loading ─ the log cannot be read ────────────▶ Cold, for a while
//! Serving ─ an append failed after it may have
//!           reached the log ───────────────────▶ Loading: only the log knows what is true
//! any ───── the topic is gone, the node stops ─▶ Resigned
//! ```

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;

use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{DeletedTopic, Event, GroupId};
use duolog_coordinator::group::response::Notice;
use duolog_coordinator::group::shard::GroupShard;
use duolog_coordinator::runtime::{Effect, Runtime};
use duolog_coordinator::shard::{Answer, RequestId, Shard as _};
use duolog_coordinator::time::Now;
use duolog_log_core::ids::{Offset, TopicId};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::append::{self, OpenAppend};
use super::env::{Env, now};
use super::load::{self, LoadError, Loaded};
use crate::controller::image::Image;
use crate::partitions::{Partition, Registration};

/// A log that could not be read is left alone for so long.
const LOAD_AGAIN_AFTER_MS: i64 = 1_000;

/// One coordinator.
#[derive(Debug)]
pub(super) struct Shard {
    index: usize,
    partition: Arc<Partition>,
    env: Arc<Env>,
    state: Mutex<State>,
    /// Rung when a load has ended, and when there will be no more.
    settled: Notify,
}

struct State {
    phase: Phase,
    waiting: HashMap<RequestId, oneshot::Sender<Answer<GroupShard>>>,
    next_request: u64,
    /// Topics deleted while the log is not read yet: their names may be others' by then.
    deleted: Vec<DeletedTopic>,
    /// RocketMQ groups that somebody was told of and may believe to live.
    shown: BTreeSet<GroupId>,
    /// The metadata that the runtime was told last.
    known: Option<Arc<Image>>,
    /// When the timer wakes this shard: at its next deadline, or earlier.
    alarm: Option<i64>,
}

enum Phase {
    Cold { not_before_ms: i64 },
    Loading,
    Serving(Box<Serving>),
    Resigned,
}

struct Serving {
    runtime: Runtime<GroupShard>,
    /// As far as the runtime knows the log: exclusive.
    log_end: i64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let phase = match &self.phase {
            Phase::Cold { .. } => "cold",
            Phase::Loading => "loading",
            Phase::Serving(_) => "serving",
            Phase::Resigned => "resigned",
        };
        f.debug_struct("State").field("phase", &phase).finish_non_exhaustive()
    }
}

impl Shard {
    pub(super) fn new(index: usize, partition: Arc<Partition>, env: Arc<Env>) -> Self {
        let state = State {
            phase: Phase::Cold { not_before_ms: i64::MIN },
            waiting: HashMap::new(),
            next_request: 0,
            deleted: Vec::new(),
            shown: BTreeSet::new(),
            known: None,
            alarm: None,
        };
        Self { index, partition, env, state: Mutex::new(state), settled: Notify::new() }
    }

    /// Has `event` decided. The answer may be long in coming; it is lost only if the process ends.
    pub(super) fn submit(self: &Arc<Self>, event: Event) -> oneshot::Receiver<Answer<GroupShard>> {
        let (reply, answer) = oneshot::channel();
        self.input(|state, now| {
            let refusal = match &mut state.phase {
                Phase::Serving(serving) => {
                    let request = RequestId(state.next_request);
                    state.next_request += 1;
                    state.waiting.insert(request, reply);
                    return serving.runtime.submit(request, event, now);
                }
                Phase::Cold { .. } | Phase::Loading => GroupShard::while_loading(&event),
                Phase::Resigned => Err(GroupError::NotCoordinator),
            };
            // Whoever asked may be gone.
            let _ = reply.send(refusal);
        });
        answer
    }

    /// Has `event` decided, for nobody; a shard that does not serve yet will not hear of it.
    pub(super) fn notify(self: &Arc<Self>, event: Event) {
        self.input(|state, now| {
            if let Phase::Serving(serving) = &mut state.phase {
                serving.runtime.notify(event, now);
            }
        });
    }

    /// Has the positions on a deleted topic forgotten, if need be once they are read.
    pub(super) fn topic_deleted(self: &Arc<Self>, topic: &DeletedTopic) {
        self.input(|state, now| match &mut state.phase {
            Phase::Serving(serving) => {
                serving.runtime.notify(Event::TopicDeleted(topic.clone()), now);
            }
            Phase::Cold { .. } | Phase::Loading => state.deleted.push(topic.clone()),
            Phase::Resigned => {}
        });
    }

    /// Whether requests are decided at once.
    pub(super) fn is_serving(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Serving(_))
    }

    /// Lets `look` read the groups, if they are there.
    pub(super) fn read<T>(&self, look: impl FnOnce(&GroupShard) -> T) -> Option<T> {
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
    fn input(self: &Arc<Self>, act: impl FnOnce(&mut State, Now)) {
        let now = now();
        let mut state = self.state.lock();
        self.tell_metadata(&mut state, now);
        act(&mut state, now);
        if matches!(state.phase, Phase::Cold { not_before_ms } if not_before_ms <= now.tick_ms) {
            state.phase = Phase::Loading;
            self.env.handle.spawn(self.clone().load());
        }
        let append = self.perform(&mut state);
        drop(state);
        if let Some(append) = append {
            self.env.handle.spawn(self.clone().drive(append));
        }
    }

    /// Tells the runtime of topics that came, went or grew, before it decides anything.
    fn tell_metadata(&self, state: &mut State, now: Now) {
        let Phase::Serving(serving) = &mut state.phase else { return };
        let image = self.env.controller.image();
        if state.known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &image)) {
            return;
        }
        let image = Arc::clone(&image);
        if state.known.as_ref().is_none_or(|known| !known.is_same_to_groups(&image)) {
            serving.runtime.notify(Event::Metadata(image.clone()), now);
        }
        state.known = Some(image);
    }

    /// Answers and tells, in order; returns the append to begin. There is one at a time.
    fn perform(&self, state: &mut State) -> Option<OpenAppend> {
        let Phase::Serving(serving) = &mut state.phase else { return None };
        let mut append = None;
        while let Some(effect) = serving.runtime.poll_effect() {
            match effect {
                Effect::Append { id, records, timestamp_ms } => {
                    append = Some(OpenAppend { id, records, timestamp_ms });
                }
                Effect::Reply { request, answer } => {
                    if let Some(reply) = state.waiting.remove(&request) {
                        // Whoever asked may be gone.
                        let _ = reply.send(answer);
                    }
                }
                Effect::Notice(notice) => {
                    match &notice {
                        Notice::ConsumerGroup { group, view: Some(_) } => {
                            state.shown.insert(group.clone());
                        }
                        Notice::ConsumerGroup { group, view: None } => {
                            state.shown.remove(group);
                        }
                        Notice::MembersChanged { .. } | Notice::ChannelExpired(_) => {}
                    }
                    self.env.tell(notice);
                }
            }
        }
        // An alarm that comes too early costs less than one moved at every heartbeat.
        if let Some(deadline) = serving.runtime.next_deadline()
            && state.alarm.is_none_or(|alarm| deadline < alarm)
        {
            self.env.timer.set(self.index, state.alarm, deadline);
            state.alarm = Some(deadline);
        }
        append
    }

    /// Performs `append`, and those that the runtime asks for after it.
    async fn drive(self: Arc<Self>, append: OpenAppend) {
        let mut next = Some(append);
        while let Some(append) = next {
            let outcome = append::write(&self.partition, &append).await;
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
                        "append failed with its records in the log: reading the groups anew");
                    return self.reload();
                }
            }
            next = self.perform(&mut state);
        }
    }

    /// Leaves what is known of the groups for `phase`; whoever waits is told `NotCoordinator`.
    fn end(&self, phase: Phase) {
        let mut state = self.state.lock();
        if let Phase::Serving(serving) = &mut state.phase {
            serving.runtime.resign();
        }
        // All that is left to perform are answers.
        let _ = self.perform(&mut state);
        state.phase = phase;
        for group in mem::take(&mut state.shown) {
            self.env.tell(Notice::ConsumerGroup { group, view: None });
        }
    }

    fn reload(self: &Arc<Self>) {
        self.end(Phase::Loading);
        self.env.handle.spawn(self.clone().load());
    }

    async fn load(self: Arc<Self>) {
        let image = Arc::clone(&self.env.controller.image());
        let shard = GroupShard::new(self.env.config.clone(), self.env.events.clone());
        let shard = shard.knowing(image);
        let loaded = load::read(&self.partition, shard).await;
        let log_end = loaded.as_ref().map(|loaded| loaded.log_end).unwrap_or_default();
        self.input(|state, now| {
            if !matches!(state.phase, Phase::Loading) {
                return;
            }
            state.phase = match loaded {
                Ok(loaded) => {
                    let mut serving = self.serve(loaded, now);
                    for topic in mem::take(&mut state.deleted) {
                        serving.runtime.notify(Event::TopicDeleted(topic), now);
                    }
                    Phase::Serving(serving)
                }
                Err(LoadError::Gone) => Phase::Resigned,
                Err(LoadError::Unreadable(error)) => {
                    tracing::error!(
                        partition = self.partition.index,
                        error,
                        "the groups cannot be read"
                    );
                    Phase::Cold { not_before_ms: now.after(LOAD_AGAIN_AFTER_MS) }
                }
            };
        });
        self.settled.notify_waiters();
        self.follow(log_end).await;
    }

    fn serve(&self, loaded: Loaded, now: Now) -> Box<Serving> {
        let Loaded { mut runtime, log_end, high_watermark } = loaded;
        runtime.finish_load(Offset(log_end), Offset(high_watermark), now);
        // A stop may have come between a topic's deletion and that of the positions on it.
        for name in self.deleted_topics(runtime.shard()) {
            let topic = DeletedTopic { name, id: TopicId::ZERO };
            runtime.notify(Event::TopicDeleted(topic), now);
        }
        Box::new(Serving { runtime, log_end })
    }

    /// Topics with positions that are there no more.
    fn deleted_topics(&self, shard: &GroupShard) -> BTreeSet<Arc<str>> {
        let image = self.env.controller.image();
        let topics = shard.images().flat_map(|(_, group)| group.offsets.keys());
        topics.filter(|name| image.topic(name).is_none()).cloned().collect()
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
