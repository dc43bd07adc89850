//! InitProducerId: key 22, v0–v5. A producer id for idempotent producers.
//!
//! Leaves out: transactional ids (refused with a text in the log, INVALID_REQUEST on the wire),
//! until there are transactions. An idempotent producer that asks with an id it has (KIP-360) gets
//! a new one, as from Kafka. Source: KIP-98, KIP-360; TransactionCoordinator.handleInitProducerId.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::kafka::codec::messages::{InitProducerIdRequest, InitProducerIdResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct InitProducerId;

impl Handler for InitProducerId {
    type Request = InitProducerIdRequest;
    type Response = InitProducerIdResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: InitProducerIdRequest) -> InitProducerIdResponse {
        match new_producer_id(context, &request).await {
            Ok(producer_id) => InitProducerIdResponse {
                producer_id,
                producer_epoch: 0,
                ..InitProducerIdResponse::default()
            },
            Err(code) => InitProducerIdResponse {
                error_code: code.code(),
                producer_id: -1,
                producer_epoch: -1,
                ..InitProducerIdResponse::default()
            },
        }
    }
}

async fn new_producer_id(
    context: &Context,
    request: &InitProducerIdRequest,
) -> Result<i64, ErrorCode> {
    if let Some(id) = &request.transactional_id {
        tracing::debug!(transactional_id = %id, "refused: transactions are not supported yet");
        return Err(ErrorCode::InvalidRequest);
    }
    let known = request.producer_id >= 0;
    if known != (request.producer_epoch >= 0) {
        return Err(ErrorCode::InvalidRequest);
    }
    context.node.controller.next_producer_id().await.map_err(ErrorCode::of)
}
