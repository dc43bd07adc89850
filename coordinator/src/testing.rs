//! A coordinator's shard on a log in memory, for the tests of each kind.

use std::collections::{BTreeMap, BTreeSet};

use duolog_log_core::ids::Offset;

use crate::error::AppendError;
use crate::runtime::{Effect, Runtime};
use crate::shard::{RecordBytes, RequestId, Shard};
use crate::time::Now;

/// When a test begins.
pub(crate) const BEGIN: Now = Now { wall_ms: 1_000_000, tick_ms: 0 };

/// A shard's runtime, performed: appends succeed and are committed at once, unless told otherwise.
/// `more` is what the tests of one kind keep beside.
pub(crate) struct Driven<S: Shard, More = ()> {
    pub(crate) runtime: Runtime<S>,
    pub(crate) now: Now,
    pub(crate) log: Vec<RecordBytes>,
    /// Where batches end.
    pub(crate) ends: BTreeSet<usize>,
    pub(crate) notices: Vec<S::Notice>,
    /// The next append fails so.
    pub(crate) failure: Option<AppendError>,
    pub(crate) requests: u64,
    pub(crate) more: More,
    answers: BTreeMap<u64, Result<S::Response, S::Error>>,
}

/// A shard that has just read `log`.
pub(crate) fn load<S: Shard>(shard: S, log: &[RecordBytes], now: Now) -> Runtime<S> {
    let mut runtime = Runtime::loading(shard);
    for (offset, record) in log.iter().enumerate() {
        let offset = Offset(offset as i64);
        let loaded = runtime.load(offset, Some(&record.key), record.value.as_ref());
        assert!(loaded.expect("a record"), "it is known");
    }
    let end = Offset(log.len() as i64);
    runtime.finish_load(end, end, now);
    runtime
}

impl<S: Shard, More> Driven<S, More> {
    /// One that has just read `log`.
    pub(crate) fn loaded(shard: S, log: Vec<RecordBytes>, now: Now, more: More) -> Self {
        let mut driven = Self {
            runtime: load(shard, &log, now),
            now,
            ends: BTreeSet::from([log.len()]),
            log,
            notices: Vec::new(),
            failure: None,
            requests: 0,
            more,
            answers: BTreeMap::new(),
        };
        driven.perform();
        driven
    }

    pub(crate) fn perform(&mut self) {
        while let Some(effect) = self.runtime.poll_effect() {
            match effect {
                Effect::Append { id, records, .. } => match self.failure.take() {
                    Some(error) => self.runtime.append_failed(id, error, self.now),
                    None => {
                        let base = Offset(self.log.len() as i64);
                        self.log.extend(records);
                        self.ends.insert(self.log.len());
                        self.runtime.appended(id, base, self.now);
                        self.runtime.advance_high_watermark(Offset(self.log.len() as i64));
                    }
                },
                Effect::Reply { request, answer } => {
                    assert!(self.answers.insert(request.0, answer).is_none());
                }
                Effect::Notice(notice) => self.notices.push(notice),
            }
        }
    }

    /// Sends a request, which is answered at once.
    pub(crate) fn request(&mut self, event: S::Event) -> Result<S::Response, S::Error> {
        let request = self.requests;
        self.requests += 1;
        self.runtime.submit(RequestId(request), event, self.now);
        self.perform();
        self.answers.remove(&request).expect("an answer at once")
    }

    /// Lets time pass; returns whether the alarm was set to ring by then.
    pub(crate) fn pass(&mut self, ms: i64) -> bool {
        self.now = Now { wall_ms: self.now.wall_ms + ms, tick_ms: self.now.tick_ms + ms };
        let rings = self.runtime.next_deadline().is_some_and(|at| at <= self.now.tick_ms);
        self.runtime.tick(self.now);
        self.perform();
        rings
    }

    /// Fires each timer when it is due while time passes.
    pub(crate) fn pass_timers(&mut self, ms: i64) {
        let end = self.now.tick_ms + ms;
        loop {
            let due = self.runtime.next_deadline().filter(|due| *due <= end);
            let to = due.map_or(end, |due| due.max(self.now.tick_ms));
            self.now.wall_ms += to - self.now.tick_ms;
            self.now.tick_ms = to;
            self.runtime.tick(self.now);
            self.perform();
            if due.is_none() {
                return;
            }
        }
    }
}
