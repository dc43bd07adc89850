//! One Kafka connection: requests begin in order, answers leave in order.
//!
//! ```text
//! frame ─▶ handler running ─▶ Reply::Now ──────────────┐
//!             │ next frame waits until it returns      ▼
//!             └────────────▶ Reply::Later ─▶ in flight, oldest first ─▶ socket
//! ```
//!
//! A handler returns once its request has its place in the log or its whole answer. So a Produce
//! does not wait for the acknowledgement of the one before it, and a Fetch that waits for data
//! holds back what was sent behind it, as in Kafka. A client that sends no more is answered what it
//! has sent; only then is its connection closed, as in Kafka.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::event::Protocol;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use super::foreign;
use super::frames::{FrameError, Frames, LENGTH_BYTES, RequestFrame};
use super::memory::{Room, Unwritten};
use super::write::{Patience, write_patiently};
use crate::kafka::api::{self, Context, Pending, Refusal, Reply};
use crate::kafka::codec::{Frame, RequestHeader};
use crate::limits::IN_FLIGHT_MAX;
use crate::metrics::ApiTimer;
use crate::node::Node;
use crate::telemetry::ClientConnection;

/// A peer that sends no more has its answers within this time, or is taken to be gone.
const ENDED_PEER_LIMIT: Duration = Duration::from_secs(30);

/// Why a connection was closed by this side.
#[derive(Debug, thiserror::Error)]
enum CloseReason {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Refusal(#[from] Refusal),
    #[error("write failed: {0}")]
    Write(io::Error),
    #[error("idle for {0:?}")]
    Idle(Duration),
    #[error("the node is stopping")]
    Stopping,
}

/// A request that a handler works on.
struct Running {
    handler: api::Running,
    request: Request,
}

/// What is kept of a request until its answer is there.
struct Request {
    timer: ApiTimer,
    _room: Option<Room>,
}

/// An answer in its place.
struct InFlight {
    answer: Answer,
    request: Request,
}

enum Answer {
    Ready(Frame, Unwritten),
    Pending(Pending),
}

/// Serves a connection until either side ends it.
pub async fn serve(node: Arc<Node>, socket: TcpStream, peer: SocketAddr, listener: usize) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    let instruments = node.instruments.clone();
    instruments.tell_connected(Protocol::Kafka, peer);
    let idle = Duration::from_millis(node.config.connections.max_idle_ms.max(1).unsigned_abs());
    let (read, write) = socket.into_split();
    let (length_max, memory) = (node.config.connections.request_max_bytes, &node.requests);
    let frames = Frames::new(read, length_max, memory.clone());
    let patience = Patience { idle, stopping: node.stopping.clone() };
    let in_flight = VecDeque::new();
    let client = Arc::new(ClientConnection::default());
    let connection = Connection {
        node: node.clone(),
        write,
        peer,
        listener,
        client: client.clone(),
        patience,
        in_flight,
    };
    let ended = connection.run(frames).await;
    node.telemetry.disconnected(&client);
    let reason: &dyn Display = match &ended {
        Ok(()) => &"closed by the client",
        Err(reason) => reason,
    };
    tracing::debug!(%peer, %reason, "connection closed");
    if let Err(CloseReason::Frame(FrameError::Length { length, .. })) = &ended {
        foreign::complain(&instruments.complaints, Protocol::Kafka, peer, *length);
    }
    instruments.tell_closed(Protocol::Kafka, peer, reason);
}

struct Connection {
    node: Arc<Node>,
    write: OwnedWriteHalf,
    peer: SocketAddr,
    listener: usize,
    client: Arc<ClientConnection>,
    /// Silence after which it is closed, also of a client that takes no answers.
    patience: Patience,
    /// Oldest first.
    in_flight: VecDeque<InFlight>,
}

impl Connection {
    async fn run(mut self, mut frames: Frames) -> Result<(), CloseReason> {
        let (stopping, idle) = (self.node.stopping.clone(), self.patience.idle);
        let stopped = stopping.cancelled();
        let mut running: Option<Running> = None;
        let mut active = Instant::now();
        // Set once the peer sends no more: what it has sent is still answered.
        let mut ended = false;
        let alarm = sleep_until(active + idle);
        tokio::pin!(alarm, stopped);
        loop {
            if self.write_ready(&mut running).await? {
                active = Instant::now();
            }
            let busy = running.is_some() || self.in_flight.len() >= IN_FLIGHT_MAX;
            if ended && running.is_none() && self.in_flight.is_empty() {
                return Ok(());
            }
            let reading = match (ended, busy) {
                (true, _) => Reading::Nothing,
                (false, true) => Reading::Close,
                (false, false) => Reading::Frame,
            };
            tokio::select! {
                biased;
                answer = oldest(&mut self.in_flight) => self.settle(answer?),
                reply = handler(&mut running) => {
                    if let (Some(running), reply) = (running.take(), reply?) {
                        self.place(reply, running.request);
                    }
                }
                frame = input(&mut frames, reading) => match frame? {
                    Some(frame) => running = Some(self.begin(frame)?),
                    None => {
                        ended = true;
                        // Most likely it has gone, and nobody waits for the answers.
                        alarm.as_mut().reset(Instant::now() + idle.min(ENDED_PEER_LIMIT));
                    }
                },
                () = &mut stopped, if running.is_none() && self.in_flight.is_empty() => {
                    return Err(CloseReason::Stopping);
                }
                () = &mut alarm => {
                    if ended {
                        return Ok(());
                    }
                    let since = if busy { Instant::now() } else { active.max(frames.last_read()) };
                    if since.elapsed() >= idle {
                        return Err(CloseReason::Idle(idle));
                    }
                    alarm.as_mut().reset(since + idle);
                }
            }
        }
    }

    /// Writes the answers that are ready, oldest first; returns whether there was one.
    ///
    /// Meanwhile the handler goes on: what it has taken its turn for, others wait for, and a client may take its answers
    /// slowly, or none.
    async fn write_ready(&mut self, running: &mut Option<Running>) -> Result<bool, CloseReason> {
        let mut wrote = false;
        while let Some(next) =
            self.in_flight.pop_front_if(|next| matches!(next.answer, Answer::Ready(..)))
        {
            if let Answer::Ready(frame, _counted) = next.answer {
                let reply = {
                    let segments = frame.segments();
                    let writing = write_patiently(&mut self.write, segments, &self.patience);
                    write_beside(writing, running).await.map_err(CloseReason::Write)?
                };
                next.request.timer.finish(frame.len());
                wrote = true;
                if let Some(reply) = reply
                    && let Some(running) = running.take()
                {
                    self.place(reply?, running.request);
                }
            }
        }
        Ok(wrote)
    }

    fn place(&mut self, reply: Reply, request: Request) {
        let answer = match reply {
            Reply::Now(frame) => self.ready(frame),
            Reply::Later(pending) => Answer::Pending(pending),
            Reply::None => return request.timer.finish(0),
        };
        self.in_flight.push_back(InFlight { answer, request });
    }

    fn ready(&self, frame: Frame) -> Answer {
        let counted = self.node.answers.count(frame.len());
        Answer::Ready(frame, counted)
    }

    /// The oldest answer has come.
    fn settle(&mut self, answer: Option<Frame>) {
        let Some(mut oldest) = self.in_flight.pop_front() else { return };
        match answer {
            Some(frame) => {
                oldest.answer = self.ready(frame);
                self.in_flight.push_front(oldest);
            }
            None => oldest.request.timer.finish(0),
        }
    }

    /// Reads the request's header and starts its handler.
    fn begin(&self, frame: RequestFrame) -> Result<Running, Refusal> {
        let RequestFrame { bytes, room } = frame;
        let (header, body) = RequestHeader::decode(&bytes)?;
        let frame_bytes = LENGTH_BYTES + bytes.len();
        drop(bytes);
        let api = api::find(&self.node.config, &header)?;
        let timer = self.node.metrics.kafka(api.key).start(frame_bytes);
        let span = tracing::debug_span!(
            "request",
            api = api.key.name(),
            version = header.api_version,
            correlation_id = header.correlation_id,
            client_id = header.client_id.as_deref().unwrap_or_default(),
        );
        let context = Context {
            node: self.node.clone(),
            version: header.api_version,
            correlation_id: header.correlation_id,
            client_id: header.client_id,
            peer: self.peer,
            listener: self.listener,
            connection: self.client.clone(),
        };
        let mut handler = api.run(context, body);
        if !span.is_disabled() {
            handler = Box::pin(handler.instrument(span));
        }
        Ok(Running { handler, request: Request { timer, _room: room } })
    }
}

/// What is wanted of the peer next.
#[derive(Clone, Copy)]
enum Reading {
    /// Its next request.
    Frame,
    /// Only to hear that it sends no more.
    Close,
    /// Nothing: it sends no more.
    Nothing,
}

async fn input(frames: &mut Frames, reading: Reading) -> Result<Option<RequestFrame>, FrameError> {
    match reading {
        Reading::Frame => frames.next().await,
        Reading::Close => frames.closed().await.map(|()| None),
        Reading::Nothing => std::future::pending().await,
    }
}

/// The oldest answer, once it is there; never, when nothing is in flight.
async fn oldest(in_flight: &mut VecDeque<InFlight>) -> Result<Option<Frame>, Refusal> {
    match in_flight.front_mut().map(|oldest| &mut oldest.answer) {
        Some(Answer::Pending(pending)) => pending.await,
        _ => std::future::pending().await,
    }
}

/// Waits for `writing`; what the handler has returned meanwhile, if it has.
async fn write_beside(
    writing: impl Future<Output = io::Result<()>>,
    running: &mut Option<Running>,
) -> io::Result<Option<Result<Reply, Refusal>>> {
    tokio::pin!(writing);
    tokio::select! {
        biased;
        written = &mut writing => written.map(|()| None),
        reply = handler(running) => writing.await.map(|()| Some(reply)),
    }
}

/// What the running handler returns; never, when none runs.
async fn handler(running: &mut Option<Running>) -> Result<Reply, Refusal> {
    match running {
        Some(running) => running.handler.as_mut().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
