//! Which producer groups the clients of each connection produce for. Source: ProducerManager.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Session, Sessions};
use crate::backend::ClientFacts;
use crate::limits::CONNECTION_PRODUCERS_MAX;

/// A client that produces for a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Producing {
    pub(crate) client: ClientFacts,
    /// Milliseconds since 1970.
    pub(crate) last_heartbeat_ms: i64,
}

/// Of one connection, by group and client id.
pub(super) type Producers = BTreeMap<(Arc<str>, Arc<str>), Producing>;

impl Session {
    /// Registers or renews a client in a group; `false` if the connection has too many.
    pub(crate) fn produces(&self, group: &str, producing: Producing) -> bool {
        let mut producers = self.producers.lock();
        let key = (Arc::from(group), Arc::clone(&producing.client.client_id));
        if producers.len() >= CONNECTION_PRODUCERS_MAX && !producers.contains_key(&key) {
            return false;
        }
        producers.insert(key, producing);
        true
    }

    /// A client leaves a group; it need not be in it.
    pub(crate) fn produces_no_more(&self, group: &str, client_id: &str) {
        self.producers.lock().remove(&(Arc::from(group), Arc::from(client_id)));
    }
}

impl Sessions {
    /// All producers that are connected here, by group.
    pub(crate) fn producers(&self) -> BTreeMap<Arc<str>, Vec<Producing>> {
        let sessions: Vec<Arc<Session>> = self.open.read().values().cloned().collect();
        let mut groups = BTreeMap::<Arc<str>, Vec<Producing>>::new();
        for session in sessions {
            for ((group, _), producing) in session.producers.lock().iter() {
                groups.entry(Arc::clone(group)).or_default().push(producing.clone());
            }
        }
        for producers in groups.values_mut() {
            producers.sort_by(|one, other| one.client.client_id.cmp(&other.client.client_id));
        }
        groups
    }
}
