//! All sessions of a node: who gets a place, and who has to give it up.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;

use super::session::{Session, bytes_of};
use super::{
    Answered, Ask, FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, Naming, PartitionKey, SessionError,
    SessionRequest, Told, TopicKey, next_epoch,
};
use crate::kafka::codec::Str;
use crate::limits::{FETCH_SESSION_BYTES_MAX, FETCH_SESSION_EVICTION_MS};
use crate::metrics::{Counter, header};
use crate::random;

/// The sessions of a node.
#[derive(Debug)]
pub struct FetchSessions {
    slots: usize,
    bytes_max: usize,
    cache: Mutex<Cache>,
    incremental: Counter,
    full: Counter,
    evictions: Counter,
}

#[derive(Debug, Default)]
struct Cache {
    by_id: HashMap<i32, Entry>,
    /// Time of last use and id.
    by_use: BTreeSet<(i64, i32)>,
    /// Number of partitions and id of those that are old enough to give way to a larger one.
    evictable: BTreeSet<(usize, i32)>,
    partitions: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// Taken after the cache's own lock, never before.
    session: Arc<Mutex<Session>>,
    created_ms: i64,
    used_ms: i64,
    /// As the cache counts it.
    partitions: usize,
    bytes: usize,
}

/// A fetch that knows what it has to read.
#[derive(Debug)]
pub struct Begun {
    /// In the order of reading; with what was told before where only news is wanted.
    pub asks: Vec<(Ask, Option<Told>)>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// All is answered, nothing kept.
    Sessionless,
    /// All is answered; then there may be a session.
    Full(Naming),
    /// What has changed is answered.
    Incremental { id: i32, epoch: i32, session: Arc<Mutex<Session>> },
}

impl FetchSessions {
    /// Room for `slots` sessions (`max.incremental.fetch.session.cache.slots`).
    pub fn new(slots: usize) -> Self {
        Self::bounded(slots, FETCH_SESSION_BYTES_MAX)
    }

    pub(super) fn bounded(slots: usize, bytes_max: usize) -> Self {
        Self {
            slots,
            bytes_max,
            cache: Mutex::default(),
            incremental: Counter::default(),
            full: Counter::default(),
            evictions: Counter::default(),
        }
    }

    /// Takes in a request: what it asks for, each partition once, and what it asks for no more.
    /// `name_of` finds the name of a topic.
    ///
    /// Errors: the session that it names cannot be used; nothing has changed then, except that one
    /// which has grown too large for its node is gone.
    pub fn begin(
        &self,
        request: SessionRequest,
        asks: Vec<Ask>,
        forgotten: &[PartitionKey],
        name_of: impl Fn(&TopicKey) -> Option<Str>,
        now_ms: i64,
    ) -> Result<Begun, SessionError> {
        let full = |asks: Vec<Ask>, kind| {
            self.full.add(1);
            Begun { asks: asks.into_iter().map(|ask| (ask, None)).collect(), kind }
        };
        if matches!(request.epoch, INITIAL_EPOCH | FINAL_EPOCH) {
            if request.id != NO_SESSION {
                self.cache.lock().remove(request.id);
            }
            let kind = match request.epoch {
                INITIAL_EPOCH => Kind::Full(request.naming),
                _ => Kind::Sessionless,
            };
            return Ok(full(asks, kind));
        }
        let mut cache = self.cache.lock();
        let entry = cache.by_id.get(&request.id).ok_or(SessionError::UnknownId)?;
        let held = entry.session.clone();
        let mut session = held.lock();
        if session.epoch() != request.epoch {
            return Err(SessionError::InvalidEpoch);
        }
        if session.naming() != request.naming {
            return Err(SessionError::TopicIds);
        }
        session.update(&asks, forgotten);
        if session.is_empty() {
            cache.remove(request.id);
            return Ok(full(asks, Kind::Sessionless));
        }
        cache.touch(request.id, session.len(), session.bytes(), now_ms);
        if cache.bytes > self.bytes_max {
            cache.remove(request.id);
            self.evictions.add(1);
            return Err(SessionError::UnknownId);
        }
        drop(cache);
        session.advance();
        let asks = session.asks(name_of).into_iter().map(|(ask, told)| (ask, Some(told)));
        let asks = asks.collect();
        drop(session);
        self.incremental.add(1);
        let kind = Kind::Incremental { id: request.id, epoch: request.epoch, session: held };
        Ok(Begun { asks, kind })
    }

    /// Takes note of what is about to be answered, in its order, of an incremental fetch only the
    /// news. Returns the session id that the answer has to carry.
    ///
    /// Errors with that id too when another request has used the session meanwhile; then the answer
    /// must hold nothing else.
    pub fn finish(
        &self,
        begun: Begun,
        answered: &[(usize, Answered)],
        now_ms: i64,
    ) -> Result<i32, (i32, SessionError)> {
        match begun.kind {
            Kind::Sessionless => Ok(NO_SESSION),
            Kind::Full(naming) => {
                let mut asks: Vec<_> = begun.asks.into_iter().map(|(ask, _)| Some(ask)).collect();
                let told = answered.iter().filter_map(|(index, answered)| {
                    Some((asks.get_mut(*index)?.take()?, answered.told))
                });
                Ok(self.create(naming, told.collect(), now_ms))
            }
            Kind::Incremental { id, epoch, session } => {
                let mut session = session.lock();
                if session.epoch() != next_epoch(epoch) {
                    return Err((id, SessionError::InvalidEpoch));
                }
                session.told(answered.iter().filter_map(|(index, answered)| {
                    Some((&begun.asks.get(*index)?.0.key, *answered))
                }));
                Ok(id)
            }
        }
    }

    /// Makes a session if there is room, or one that has to give way; returns its id or 0.
    fn create(&self, naming: Naming, told: Vec<(Ask, Told)>, now_ms: i64) -> i32 {
        let bytes: usize = told.iter().map(|(ask, _)| bytes_of(ask)).sum();
        let mut cache = self.cache.lock();
        if cache.by_id.len() >= self.slots || cache.bytes.saturating_add(bytes) > self.bytes_max {
            let Some(loser) = cache.loser(told.len(), now_ms) else { return NO_SESSION };
            cache.remove(loser);
            self.evictions.add(1);
            if cache.bytes.saturating_add(bytes) > self.bytes_max {
                return NO_SESSION;
            }
        }
        let Some(id) = cache.free_id() else { return NO_SESSION };
        let session = Session::new(naming, told);
        let (partitions, bytes) = (session.len(), session.bytes());
        let entry = Entry {
            session: Arc::new(Mutex::new(session)),
            created_ms: now_ms,
            used_ms: now_ms,
            partitions: 0,
            bytes: 0,
        };
        cache.by_id.insert(id, entry);
        cache.touch(id, partitions, bytes, now_ms);
        id
    }

    /// Sessions now.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.cache.lock().by_id.len()
    }

    /// About how much memory they take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.cache.lock().bytes
    }

    #[cfg(test)]
    pub(super) fn set_epoch(&self, id: i32, epoch: i32) {
        self.cache.lock().by_id[&id].session.lock().set_epoch(epoch);
    }

    /// Writes what is known of them as Prometheus text.
    pub fn render(&self, out: &mut String) -> fmt::Result {
        let (sessions, partitions) = {
            let cache = self.cache.lock();
            (cache.by_id.len(), cache.partitions)
        };
        header(out, "duolog_fetch_sessions", "Fetch sessions kept.", "gauge")?;
        writeln!(out, "duolog_fetch_sessions {sessions}")?;
        let name = "duolog_fetch_session_partitions";
        header(out, name, "Partitions of all fetch sessions.", "gauge")?;
        writeln!(out, "{name} {partitions}")?;
        let name = "duolog_fetch_session_evictions_total";
        header(out, name, "Fetch sessions that gave way to others.", "counter")?;
        writeln!(out, "{name} {}", self.evictions.value())?;
        let name = "duolog_fetches_total";
        header(out, name, "Fetches by how much they answer.", "counter")?;
        for (kind, counter) in [("full", &self.full), ("incremental", &self.incremental)] {
            writeln!(out, "{name}{{kind=\"{kind}\"}} {}", counter.value())?;
        }
        Ok(())
    }
}

impl Cache {
    /// Takes note that a session was used and how large it is now.
    fn touch(&mut self, id: i32, partitions: usize, bytes: usize, now_ms: i64) {
        let Some(entry) = self.by_id.get_mut(&id) else { return };
        self.by_use.remove(&(entry.used_ms, id));
        self.evictable.remove(&(entry.partitions, id));
        self.partitions = self.partitions - entry.partitions + partitions;
        self.bytes = self.bytes - entry.bytes + bytes;
        (entry.used_ms, entry.partitions, entry.bytes) = (now_ms, partitions, bytes);
        self.by_use.insert((now_ms, id));
        // A young one stays, however small: else two large clients could push each other out.
        if now_ms.saturating_sub(entry.created_ms) > FETCH_SESSION_EVICTION_MS {
            self.evictable.insert((partitions, id));
        }
    }

    fn remove(&mut self, id: i32) {
        let Some(entry) = self.by_id.remove(&id) else { return };
        self.by_use.remove(&(entry.used_ms, id));
        self.evictable.remove(&(entry.partitions, id));
        self.partitions -= entry.partitions;
        self.bytes -= entry.bytes;
    }

    /// The session that a new one of `partitions` may take the place of: one that is not used any
    /// more, or else the smallest that is old enough and no larger.
    fn loser(&self, partitions: usize, now_ms: i64) -> Option<i32> {
        let (used_ms, idle) = self.by_use.first().copied()?;
        if now_ms.saturating_sub(used_ms) > FETCH_SESSION_EVICTION_MS {
            return Some(idle);
        }
        let (smallest, id) = self.evictable.first().copied()?;
        // Of two of the same size the one with the greater id wins; a new one counts as 0.
        (smallest < partitions).then_some(id)
    }

    /// An id that no session has and nobody can guess; `None` when the system gives no random bytes.
    fn free_id(&self) -> Option<i32> {
        loop {
            let id = i32::from_be_bytes(random::bytes().ok()?) & i32::MAX;
            if id != NO_SESSION && !self.by_id.contains_key(&id) {
                return Some(id);
            }
        }
    }
}
