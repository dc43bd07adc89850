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
//! holds back what was sent behind it, as in Kafka.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use duolog_log_core::event::Protocol;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use super::frames::{FrameError, Frames};
use super::write::write_segments;
use crate::kafka::api::{self, Context, Pending, Refusal, Reply, Running};
use crate::kafka::codec::{Frame, RequestHeader};
use crate::limits::IN_FLIGHT_MAX;
use crate::metrics::ApiTimer;
use crate::node::Node;

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

/// An answer in its place.
struct InFlight {
    answer: Answer,
    timer: ApiTimer,
}

enum Answer {
    Ready(Frame),
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
    let frames = Frames::new(read, node.config.connections.request_max_bytes);
    let connection = Connection { node, write, peer, listener, in_flight: VecDeque::new() };
    let ended = connection.run(frames, idle).await;
    let reason: &dyn Display = match &ended {
        Ok(()) => &"closed by the client",
        Err(reason) => reason,
    };
    tracing::debug!(%peer, %reason, "connection closed");
    instruments.tell_closed(Protocol::Kafka, peer, reason);
}

struct Connection {
    node: Arc<Node>,
    write: OwnedWriteHalf,
    peer: SocketAddr,
    listener: usize,
    /// Oldest first.
    in_flight: VecDeque<InFlight>,
}

impl Connection {
    async fn run(mut self, mut frames: Frames, idle: Duration) -> Result<(), CloseReason> {
        let stopping = self.node.stopping.clone();
        let stopped = stopping.cancelled();
        let mut running: Option<(Running, ApiTimer)> = None;
        let mut active = Instant::now();
        let alarm = sleep_until(active + idle);
        tokio::pin!(alarm, stopped);
        loop {
            if self.write_ready().await? {
                active = Instant::now();
            }
            let busy = running.is_some() || self.in_flight.len() >= IN_FLIGHT_MAX;
            let reading = if busy { Reading::Close } else { Reading::Frame };
            tokio::select! {
                biased;
                answer = oldest(&mut self.in_flight) => self.settle(answer?),
                reply = handler(&mut running) => {
                    if let (Some((_, timer)), reply) = (running.take(), reply?) {
                        self.place(reply, timer);
                    }
                }
                frame = input(&mut frames, reading) => {
                    let Some(frame) = frame? else { return Ok(()) };
                    active = Instant::now();
                    running = Some(self.begin(frame)?);
                }
                () = &mut stopped, if running.is_none() && self.in_flight.is_empty() => {
                    return Err(CloseReason::Stopping);
                }
                () = &mut alarm => {
                    if !busy && active.elapsed() >= idle {
                        return Err(CloseReason::Idle(idle));
                    }
                    let since = if busy { Instant::now() } else { active };
                    alarm.as_mut().reset(since + idle);
                }
            }
        }
    }

    /// Writes the answers that are ready, oldest first; returns whether there was one.
    async fn write_ready(&mut self) -> Result<bool, CloseReason> {
        let mut wrote = false;
        while let Some(next) =
            self.in_flight.pop_front_if(|next| matches!(next.answer, Answer::Ready(_)))
        {
            if let Answer::Ready(frame) = next.answer {
                write_segments(&mut self.write, frame.segments())
                    .await
                    .map_err(CloseReason::Write)?;
                next.timer.finish(frame.len());
                wrote = true;
            }
        }
        Ok(wrote)
    }

    fn place(&mut self, reply: Reply, timer: ApiTimer) {
        let answer = match reply {
            Reply::Now(frame) => Answer::Ready(frame),
            Reply::Later(pending) => Answer::Pending(pending),
            Reply::None => return timer.finish(0),
        };
        self.in_flight.push_back(InFlight { answer, timer });
    }

    /// The oldest answer has come.
    fn settle(&mut self, answer: Option<Frame>) {
        let Some(mut oldest) = self.in_flight.pop_front() else { return };
        match answer {
            Some(frame) => {
                oldest.answer = Answer::Ready(frame);
                self.in_flight.push_front(oldest);
            }
            None => oldest.timer.finish(0),
        }
    }

    /// Reads the request's header and starts its handler.
    fn begin(&self, frame: Bytes) -> Result<(Running, ApiTimer), Refusal> {
        let (header, body) = RequestHeader::decode(&frame)?;
        drop(frame);
        let api = api::find(&header)?;
        let timer = self.node.metrics.kafka(api.key).start(body.len());
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
        };
        let running = api.run(context, body);
        let disabled = span.is_disabled();
        Ok((if disabled { running } else { Box::pin(running.instrument(span)) }, timer))
    }
}

/// What is wanted of the peer next.
#[derive(Clone, Copy)]
enum Reading {
    /// Its next request.
    Frame,
    /// Only to hear that it has gone.
    Close,
}

async fn input(frames: &mut Frames, reading: Reading) -> Result<Option<Bytes>, FrameError> {
    match reading {
        Reading::Frame => frames.next().await,
        Reading::Close => frames.closed().await.map(|()| None),
    }
}

/// The oldest answer, once it is there; never, when nothing is in flight.
async fn oldest(in_flight: &mut VecDeque<InFlight>) -> Result<Option<Frame>, Refusal> {
    match in_flight.front_mut().map(|oldest| &mut oldest.answer) {
        Some(Answer::Pending(pending)) => pending.await,
        _ => std::future::pending().await,
    }
}

/// What the running handler returns; never, when none runs.
async fn handler(running: &mut Option<(Running, ApiTimer)>) -> Result<Reply, Refusal> {
    match running {
        Some((running, _)) => running.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
