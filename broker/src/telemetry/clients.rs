//! The clients that have asked what is wanted of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Push;
use super::subscriptions::{Attributes, Subscriptions};
use crate::kafka::codec::Uuid;
use crate::limits::TELEMETRY_CLIENTS_MAX;

/// A client that was not heard of for so long, or for three of its intervals, is forgotten.
const FORGOTTEN_AFTER_MS: i64 = 60_000;

/// Before the first request.
const NEVER: i64 = i64::MIN / 2;

/// Codecs by number: none, gzip, snappy, lz4, zstd.
const COMPRESSIONS: std::ops::RangeInclusive<i8> = 0..=4;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Before its time.
    TooEarly,
    /// The client had said that the push before was its last one.
    Terminated,
    /// Not what is asked of it.
    UnknownSubscription,
    /// No such codec.
    UnsupportedCompression,
    /// Beyond `telemetry.max.bytes`.
    TooLarge,
    /// Not metrics, or not compressed so.
    Unreadable(String),
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    /// Of what follows.
    pub subscription: i32,
    /// Prefixes of names.
    pub metrics: Vec<String>,
    /// Time between two pushes.
    pub interval_ms: i32,
}

/// One client.
#[derive(Debug)]
struct Client {
    /// What is asked of all, when this was found out.
    asked: Arc<Subscriptions>,
    got: Got,
    last_get: i64,
    last_push: i64,
    terminating: bool,
    /// The last push was refused for what another get mends, which may come at once.
    outdated: bool,
    /// The place in [`Clients::by_use`].
    used: u64,
    heard: i64,
}

/// Whether a client was not known before.
pub(super) struct Known {
    pub(super) is_new: bool,
}

/// All of them, so many at most: then the one that was not heard of for longest goes.
#[derive(Debug, Default)]
pub(super) struct Clients {
    all: HashMap<Uuid, Client>,
    by_use: BTreeMap<u64, Uuid>,
    uses: u64,
}

impl Clients {
    /// Sees to it that the client is known, and asked for what is asked now.
    pub(super) fn know(
        &mut self,
        asked: &Arc<Subscriptions>,
        id: Uuid,
        attributes: Attributes,
        now: i64,
    ) -> Known {
        self.uses += 1;
        let used = self.uses;
        if let Some(client) = self.all.get_mut(&id) {
            self.by_use.remove(&client.used);
            let patience =
                FORGOTTEN_AFTER_MS.max(i64::from(client.got.interval_ms).saturating_mul(3));
            if Arc::ptr_eq(&client.asked, asked) && now - client.heard <= patience {
                (client.used, client.heard) = (used, now);
                self.by_use.insert(used, id);
                return Known { is_new: false };
            }
        }
        let is_new = self.all.insert(id, Client::new(asked, id, &attributes, used, now)).is_none();
        self.by_use.insert(used, id);
        while self.all.len() > TELEMETRY_CLIENTS_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.all.remove(&oldest);
        }
        Known { is_new }
    }

    /// What a client is asked for, unless it asks too often.
    pub(super) fn get(&mut self, id: Uuid, now: i64) -> Result<Got, Refusal> {
        let client = self.all.get_mut(&id).ok_or(Refusal::TooEarly)?;
        let last = client.last_get.max(client.last_push);
        let outdated = std::mem::take(&mut client.outdated);
        if now.saturating_sub(last) >= i64::from(client.got.interval_ms) {
            client.last_get = now;
        } else if !outdated {
            return Err(Refusal::TooEarly);
        }
        Ok(client.got.clone())
    }

    /// Whether a push is to be taken; returns the time to the next one.
    pub(super) fn push(&mut self, push: &Push, max_bytes: i32, now: i64) -> Result<i32, Refusal> {
        let client = self.all.get_mut(&push.client).ok_or(Refusal::TooEarly)?;
        let judged = client.judge(push, max_bytes, now);
        client.outdated =
            matches!(judged, Err(Refusal::UnknownSubscription | Refusal::UnsupportedCompression));
        judged.map(|()| client.got.interval_ms)
    }

    pub(super) fn forget(&mut self, id: Uuid) {
        if let Some(client) = self.all.remove(&id) {
            self.by_use.remove(&client.used);
        }
    }
}

impl Client {
    fn judge(&mut self, push: &Push, max_bytes: i32, now: i64) -> Result<(), Refusal> {
        let was_terminating = std::mem::replace(&mut self.terminating, push.terminating);
        if was_terminating {
            return Err(Refusal::Terminated);
        }
        // The first one after a get is in time whenever it comes: clients vary their intervals.
        let in_time = self.last_get > self.last_push
            || now.saturating_sub(self.last_push) >= i64::from(self.got.interval_ms);
        if in_time {
            self.last_push = now;
        } else if !push.terminating {
            return Err(Refusal::TooEarly);
        }
        if push.subscription != self.got.subscription {
            return Err(Refusal::UnknownSubscription);
        }
        if !COMPRESSIONS.contains(&push.compression) {
            return Err(Refusal::UnsupportedCompression);
        }
        if i32::try_from(push.metrics.len()).unwrap_or(i32::MAX) > max_bytes {
            return Err(Refusal::TooLarge);
        }
        Ok(())
    }

    fn new(
        asked: &Arc<Subscriptions>,
        id: Uuid,
        attributes: &Attributes,
        used: u64,
        now: i64,
    ) -> Self {
        let wanted = asked.wanted(attributes);
        // Another set of metrics, another interval or another client: another id.
        let text = format!("{:?}{}", wanted.metrics, wanted.interval_ms);
        let (high, low) = id.0.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().fold(0_u64, |sum, it| sum << 8 | u64::from(*it));
        let folded = word(high) ^ word(low);
        let own = (folded >> 32) as u32 ^ folded as u32;
        Self {
            asked: asked.clone(),
            got: Got {
                subscription: (hash(text.as_bytes()) ^ own).cast_signed(),
                metrics: wanted.metrics,
                interval_ms: wanted.interval_ms,
            },
            last_get: NEVER,
            last_push: NEVER,
            terminating: false,
            outdated: false,
            used,
            heard: now,
        }
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811C_9DC5, step)
}

#[cfg(test)]
mod tests;
