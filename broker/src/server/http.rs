//! The HTTP port: metrics for everybody who can reach it, gates and events for this machine alone.
//!
//! `GET /metrics` is Prometheus text. With `--control`: `GET /events` streams events as JSON lines,
//! `POST /gates` arms, releases and lists gates. Both answer loopback clients only.

mod control;
mod figures;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;

pub use self::control::{EventFeed, Sink};
use crate::node::Node;

/// What the handlers share.
#[derive(Clone)]
struct Shared {
    node: Arc<Node>,
    feed: Arc<EventFeed>,
}

/// Serves until the node stops.
pub async fn serve(node: Arc<Node>, feed: Arc<EventFeed>, listener: TcpListener) {
    let stopping = node.stopping.clone();
    let mut routes = Router::new().route("/metrics", get(metrics));
    if node.config.control {
        routes =
            routes.route("/gates", post(control::gates)).route("/events", get(control::events));
    }
    let app = routes.with_state(Shared { node, feed });
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener, service)
        .with_graceful_shutdown(async move { stopping.cancelled().await });
    if let Err(error) = served.await {
        tracing::error!(%error, "http port failed");
    }
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let mut text = String::new();
    let rendered = shared
        .node
        .metrics
        .render(&mut text)
        .and_then(|()| figures::render(&shared.node, &mut text));
    match rendered {
        Ok(()) => {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
