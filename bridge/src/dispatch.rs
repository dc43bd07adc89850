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

use crate::backend::Backend;
use crate::holds::Holds;
use crate::limits::HELD_PULLS_MAX;
use crate::processors::{self, Call, Handler, Refusal, Reply};
use crate::remoting::RemotingCommand;
use crate::response_code::ResponseCode;
use crate::session::{Door, Outbox, Session, Sessions};

/// A boxed future that another thread may poll.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What became of a request. `None` in both: nothing is to be written.
pub enum Dispatched {
    /// Answered without waiting for anything.
    Now(Option<RemotingCommand>),
    /// To be polled until it answers; may be dropped at any time.
    Later(BoxFuture<Option<RemotingCommand>>),
}

/// What all requests share.
pub(crate) struct Shared<B> {
    pub(crate) backend: B,
    pub(crate) sessions: Sessions,
    pub(crate) holds: Holds,
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
        let shared =
            Shared { backend, sessions: Sessions::default(), holds: Holds::new(HELD_PULLS_MAX) };
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

    /// All connections; through it the node sends notices.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.shared.sessions
    }

    /// Pulls that wait for records.
    #[must_use]
    pub fn held_pulls(&self) -> usize {
        self.shared.holds.len()
    }

    /// The subscription of `group` changed elsewhere: its held pulls look again.
    pub fn subscription_changed(&self, group: &str) {
        self.shared.holds.group_changed(group);
    }

    /// Begins to answer one request. Answers to requests of ours are accepted and dropped: all ours
    /// are one way.
    #[must_use]
    pub fn dispatch(&self, session: &Arc<Session>, request: RemotingCommand) -> Dispatched {
        if request.is_response() {
            return Dispatched::Now(None);
        }
        let reply = Reply::to(&request);
        let code = request.code;
        let Some(handler) = processors::handler::<B>(session.door(), code) else {
            let remark = format!(" request type {code} not supported");
            let refusal = Refusal::new(ResponseCode::REQUEST_CODE_NOT_SUPPORTED, remark);
            return Dispatched::Now(reply.finish(code, Err(refusal)));
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
