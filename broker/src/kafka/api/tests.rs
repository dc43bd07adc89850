//! The handlers on a real node in a temporary directory.

use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::storage::file_disk::FileDisk;
use tempfile::TempDir;

use super::{Context, Reply, find};
use crate::config::Config;
use crate::config::args::ServeArgs;
use crate::kafka::codec::{ApiKey, Message, RequestHeader, decode_response, encode_request};
use crate::node::Node;
use bytes::Bytes;

mod admin;
mod admin_cases;
mod api_versions;
mod consumer_groups;
pub(super) mod data;
mod epochs;
mod features;
mod fetch_sessions;
mod groups;
mod live_groups;
mod log_life;
mod metadata;
mod named_twice;
mod node_cases;
mod telemetry;
mod transactions;

/// A node that listens nowhere, and its data.
struct Served {
    node: Arc<Node>,
    _data: TempDir,
}

impl Served {
    async fn start(assignments: &[&str]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let args = ServeArgs {
            data_dir: Some(data.path().to_owned()),
            assignments: assignments.iter().map(|text| (*text).to_owned()).collect(),
            ..ServeArgs::default()
        };
        let config = Config::load(&args, std::iter::empty()).expect("a valid configuration");
        let events = Events::silent(NodeId(config.node_id));
        let node = Node::start(Arc::new(config), Arc::new(FileDisk::new(64, 16)), events)
            .await
            .expect("a node");
        Self { node, _data: data }
    }

    /// Serves one request frame and returns the response frame, both without their length.
    async fn serve(&self, frame: &Bytes) -> Bytes {
        let (header, body) = RequestHeader::decode(frame).expect("a request header");
        let context = Context {
            node: self.node.clone(),
            version: header.api_version,
            correlation_id: header.correlation_id,
            client_id: header.client_id.clone(),
            peer: ([127, 0, 0, 1], 5000).into(),
            listener: 0,
            connection: Arc::default(),
        };
        let api = find(&self.node.config, &header).expect("an api that is served");
        let answer = match api.run(context, body).await.expect("an answer") {
            Reply::Now(frame) => Some(frame),
            Reply::Later(answer) => answer.await.expect("an answer"),
            Reply::None => None,
        };
        answer.expect("an answer").to_bytes().slice(4..)
    }

    async fn ask<Q: Message, A: Message>(&self, version: i16, request: &Q) -> A {
        let frame = encode_request(7, None, version, request).expect("a request").to_bytes();
        let answer = self.serve(&frame.slice(4..)).await;
        let (correlation_id, response) = decode_response(&answer, version).expect("a response");
        assert_eq!(correlation_id, 7);
        response
    }
}
