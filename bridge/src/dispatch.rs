//! From a decoded request to its answer: the one entry for the loop that owns a connection.
//!
//! That loop reads frames, calls [`Dispatcher::dispatch`] for each in the order they came, writes
//! what is answered [`Dispatched::Now`], and polls what is [`Dispatched::Later`] beside its
//! reading, in any number and any order: the opaque number joins answer and request, and a held
//! pull must not keep the requests behind it. What a request changes at once (registering a member,
//! handing a record to its partition) is done in the first poll; so the loop polls each future once
//! before it dispatches the next request, which keeps one connection's sends in order. When the
//! connection ends it drops the futures and calls [`Dispatcher::close`].

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use duolog_log_core::ids::TopicId;
use tokio::sync::Semaphore;

use crate::backend::Backend;
use crate::complaints::Complaints;
use crate::deliveries::Deliveries;
use crate::holds::Holds;
use crate::limits::{HELD_PULLS_MAX, QUERIES_MAX};
use crate::namesrv::write_permission::RoutePermissions;
use crate::pops::Pops;
use crate::processors::{
    self, Call, Handler, HeartbeatFingerprints, Outcome, Refusal, Reply, UniqueKeys, Unseeable,
};
use crate::remoting::{EncodeError, RemotingCommand, SegmentedOut};
use crate::resets::OffsetResets;
use crate::response_code::ResponseCode;
use crate::session::{Door, Outbox, Session, Sessions};
use crate::sql92::Selectors;
use crate::subscriptions::Compared;

/// A boxed future that another thread may poll.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An answer to be written.
#[derive(Debug)]
pub struct Answer {
    head: RemotingCommand,
    /// In the place of the head's own body.
    messages: Option<SegmentedOut>,
}

impl Answer {
    /// An answer whose body are messages, which may share the log's memory.
    pub(crate) fn with_messages(head: RemotingCommand, messages: SegmentedOut) -> Self {
        Self { head, messages: Some(messages) }
    }

    /// The response code.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.head.code
    }

    /// Appends the answer's frame.
    ///
    /// # Errors
    /// It does not fit a frame; `out` is then as it was.
    pub fn encode(self, out: &mut SegmentedOut) -> Result<(), EncodeError> {
        match self.messages {
            Some(messages) => self.head.encode_with_body(messages, out),
            None => self.head.encode(out),
        }
    }

    /// The answer in one piece; copies the messages.
    #[must_use]
    pub fn into_command(self) -> RemotingCommand {
        match self.messages {
            Some(messages) => self.head.with_body(messages.into_bytes()),
            None => self.head,
        }
    }
}

impl From<RemotingCommand> for Answer {
    fn from(head: RemotingCommand) -> Self {
        Self { head, messages: None }
    }
}

/// What became of a request. `None` in both: nothing is to be written.
pub enum Dispatched {
    /// Answered without waiting for anything.
    Now(Option<Answer>),
    /// To be polled until it answers; may be dropped at any time.
    Later(BoxFuture<Option<Answer>>),
}

/// What all requests share.
pub(crate) struct Shared<B> {
    pub(crate) backend: B,
    pub(crate) sessions: Sessions,
    pub(crate) holds: Holds,
    pub(crate) pops: Pops,
    pub(crate) deliveries: Deliveries,
    pub(crate) resets: OffsetResets,
    /// What the name server shows of permissions.
    pub(crate) route_permissions: RoutePermissions,
    pub(crate) fingerprints: HeartbeatFingerprints,
    pub(crate) unique_keys: UniqueKeys,
    /// What the members of groups want.
    pub(crate) compared: Compared,
    pub(crate) unseeable: Unseeable,
    pub(crate) started_ms: i64,
    /// SQL92 expressions of late.
    pub(crate) selectors: Selectors,
    /// What the console has said of refused requests.
    pub(crate) complaints: Complaints,
    /// Turns of queries by key.
    pub(crate) queries: Semaphore,
    /// Turns where the broker chooses the queue.
    next_queue: AtomicU32,
}

impl<B> Shared<B> {
    /// One of `queues` queues, each in its turn.
    pub(crate) fn next_queue(&self, queues: i32) -> i32 {
        let turn = self.next_queue.fetch_add(1, Ordering::Relaxed) & i32::MAX as u32;
        i32::try_from(turn).unwrap_or(0).checked_rem(queues).unwrap_or(0)
    }
}

/// The RocketMQ side of a node. Clones are handles to one.
pub struct Dispatcher<B> {
    shared: Arc<Shared<B>>,
}

impl<B> Clone for Dispatcher<B> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<B: Backend> Dispatcher<B> {
    /// Serves what `backend` stores.
    pub fn new(backend: B) -> Self {
        let started_ms = backend.now_ms();
        let shared = Shared {
            backend,
            sessions: Sessions::default(),
            holds: Holds::new(HELD_PULLS_MAX),
            pops: Pops::default(),
            deliveries: Deliveries::default(),
            resets: OffsetResets::default(),
            route_permissions: RoutePermissions::default(),
            fingerprints: HeartbeatFingerprints::default(),
            unique_keys: UniqueKeys::default(),
            compared: Compared::default(),
            unseeable: Unseeable::default(),
            started_ms,
            selectors: Selectors::default(),
            complaints: Complaints::default(),
            queries: Semaphore::new(QUERIES_MAX),
            next_queue: AtomicU32::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A connection begins. What comes out of the other end of `outbox` is to be written to it.
    #[must_use]
    pub fn open(&self, door: Door, peer: SocketAddr, outbox: Outbox) -> Arc<Session> {
        self.shared.sessions.open(door, peer, outbox)
    }

    /// A connection has ended: its members leave their groups.
    pub fn close(&self, session: &Session) {
        self.shared.sessions.close(session.id());
        if session.is_member() {
            self.shared.backend.session_closed(session.id());
        }
    }

    /// The node that is served.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.shared.backend
    }

    /// All connections; through it the node sends notices.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.shared.sessions
    }

    /// Pulls that wait for records.
    #[must_use]
    pub fn held_pulls(&self) -> usize {
        self.shared.holds.count()
    }

    /// The subscription of `group` changed elsewhere: its held pulls look again.
    pub fn subscription_changed(&self, group: &str) {
        self.shared.holds.group_changed(group);
    }

    /// A group may take something of a queue: its held pops look into it again.
    pub fn pop_ready(&self, group: &str, topic: TopicId, queue_id: i32) {
        self.shared.pops.ready(group, topic, queue_id);
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<Shared<B>> {
        Arc::clone(&self.shared)
    }

    /// Begins to answer one request. Answers to requests of ours go to whoever waits for them.
    #[must_use]
    pub fn dispatch(&self, session: &Arc<Session>, request: RemotingCommand) -> Dispatched {
        if request.is_response() {
            self.shared.sessions.answered(session, request);
            return Dispatched::Now(None);
        }
        let reply = Reply::to(&request);
        let code = request.code;
        tracing::trace!(code, opaque = request.opaque, peer = %session.peer(), "request");
        let Some(handler) = processors::handler::<B>(session.door(), code) else {
            let remark = format!(" request type {code} not supported");
            let refusal = Refusal::new(ResponseCode::REQUEST_CODE_NOT_SUPPORTED, remark);
            self.shared.complain_of_code(session, &request);
            return Dispatched::Now(reply.finish(code, Outcome::Err(refusal)));
        };
        let (shared, session) = (Arc::clone(&self.shared), Arc::clone(session));
        let call = Call { shared, session, reply, request };
        match handler {
            Handler::Now(handle) => Dispatched::Now(reply.finish(code, handle(&call))),
            Handler::Later(handle) => Dispatched::Later(handle(call)),
        }
    }
}

impl<B> fmt::Debug for Dispatcher<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dispatcher").field("sessions", &self.shared.sessions).finish()
    }
}

impl fmt::Debug for Dispatched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => formatter.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => formatter.write_str("Later"),
        }
    }
}

#[cfg(test)]
mod tests;
