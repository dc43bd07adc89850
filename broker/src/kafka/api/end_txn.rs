//! EndTxn: key 26, v0–v5. Commits or aborts; answered once that is stored, the markers follow.
//!
//! v5 is what producers of transactions v2 send (KIP-890): it raises the epoch and says so. Source:
//! KIP-98, KIP-360, KIP-890; KafkaApis.handleEndTxnRequest.

use std::ops::RangeInclusive;

use duolog_coordinator::record::transaction::{ProducerIdAndEpoch, TxnVersion};
use duolog_coordinator::txn::kafka::event::EndTxn as End;
use duolog_log_core::record::TransactionOutcome;

use super::{Context, Handler};
use crate::kafka::codec::messages::{EndTxnRequest, EndTxnResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct EndTxn;

/// First version of transactions v2.
const EPOCHS_RISE_FROM: i16 = 5;

/// First version that knows PRODUCER_FENCED.
const FENCED_FROM: i16 = 2;

impl Handler for EndTxn {
    type Request = EndTxnRequest;
    type Response = EndTxnResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: EndTxnRequest) -> EndTxnResponse {
        if context.version >= EPOCHS_RISE_FROM && !super::serves_transactions_v2(context) {
            let error_code = ErrorCode::UnsupportedVersion.code();
            return EndTxnResponse { error_code, ..EndTxnResponse::default() };
        }
        let end = End {
            id: request.transactional_id,
            producer: ProducerIdAndEpoch { id: request.producer_id, epoch: request.producer_epoch },
            outcome: if request.committed {
                TransactionOutcome::Commit
            } else {
                TransactionOutcome::Abort
            },
            version: if context.version >= EPOCHS_RISE_FROM {
                TxnVersion::V2
            } else {
                TxnVersion::V1
            },
            fresh: None,
        };
        match context.node.transactions.end(end).await {
            Ok(ProducerIdAndEpoch { id, epoch }) => EndTxnResponse {
                producer_id: id,
                producer_epoch: epoch,
                ..EndTxnResponse::default()
            },
            Err(error) => EndTxnResponse {
                error_code: ErrorCode::from(&error)
                    .fenced_from(FENCED_FROM, context.version)
                    .code(),
                ..EndTxnResponse::default()
            },
        }
    }
}
