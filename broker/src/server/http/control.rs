//! `POST /gates` and `GET /events`: what tests and lessons hold and watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use duolog_log_core::event::{Event, EventSink, Events, Protocol};
use duolog_log_core::gate::{ArmedGate, GateAction, GateFilter, GateId, GatePoint};
use duolog_log_core::ids::Offset;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{Peer, Shared};
use crate::limits::EVENTS_BUFFERED;

/// Hands events to everybody who listens.
#[derive(Debug)]
pub struct EventFeed {
    sender: broadcast::Sender<Arc<str>>,
    listeners: AtomicUsize,
}

impl Default for EventFeed {
    fn default() -> Self {
        Self { sender: broadcast::channel(EVENTS_BUFFERED).0, listeners: AtomicUsize::new(0) }
    }
}

/// The feed as the node's sink.
pub struct Sink(pub Arc<EventFeed>);

impl EventSink for Sink {
    fn accept(&self, event: &Event) {
        // Without a receiver there is nobody to tell.
        let _ = self.0.sender.send(line(event).into());
    }
}

/// One listener; the stream is silent again once the last one is gone.
struct Listener {
    events: Arc<Events>,
    feed: Arc<EventFeed>,
    receiver: broadcast::Receiver<Arc<str>>,
}

impl Listener {
    fn new(events: Arc<Events>, feed: Arc<EventFeed>) -> Self {
        let receiver = feed.sender.subscribe();
        feed.listeners.fetch_add(1, Ordering::SeqCst);
        events.listen();
        Self { events, feed, receiver }
    }

    async fn next(&mut self) -> Option<String> {
        match self.receiver.recv().await {
            Ok(line) => Some(line.to_string()),
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                Some(format!("{}\n", json!({ "missed": missed })))
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.feed.listeners.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.events.stop();
        }
    }
}

fn line(event: &Event) -> String {
    let protocol = event.protocol.map(|protocol| match protocol {
        Protocol::Kafka => "kafka",
        Protocol::RocketMq => "rocketmq",
    });
    let event = json!({
        "seq": event.seq,
        "time": event.time_ms,
        "node": event.node.0,
        "kind": event.kind.name(),
        "topic": event.topic.as_deref(),
        "partition": event.partition,
        "offset": event.offset.map(|offset| offset.0),
        "epoch": event.epoch.map(|epoch| epoch.0),
        "protocol": protocol,
        "client": event.client.as_deref(),
        "cause": event.cause.as_deref(),
    });
    format!("{event}\n")
}

/// Streams events until the client goes.
pub(super) async fn events(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
) -> Response {
    if !peer.address.ip().is_loopback() {
        return StatusCode::FORBIDDEN.into_response();
    }
    peer.streams.store(true, Ordering::Relaxed);
    let listener = Listener::new(shared.node.instruments.events.clone(), shared.feed);
    let stopping = shared.node.stopping.clone();
    let lines = stream::unfold((listener, stopping), |(mut listener, stopping)| async move {
        let line = tokio::select! {
            () = stopping.cancelled() => None,
            line = listener.next() => line,
        };
        line.map(|line| (Ok::<_, std::convert::Infallible>(line), (listener, stopping)))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, Body::from_stream(lines)).into_response()
}

/// What `POST /gates` takes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum GateRequest {
    /// Arm one.
    Arm(Arm),
    /// Let go what one holds, and take it away.
    Release(u64),
    /// Say which stand.
    List,
}

/// A gate to arm.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arm {
    point: String,
    action: Action,
    topic: Option<String>,
    partition: Option<i32>,
    offset: Option<i64>,
    client: Option<String>,
    nth: Option<u64>,
}

/// What a gate does.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Hold,
    Drop,
    Fail,
    Crash,
    DelayMs(u64),
}

/// Arms, releases or lists gates.
pub(super) async fn gates(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    Json(request): Json<GateRequest>,
) -> Response {
    if !peer.address.ip().is_loopback() {
        return StatusCode::FORBIDDEN.into_response();
    }
    let instruments = &shared.node.instruments;
    match request {
        GateRequest::Arm(arm) => match armed(&shared, arm) {
            Ok(id) => Json(json!({ "gate": id.0 })).into_response(),
            Err(text) => (StatusCode::BAD_REQUEST, Json(json!({ "error": text }))).into_response(),
        },
        GateRequest::Release(id) => {
            let released = instruments.release(GateId(id));
            Json(json!({ "released": released })).into_response()
        }
        GateRequest::List => {
            let gates: Vec<Value> = instruments.gates.list().iter().map(shown).collect();
            Json(json!({ "gates": gates })).into_response()
        }
    }
}

fn armed(shared: &Shared, arm: Arm) -> Result<GateId, String> {
    let point: GatePoint = arm.point.parse().map_err(|error| format!("{error}"))?;
    let action = match arm.action {
        Action::Hold => GateAction::Hold,
        Action::Drop => GateAction::Drop,
        Action::Fail => GateAction::Fail,
        Action::Crash => GateAction::Crash,
        Action::DelayMs(ms) => GateAction::Delay(ms),
    };
    let filter = GateFilter {
        topic: arm.topic,
        partition: arm.partition,
        offset: arm.offset.map(Offset),
        client: arm.client,
        nth: arm.nth,
    };
    let gates = &shared.node.instruments.gates;
    gates.arm(point, filter, action).map_err(|error| error.to_string())
}

fn shown(gate: &ArmedGate) -> Value {
    json!({
        "gate": gate.id.0,
        "point": gate.point.name(),
        "matches": gate.matches,
        "hits": gate.hits,
    })
}
