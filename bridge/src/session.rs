//! Connections, as far as the protocol knows them.
//!
//! A [`Session`] lives from the socket's accept to its close. It names the door it came in by, and
//! it is where the node reaches the client: requests of ours (the notice of a changed group) go
//! through its outbox, into which the connection's own loop looks.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, mpsc};

mod calls;
mod producers;

pub use self::calls::CallError;
use self::calls::Calls;
use self::producers::Producers;
pub(crate) use self::producers::Producing;

use crate::limits::CONNECTION_CLIENTS_MAX;
use crate::remoting::{RemotingCommand, SerializeType};

/// Names one connection for the life of the process. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// The listener a connection came in by; says which request codes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// 9876.
    NameServer,
    /// 10911.
    Broker,
    /// 10909, where old clients send first: the broker's door without pulls.
    BrokerVip,
}

/// Requests of ours on their way to a client; boxed, since a channel keeps room for 32 of them for
/// each connection.
pub type Outbox = mpsc::Sender<Box<RemotingCommand>>;

/// One connection.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    door: Door,
    peer: SocketAddr,
    outbox: Outbox,
    is_member: AtomicBool,
    client_id: OnceLock<Arc<str>>,
    /// Further clients that it speaks for.
    other_clients: Mutex<HashSet<Arc<str>>>,
    producers: Mutex<Producers>,
    close: Notify,
}

impl Session {
    /// The connection's name.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The listener it came in by.
    #[must_use]
    pub fn door(&self) -> Door {
        self.door
    }

    /// The client's end.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The client's id, once a heartbeat told it.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.client_id.get().map(AsRef::as_ref)
    }

    /// The client's id, or its address as long as that is all there is.
    #[must_use]
    pub fn client_name(&self) -> Arc<str> {
        self.client_id.get().cloned().unwrap_or_else(|| Arc::from(self.peer.to_string()))
    }

    /// Resolves once the node wants this connection closed; then its loop ends it as if the client
    /// had. May be dropped and called again.
    pub async fn close_requested(&self) {
        self.close.notified().await;
    }

    /// Remembers that the close of this connection concerns a group.
    pub(crate) fn set_member(&self) {
        self.is_member.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_member(&self) -> bool {
        self.is_member.load(Ordering::Relaxed)
    }
}

/// All open connections.
#[derive(Debug, Default)]
pub struct Sessions {
    open: RwLock<HashMap<SessionId, Arc<Session>>>,
    /// The connection by which each client was heard of last; never more than are open.
    clients: RwLock<HashMap<Arc<str>, SessionId>>,
    calls: Calls,
    next_id: AtomicU64,
    next_opaque: AtomicI32,
}

/// NOTIFY_CONSUMER_IDS_CHANGED.
const NOTIFY_CONSUMER_IDS_CHANGED: i32 = 40;

impl Sessions {
    /// Registers a connection. `outbox` should hold a handful; what does not fit is dropped.
    pub fn open(&self, door: Door, peer: SocketAddr, outbox: Outbox) -> Arc<Session> {
        let id = SessionId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let session = Arc::new(Session {
            id,
            door,
            peer,
            outbox,
            is_member: AtomicBool::new(false),
            client_id: OnceLock::new(),
            other_clients: Mutex::default(),
            producers: Mutex::default(),
            close: Notify::new(),
        });
        self.open.write().insert(id, Arc::clone(&session));
        session
    }

    /// Forgets a connection; who waits for an answer by it waits no longer.
    pub fn close(&self, id: SessionId) {
        let closed = self.open.write().remove(&id);
        if let Some(client_id) = closed.as_ref().and_then(|session| session.client_id.get()) {
            let mut clients = self.clients.write();
            if clients.get(client_id) == Some(&id) {
                clients.remove(client_id);
            }
        }
        self.calls.session_closed(id);
    }

    /// Remembers the client's id: a connection belongs to one client, and a client is reached by the
    /// connection that it spoke by last.
    /// `false` if it speaks for too many.
    pub(crate) fn identify(&self, session: &Session, client_id: &Arc<str>) -> bool {
        let first = session.client_id.get_or_init(|| Arc::clone(client_id));
        if first != client_id {
            let mut others = session.other_clients.lock();
            if !others.contains(client_id) {
                if others.len() + 1 >= CONNECTION_CLIENTS_MAX {
                    return false;
                }
                others.insert(Arc::clone(client_id));
            }
            return true;
        }
        let known = self.clients.read().get(client_id).copied();
        // Under the lock of the open ones, so that what is closed is not put back.
        let open = self.open.read();
        if known != Some(session.id) && open.contains_key(&session.id) {
            self.clients.write().insert(Arc::clone(client_id), session.id);
        }
        true
    }

    /// The connection of the client with this id.
    pub(crate) fn of_client(&self, client_id: &str) -> Option<SessionId> {
        self.clients.read().get(client_id).copied()
    }

    /// Has a connection closed by its loop; no matter if it is closed already.
    pub fn request_close(&self, id: SessionId) {
        if let Some(session) = self.open.read().get(&id) {
            session.close.notify_one();
        }
    }

    /// How many connections are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.read().len()
    }

    /// No connection is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands a request of ours to a connection, as soon as it has room; `false` if it is closed.
    pub async fn send(&self, to: SessionId, mut request: RemotingCommand) -> bool {
        request.opaque = self.next_opaque.fetch_add(1, Ordering::Relaxed);
        let session = self.open.read().get(&to).cloned();
        match session {
            Some(session) => session.outbox.send(Box::new(request)).await.is_ok(),
            None => false,
        }
    }

    /// Tells those of `members` that are connected here that their group changed (request 40, one
    /// way). A client that misses it rebalances within 20 s of its own accord, so a full outbox
    /// loses the notice.
    pub fn notify_consumer_ids_changed(
        &self,
        group: &str,
        members: impl IntoIterator<Item = SessionId>,
    ) {
        for member in members {
            let notice =
                RemotingCommand::request(NOTIFY_CONSUMER_IDS_CHANGED, 0, SerializeType::Json)
                    .with_field("consumerGroup", group);
            if !self.tell(member, notice) {
                tracing::debug!(group, ?member, "notice of a changed group dropped");
            }
        }
    }
}

#[cfg(test)]
mod tests;
