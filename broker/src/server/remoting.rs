//! One RocketMQ connection: requests begin in the order they come, answers leave as they are ready.
//!
//! What is answered while the socket's bytes are taken apart leaves in one write. A request that
//! waits is polled once before the next one begins, which keeps one connection's sends in order,
//! and again once all that was read has begun, so that its sends to one queue are written
//! together; from then on it is on its own, and its opaque number joins answer and request.

use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::Duration;

use duolog_bridge::backend::Backend;
use duolog_bridge::dispatch::{Answer, BoxFuture, Dispatched, Dispatcher};
use duolog_bridge::remoting::{Decoder, EncodeError, FrameError, RemotingCommand, SegmentedOut};
use duolog_bridge::session::{Door, Session};
use duolog_log_core::event::Protocol;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::foreign;
use super::memory::{RequestMemory, Room};
use super::read_buffer::{FIRST_READ_BYTES, Input, ReadBuffer};
use super::write::write_segments;
use crate::instruments::Instruments;
use crate::limits::{REMOTING_IN_FLIGHT_MAX, REMOTING_NOTICES_MAX, REMOTING_OUT_BYTES};
use crate::metrics::{ApiTimer, Metrics};

/// The length field of a frame, which does not count itself.
const LENGTH_BYTES: usize = 4;

/// How long a connection may take to answer what it owes once the node stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// First piece of what is written: answers to some sends fit.
const FIRST_WRITE_BYTES: usize = 1024;

/// Why a connection was closed by this side.
#[derive(Debug, thiserror::Error)]
enum CloseReason {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("unencodable answer: {0}")]
    Encode(#[from] EncodeError),
    #[error("connection failed: {0}")]
    Io(#[from] std::io::Error),
    #[error("idle for {0:?}")]
    Idle(Duration),
    #[error("the client takes no answers for {0:?}")]
    Stuck(Duration),
    #[error("no heartbeat for too long")]
    Expired,
    #[error("the node is stopping")]
    Stopping,
}

/// What every connection of one door has.
pub struct Entrance<B> {
    /// Which codes there are.
    pub door: Door,
    /// Serves requests.
    pub dispatcher: Dispatcher<B>,
    /// Count requests, answers and bytes.
    pub metrics: Arc<Metrics>,
    /// Hear of connections that come and go.
    pub instruments: Arc<Instruments>,
    /// Room for what clients send.
    pub requests: RequestMemory,
    /// A connection that is neither read from nor written to for so long is closed.
    pub idle: Duration,
    /// Set once nothing new is to begin.
    pub stopping: CancellationToken,
}

/// A request that has begun and is not answered.
struct Waiting {
    later: BoxFuture<Option<Answer>>,
    /// `None` once it is answered.
    timer: Option<ApiTimer>,
    /// Of a large request.
    _room: Option<Room>,
}

impl Future for Waiting {
    type Output = (Option<Answer>, ApiTimer);

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(answer) = self.later.as_mut().poll(context) else { return Poll::Pending };
        self.timer.take().map_or(Poll::Pending, |timer| Poll::Ready((answer, timer)))
    }
}

/// Whether whole requests may be left in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    More,
}

/// Serves a connection until either side ends it.
pub async fn serve<B: Backend>(entrance: &Entrance<B>, socket: TcpStream, peer: SocketAddr) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    entrance.instruments.tell_connected(Protocol::RocketMq, peer);
    let (read, write) = socket.into_split();
    let (outbox, notices) = mpsc::channel(REMOTING_NOTICES_MAX);
    let session = entrance.dispatcher.open(entrance.door, peer, outbox);
    let connection = Connection {
        entrance,
        session: &session,
        input: ReadBuffer::new(read, entrance.requests.clone()),
        write,
        out: SegmentedOut::default(),
        begun: Vec::new(),
        waiting: FuturesUnordered::new(),
        active: Instant::now(),
    };
    let ended = connection.run(notices).await;
    let reason: &dyn Display = match &ended {
        Ok(()) => &"closed by the client",
        Err(reason) => reason,
    };
    tracing::debug!(%peer, %reason, "connection closed");
    if let Err(CloseReason::Frame(FrameError::Length { length, .. })) = &ended {
        let complaints = &entrance.instruments.complaints;
        foreign::complain(complaints, Protocol::RocketMq, peer, *length);
    }
    entrance.dispatcher.close(&session);
    entrance.instruments.tell_closed(Protocol::RocketMq, peer, reason);
}

struct Connection<'a, B> {
    entrance: &'a Entrance<B>,
    session: &'a Arc<Session>,
    input: ReadBuffer,
    write: OwnedWriteHalf,
    /// Answers that are not written yet.
    out: SegmentedOut,
    /// Requests of what is being taken apart; empty whenever the connection waits.
    begun: Vec<Waiting>,
    waiting: FuturesUnordered<Waiting>,
    /// When something was last read or written.
    active: Instant,
}

impl<B: Backend> Connection<'_, B> {
    async fn run(
        mut self,
        mut notices: mpsc::Receiver<Box<RemotingCommand>>,
    ) -> Result<(), CloseReason> {
        let (entrance, idle) = (self.entrance, self.entrance.idle);
        let alarm = sleep_until(self.active + idle);
        let stopped = entrance.stopping.cancelled();
        tokio::pin!(alarm, stopped);
        let mut stopping = false;
        loop {
            if !stopping && entrance.stopping.is_cancelled() {
                stopping = true;
                alarm.as_mut().reset(Instant::now() + DRAIN_LIMIT);
            }
            // What is begun is answered; nothing more is begun.
            let frame = if stopping { None } else { self.dispatch_all().await? };
            self.write_out().await?;
            if stopping && self.waiting.is_empty() {
                return Err(CloseReason::Stopping);
            }
            let open = !stopping && self.waiting.len() < REMOTING_IN_FLIGHT_MAX;
            tokio::select! {
                Some((answer, timer)) = self.waiting.next(), if !self.waiting.is_empty() => {
                    self.answer(answer, timer)?;
                }
                Some(notice) = notices.recv() => notice.encode(&mut self.out)?,
                input = read_on(&mut self.input, frame), if open => {
                    if input? == Input::End {
                        return Ok(());
                    }
                    self.active = Instant::now();
                }
                () = &mut stopped, if !stopping => {}
                () = self.session.close_requested() => return Err(CloseReason::Expired),
                () = &mut alarm => {
                    if stopping {
                        return Err(CloseReason::Stopping);
                    }
                    let since = self.active.max(self.input.last_read());
                    if since.elapsed() >= idle {
                        return Err(CloseReason::Idle(idle));
                    }
                    alarm.as_mut().reset(since + idle);
                }
            }
        }
    }

    /// Begins every request that is whole; returns how many bytes the next one has, if so much of it
    /// is there.
    async fn dispatch_all(&mut self) -> Result<Option<usize>, CloseReason> {
        while poll_fn(|context| Poll::Ready(self.dispatch_some(context))).await? == Left::More {
            self.flush().await?;
        }
        let announced = self.input.bytes.first_chunk().map(|field| i32::from_be_bytes(*field));
        let length = announced.and_then(|length| usize::try_from(length).ok());
        Ok(length.map(|length| length.saturating_add(LENGTH_BYTES)))
    }

    /// Begins requests that are whole, as long as the answers are not too many to be kept, then goes
    /// on with those that are not answered. Between the two nothing is awaited: what has its place in
    /// a partition and is not written yet holds up others there.
    fn dispatch_some(&mut self, context: &mut task::Context<'_>) -> Result<Left, CloseReason> {
        let decoder = Decoder::default();
        let mut left = Left::Nothing;
        while self.waiting.len() + self.begun.len() < REMOTING_IN_FLIGHT_MAX {
            let held = self.input.bytes.len();
            let Some(request) = decoder.decode(&mut self.input.bytes)? else { break };
            let frame_bytes = held - self.input.bytes.len();
            self.input.release();
            let room = self.input.take_room();
            self.begin(request, frame_bytes, room)?;
            if self.out.len() >= REMOTING_OUT_BYTES {
                left = Left::More;
                break;
            }
        }
        let mut begun = mem::take(&mut self.begun);
        for mut waiting in begun.drain(..) {
            match Pin::new(&mut waiting).poll(context) {
                Poll::Ready((answer, timer)) => self.answer(answer, timer)?,
                Poll::Pending => self.waiting.push(waiting),
            }
        }
        self.begun = begun;
        Ok(left)
    }

    fn begin(
        &mut self,
        request: RemotingCommand,
        frame_bytes: usize,
        room: Option<Room>,
    ) -> Result<(), CloseReason> {
        let timer = self.entrance.metrics.rocketmq(request.code).start(frame_bytes);
        let mut later = match self.entrance.dispatcher.dispatch(self.session, request) {
            Dispatched::Now(answer) => return self.answer(answer, timer),
            Dispatched::Later(later) => later,
        };
        // It need not wake anybody: it is polled again as soon as all has begun.
        match later.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => self.answer(answer, timer),
            Poll::Pending => {
                self.begun.push(Waiting { later, timer: Some(timer), _room: room });
                Ok(())
            }
        }
    }

    fn answer(&mut self, answer: Option<Answer>, timer: ApiTimer) -> Result<(), CloseReason> {
        add(&mut self.out, answer, timer)
    }

    /// Writes what is ready, with all that has become ready in the meantime.
    async fn write_out(&mut self) -> Result<(), CloseReason> {
        loop {
            while self.out.len() < REMOTING_OUT_BYTES
                && let Some(Some((answer, timer))) = ready(&mut self.waiting).await
            {
                self.answer(answer, timer)?;
            }
            if self.out.is_empty() {
                return Ok(());
            }
            self.flush().await?;
        }
    }

    /// Writes the answers that there are. A client that does not take them holds up only itself, and
    /// is given up after the idle time, or when the node wants to. Meanwhile requests that wait go on,
    /// as long as their answers are not too many to be kept: others may wait for a turn that was given
    /// to one of them.
    async fn flush(&mut self) -> Result<(), CloseReason> {
        if self.out.is_empty() {
            return Ok(());
        }
        let idle = self.entrance.idle;
        let mut segments = mem::take(&mut self.out).into_segments();
        let writing = write_segments(&mut self.write, segments.make_contiguous());
        let (stuck, stopped) = (tokio::time::sleep(idle), drained(&self.entrance.stopping));
        tokio::pin!(writing, stuck, stopped);
        loop {
            let open = self.out.len() < REMOTING_OUT_BYTES && !self.waiting.is_empty();
            tokio::select! {
                biased;
                written = &mut writing => {
                    written?;
                    break;
                }
                () = &mut stuck => return Err(CloseReason::Stuck(idle)),
                () = &mut stopped => return Err(CloseReason::Stopping),
                () = self.session.close_requested() => return Err(CloseReason::Expired),
                Some((answer, timer)) = self.waiting.next(), if open => {
                    add(&mut self.out, answer, timer)?;
                }
            }
        }
        self.active = Instant::now();
        Ok(())
    }
}

/// Encodes an answer, if there is one, behind others.
fn add(out: &mut SegmentedOut, answer: Option<Answer>, timer: ApiTimer) -> Result<(), CloseReason> {
    if out.is_empty() {
        *out = SegmentedOut::with_capacity(FIRST_WRITE_BYTES);
    }
    let before = out.len();
    if let Some(answer) = answer {
        answer.encode(out)?;
    }
    timer.finish(out.len() - before);
    Ok(())
}

/// Reads on in a frame of so many bytes, if that is known.
async fn read_on(input: &mut ReadBuffer, frame: Option<usize>) -> std::io::Result<Input> {
    match frame {
        Some(total) if input.bytes.len() < total => input.read_frame(total).await,
        // A whole one that may not begin yet: only to hear that the client goes.
        Some(_) => input.read(1).await,
        None => input.read(FIRST_READ_BYTES).await,
    }
}

/// Resolves once a node that stops has given its clients time enough.
async fn drained(stopping: &CancellationToken) {
    stopping.cancelled().await;
    tokio::time::sleep(DRAIN_LIMIT).await;
}

/// The next answer if one is ready now.
async fn ready(
    waiting: &mut FuturesUnordered<Waiting>,
) -> Option<Option<(Option<Answer>, ApiTimer)>> {
    poll_fn(|context| {
        Poll::Ready(match waiting.poll_next_unpin(context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    })
    .await
}

#[cfg(test)]
mod tests;
