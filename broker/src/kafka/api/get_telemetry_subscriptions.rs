//! GetTelemetrySubscriptions: key 71, v0. Which metrics a client is to push, and how often (KIP-714).
//!
//! Served with `telemetry.receiver=metrics` alone, else hidden. Source: ClientMetricsManager.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Context, Handler};
use crate::kafka::codec::messages::{
    GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse,
};
use crate::kafka::codec::{Str, Uuid};
use crate::kafka::errors::ErrorCode;
use crate::random;
use crate::telemetry::subscriptions::Attributes;

/// The API.
pub(super) struct GetTelemetrySubscriptions;

/// Codecs by number, the preferred first: zstd, lz4, gzip, snappy.
const COMPRESSIONS: [i8; 4] = [4, 3, 1, 2];

impl Handler for GetTelemetrySubscriptions {
    type Request = GetTelemetrySubscriptionsRequest;
    type Response = GetTelemetrySubscriptionsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        context: &Context,
        request: GetTelemetrySubscriptionsRequest,
    ) -> GetTelemetrySubscriptionsResponse {
        let client = match request.client_instance_id {
            Uuid::ZERO => match random::uuid() {
                Ok(id) => id,
                Err(_) => return refused(ErrorCode::UnknownServerError),
            },
            id => id,
        };
        let asked = Arc::clone(context.node.controller.image().telemetry());
        let telemetry = &context.node.telemetry;
        let attributes = attributes(context, client);
        match telemetry.get(&asked, attributes, &context.connection, client) {
            Ok(got) => GetTelemetrySubscriptionsResponse {
                client_instance_id: client,
                subscription_id: got.subscription,
                accepted_compression_types: COMPRESSIONS.to_vec(),
                push_interval_ms: got.interval_ms,
                telemetry_max_bytes: telemetry.max_bytes(),
                delta_temporality: true,
                requested_metrics: got.metrics.into_iter().map(Str::from).collect(),
                ..GetTelemetrySubscriptionsResponse::default()
            },
            Err(refusal) => refused(ErrorCode::from(&refusal)),
        }
    }
}

fn refused(code: ErrorCode) -> GetTelemetrySubscriptionsResponse {
    GetTelemetrySubscriptionsResponse {
        error_code: code.code(),
        ..GetTelemetrySubscriptionsResponse::default()
    }
}

/// What selectors may say of the client.
pub(super) fn attributes(context: &Context, client: Uuid) -> Attributes {
    let mut attributes = Attributes::from([
        ("client_instance_id", client.to_string()),
        ("client_source_address", context.peer.ip().to_string()),
        ("client_source_port", context.peer.port().to_string()),
    ]);
    if let Some(id) = &context.client_id {
        attributes.insert("client_id", id.to_string());
    }
    if let Some((name, version)) = context.connection.software() {
        attributes.insert("client_software_name", name.to_string());
        attributes.insert("client_software_version", version.to_string());
    }
    attributes
}
