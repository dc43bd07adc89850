//! The HTTP port: metrics for everybody who can reach it, gates and events for this machine alone.
//!
//! `GET /metrics` is Prometheus text. `GET /rocketmq/nsaddr` tells RocketMQ clients that know no name server where
//! they are: those with this port as their `rocketmq.namesrv.domain`. With `--control`: `GET /events` streams events as JSON lines,
//! `POST /gates` arms, releases and lists gates. Both answer loopback clients only.
//!
//! A client has so long to send a request and to take its answer, and there are so many of them, as the bounds
//! below say; only a stream of events lasts.

mod control;
mod figures;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::control::{EventFeed, Sink};
use super::listener::{Bounds, ConnectionLimits, Stop, accept};
use crate::limits::{HTTP_BODY_BYTES_MAX, HTTP_CONNECTIONS_MAX, HTTP_HEADER_BYTES_MAX};
use crate::node::Node;

/// How long clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a request's header, counted from the connection's begin or the answer before.
    pub header: Duration,
    /// For all that a connection is used for, unless it streams events.
    pub connection: Duration,
    /// To take an answer that is under way when its time is over.
    pub last_answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(10),
            connection: Duration::from_secs(60),
            last_answer: Duration::from_secs(5),
        }
    }
}

/// What the handlers share.
#[derive(Clone)]
struct Shared {
    node: Arc<Node>,
    feed: Arc<EventFeed>,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
struct Peer {
    address: SocketAddr,
    /// Set while it listens to events.
    streams: Arc<AtomicBool>,
}

/// Accepts clients until the node stops; each is served under `tasks`.
pub async fn serve(
    node: Arc<Node>,
    feed: Arc<EventFeed>,
    listener: TcpListener,
    stop: Stop,
    tasks: TaskTracker,
    patience: Patience,
) {
    let max = HTTP_CONNECTIONS_MAX;
    let limits = ConnectionLimits::new(move || Bounds::new(max, usize::MAX));
    let app = routes(Shared { node, feed });
    let stopping = stop.begun.clone();
    accept(listener, limits, stop, tasks, move |socket, address| {
        serve_connection(app.clone(), socket, address, stopping.clone(), patience)
    })
    .await;
}

fn routes(shared: Shared) -> Router {
    let mut routes =
        Router::new().route("/metrics", get(metrics)).route("/rocketmq/{group}", get(name_servers));
    let mut known = "GET /metrics, GET /rocketmq/nsaddr (GET /events and POST /gates are there with \
                     --control)";
    if shared.node.config.control {
        routes =
            routes.route("/gates", post(control::gates)).route("/events", get(control::events));
        known = "GET /metrics, GET /rocketmq/nsaddr, GET /events or POST /gates";
    }
    let unknown = format!("nothing is here; expected {known}\n");
    routes
        .fallback(move || async move { (StatusCode::NOT_FOUND, unknown) })
        .layer(DefaultBodyLimit::max(HTTP_BODY_BYTES_MAX))
        .with_state(shared)
}

async fn serve_connection(
    app: Router,
    socket: TcpStream,
    address: SocketAddr,
    stopping: CancellationToken,
    patience: Patience,
) {
    let streams = Arc::new(AtomicBool::new(false));
    let peer = Peer { address, streams: streams.clone() };
    let service = TowerToHyperService::new(app.layer(Extension(peer)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.header)
        .max_buf_size(HTTP_HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stopping.cancelled() => None,
        () = over(patience.connection, &streams) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(patience.last_answer, connection).await {
                Ok(ended) => ended,
                Err(_) => return tracing::debug!(%address, "http client takes no answer: closed"),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, %error, "http connection failed");
    }
}

/// Resolves once the time is over and no events are streamed.
async fn over(time: Duration, streams: &AtomicBool) {
    loop {
        tokio::time::sleep(time).await;
        if !streams.load(Ordering::Relaxed) {
            return;
        }
    }
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let mut text = String::new();
    let rendered = shared
        .node
        .metrics
        .render(&mut text)
        .and_then(|()| shared.node.fetch_sessions.render(&mut text))
        .and_then(|()| figures::render(&shared.node, &mut text))
        .and_then(|()| shared.node.telemetry.render(&mut text));
    match rendered {
        Ok(()) => {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The name servers, whatever group of them is asked for: `nsaddr` by default, `nsaddr-UNIT` by clients of a unit. Nothing
/// follows the addresses, not even an end of line: some clients would take it for a part of the last.
async fn name_servers(State(shared): State<Shared>) -> String {
    shared.node.name_servers()
}

#[cfg(test)]
mod tests;
