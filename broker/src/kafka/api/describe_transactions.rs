//! DescribeTransactions: key 65, v0. The state of transactional ids. Source: KIP-664;
//! TransactionCoordinator.handleDescribeTransactions.

use std::ops::RangeInclusive;

use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_coordinator::txn::kafka::response::Described;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_transactions_response::{TopicData, TransactionState};
use crate::kafka::codec::messages::{DescribeTransactionsRequest, DescribeTransactionsResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DescribeTransactions;

impl Handler for DescribeTransactions {
    type Request = DescribeTransactionsRequest;
    type Response = DescribeTransactionsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        context: &Context,
        request: DescribeTransactionsRequest,
    ) -> DescribeTransactionsResponse {
        let mut transaction_states = Vec::with_capacity(request.transactional_ids.len());
        for id in request.transactional_ids {
            let found = context.node.transactions.describe(id.clone()).await;
            transaction_states.push(shown(id, found));
        }
        DescribeTransactionsResponse {
            transaction_states,
            ..DescribeTransactionsResponse::default()
        }
    }
}

fn shown(transactional_id: Str, found: Result<Described, TxnError>) -> TransactionState {
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let error_code = ErrorCode::from(&error).code();
            return TransactionState {
                error_code,
                transactional_id,
                ..TransactionState::default()
            };
        }
    };
    let topics = found
        .partitions
        .into_iter()
        .map(|(topic, indexes)| TopicData { topic, partitions: indexes.into_iter().collect() });
    TransactionState {
        error_code: ErrorCode::None.code(),
        transactional_id,
        transaction_state: found.state.name().into(),
        transaction_timeout_ms: found.timeout_ms,
        transaction_start_time_ms: found.started_ms,
        producer_id: found.producer.id,
        producer_epoch: found.producer.epoch,
        topics: topics.collect(),
    }
}
