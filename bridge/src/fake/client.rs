//! A client of the node in memory.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::FakeBackend;
use crate::dispatch::{Answer, BoxFuture, Dispatched, Dispatcher};
use crate::remoting::{RemotingCommand, SerializeType};
use crate::session::{Door, Session};

/// A client of one connection to a node in memory.
pub(crate) struct Client {
    pub(crate) dispatcher: Dispatcher<FakeBackend>,
    pub(crate) session: Arc<Session>,
    pub(crate) inbox: mpsc::Receiver<Box<RemotingCommand>>,
}

impl Client {
    /// Connected to the broker's door of a new dispatcher.
    pub(crate) fn new(backend: FakeBackend) -> Self {
        Self::connect(Dispatcher::new(backend), Door::Broker)
    }

    /// Another connection to the same node.
    pub(crate) fn at(&self, door: Door) -> Self {
        Self::connect(self.dispatcher.clone(), door)
    }

    fn connect(dispatcher: Dispatcher<FakeBackend>, door: Door) -> Self {
        let (outbox, inbox) = mpsc::channel(8);
        let peer = "127.0.0.1:50000".parse().expect("an address");
        let session = dispatcher.open(door, peer, outbox);
        Self { dispatcher, session, inbox }
    }

    /// Dispatches a request without waiting for its answer.
    pub(crate) fn begin(&self, request: RemotingCommand) -> BoxFuture<Option<Answer>> {
        match self.dispatcher.dispatch(&self.session, request) {
            Dispatched::Now(answer) => Box::pin(std::future::ready(answer)),
            Dispatched::Later(answer) => answer,
        }
    }

    /// Sends a request and waits for its answer, if there is one.
    pub(crate) async fn send(&self, request: RemotingCommand) -> Option<RemotingCommand> {
        self.begin(request).await.map(Answer::into_command)
    }

    /// Sends what the Java client would, and waits for the answer that must come.
    pub(crate) async fn call(
        &self,
        code: i32,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> RemotingCommand {
        let mut request = RemotingCommand::request(code, 1, SerializeType::Json);
        request.ext_fields = fields.iter().copied().collect();
        request.body = Bytes::copy_from_slice(body);
        self.send(request).await.expect("an answer")
    }
}
