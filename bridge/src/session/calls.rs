//! Requests of ours that the client answers.
//!
//! Most of what the node tells a client is one way. A reply, a question to a consumer, or a message
//! to be consumed at once wants an answer: its opaque number joins the two, and the connection's
//! end, a timeout or the asker's own end let go of it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Session, SessionId, Sessions};
use crate::limits::CLIENT_CALLS_MAX;
use crate::remoting::RemotingCommand;

/// Why a client gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It is not connected, or not any more.
    #[error("the client is not connected")]
    Gone,
    /// Too many answers are waited for, or the client takes no requests.
    #[error("too many requests to clients wait for their answers")]
    Busy,
    /// It did not answer in time.
    #[error("the client did not answer within {0:?}")]
    Timeout(Duration),
}

/// Who waits for which answer, by opaque number.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<HashMap<i32, Waiting>>);

#[derive(Debug)]
struct Waiting {
    session: SessionId,
    answer: oneshot::Sender<RemotingCommand>,
}

/// Ends the wait when dropped.
struct Place<'a> {
    calls: &'a Calls,
    opaque: i32,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.opaque);
    }
}

impl Calls {
    fn begin(
        &self,
        opaque: i32,
        session: SessionId,
    ) -> Option<(Place<'_>, oneshot::Receiver<RemotingCommand>)> {
        let mut waiting = self.0.lock();
        if waiting.len() >= CLIENT_CALLS_MAX || waiting.contains_key(&opaque) {
            return None;
        }
        let (answer, receiver) = oneshot::channel();
        waiting.insert(opaque, Waiting { session, answer });
        Some((Place { calls: self, opaque }, receiver))
    }

    pub(super) fn session_closed(&self, session: SessionId) {
        self.0.lock().retain(|_, waiting| waiting.session != session);
    }
}

impl Sessions {
    /// Sends a request to a client and waits for its answer.
    ///
    /// # Errors
    /// See [`CallError`].
    pub(crate) async fn call(
        &self,
        id: SessionId,
        mut request: RemotingCommand,
        limit: Duration,
    ) -> Result<RemotingCommand, CallError> {
        let session = self.open.read().get(&id).cloned().ok_or(CallError::Gone)?;
        request.opaque = self.next_opaque.fetch_add(1, Ordering::Relaxed);
        let (_place, answer) = self.calls.begin(request.opaque, id).ok_or(CallError::Busy)?;
        session.outbox.try_send(Box::new(request)).map_err(|_| CallError::Busy)?;
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(CallError::Gone),
            Err(_) => Err(CallError::Timeout(limit)),
        }
    }

    /// Sends a request that has no answer; `false` if it does not reach the connection.
    pub fn tell(&self, id: SessionId, request: RemotingCommand) -> bool {
        let Some(session) = self.open.read().get(&id).cloned() else { return false };
        let mut request = request.one_way();
        request.opaque = self.next_opaque.fetch_add(1, Ordering::Relaxed);
        session.outbox.try_send(Box::new(request)).is_ok()
    }

    /// An answer has come; one that nobody waits for is dropped.
    pub(crate) fn answered(&self, session: &Session, answer: RemotingCommand) {
        let mut waiting = self.calls.0.lock();
        let is_asked = |waiting: &Waiting| waiting.session == session.id;
        if waiting.get(&answer.opaque).is_some_and(is_asked)
            && let Some(waiting) = waiting.remove(&answer.opaque)
        {
            // Whoever asked may just have gone.
            let _ = waiting.answer.send(answer);
        }
    }
}
