//! PushTelemetry: key 72, v0. Metrics of a client, which the HTTP port shows (KIP-714).
//!
//! Served with `telemetry.receiver=metrics` alone, else hidden. Source: ClientMetricsManager.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::get_telemetry_subscriptions::attributes;
use super::{Context, Handler};
use crate::kafka::codec::Uuid;
use crate::kafka::codec::messages::{PushTelemetryRequest, PushTelemetryResponse};
use crate::kafka::errors::ErrorCode;
use crate::telemetry::Push;

/// The API.
pub(super) struct PushTelemetry;

/// `Uuid.RESERVED`: zero, one, and the id of the metadata topic are nobody's.
fn is_reserved(id: Uuid) -> bool {
    u128::from_be_bytes(id.0) <= 1
}

impl Handler for PushTelemetry {
    type Request = PushTelemetryRequest;
    type Response = PushTelemetryResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(context: &Context, request: PushTelemetryRequest) -> PushTelemetryResponse {
        let client = request.client_instance_id;
        let code = if is_reserved(client) {
            ErrorCode::InvalidRequest
        } else {
            let push = Push {
                client,
                subscription: request.subscription_id,
                terminating: request.terminating,
                compression: request.compression_type,
                metrics: request.metrics,
            };
            let asked = Arc::clone(context.node.controller.image().telemetry());
            let attributes = attributes(context, client);
            let reading = &context.node.batches;
            let telemetry = &context.node.telemetry;
            let pushed = telemetry.push(&asked, attributes, &context.connection, reading, push);
            pushed.await.map_or_else(|refusal| ErrorCode::from(&refusal), |()| ErrorCode::None)
        };
        PushTelemetryResponse { error_code: code.code(), ..PushTelemetryResponse::default() }
    }
}
