//! InitProducerId: key 22, v0–v5. A producer id for idempotent and transactional producers.
//!
//! An idempotent producer that asks with an id it has (KIP-360) gets a new one, as from Kafka; of a
//! transactional one its coordinator decides. Leaves out: v6 (KIP-939), which 4.3.1 does not
//! list either. Source: KIP-98, KIP-360; TransactionCoordinator.handleInitProducerId.

use std::ops::RangeInclusive;

use duolog_coordinator::record::transaction::ProducerIdAndEpoch;
use duolog_coordinator::txn::kafka::event::InitProducerId as Init;

use super::{Context, Handler};
use crate::kafka::codec::messages::{InitProducerIdRequest, InitProducerIdResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct InitProducerId;

/// First version that knows PRODUCER_FENCED.
const FENCED_FROM: i16 = 4;

const NO_PRODUCER: (i64, i16) = (-1, -1);

impl Handler for InitProducerId {
    type Request = InitProducerIdRequest;
    type Response = InitProducerIdResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: InitProducerIdRequest) -> InitProducerIdResponse {
        let (code, (producer_id, producer_epoch)) = match producer(context, request).await {
            Ok(ProducerIdAndEpoch { id, epoch }) => (ErrorCode::None, (id, epoch)),
            Err(code) => (code.fenced_from(FENCED_FROM, context.version), NO_PRODUCER),
        };
        InitProducerIdResponse {
            error_code: code.code(),
            producer_id,
            producer_epoch,
            ..InitProducerIdResponse::default()
        }
    }
}

async fn producer(
    context: &Context,
    request: InitProducerIdRequest,
) -> Result<ProducerIdAndEpoch, ErrorCode> {
    let expected = match (request.producer_id, request.producer_epoch) {
        NO_PRODUCER => None,
        (-1, _) | (_, -1) => return Err(ErrorCode::InvalidRequest),
        (id, epoch) => Some(ProducerIdAndEpoch { id, epoch }),
    };
    let Some(id) = request.transactional_id else {
        let id = context.node.controller.next_producer_id().await.map_err(ErrorCode::of)?;
        return Ok(ProducerIdAndEpoch { id, epoch: 0 });
    };
    let timeout_ms = request.transaction_timeout_ms;
    let init = Init { id, timeout_ms, expected, fresh: None };
    context.node.transactions.init_producer_id(init).await.map_err(ErrorCode::of)
}
