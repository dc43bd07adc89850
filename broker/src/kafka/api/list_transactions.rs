//! ListTransactions: key 66, v0–v2. Transactional ids by state, producer id, age and pattern.
//! Source: KIP-664, KIP-994, KIP-1152; TransactionStateManager.listTransactionStates.

use std::ops::RangeInclusive;

use duolog_coordinator::pattern;
use duolog_coordinator::record::transaction::TxnState;
use duolog_coordinator::txn::kafka::event::ListTransactions as List;
use duolog_coordinator::txn::kafka::response::Listed;

use super::{Context, Handler};
use crate::kafka::codec::messages::list_transactions_response::TransactionState;
use crate::kafka::codec::messages::{ListTransactionsRequest, ListTransactionsResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct ListTransactions;

impl Handler for ListTransactions {
    type Request = ListTransactionsRequest;
    type Response = ListTransactionsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(
        context: &Context,
        request: ListTransactionsRequest,
    ) -> ListTransactionsResponse {
        let unknown_state_filters: Vec<_> = request
            .state_filters
            .iter()
            .filter(|name| !TxnState::is_known(name))
            .cloned()
            .collect();
        match list(context, request).await {
            Ok(listed) => ListTransactionsResponse {
                unknown_state_filters,
                transaction_states: listed.into_iter().map(shown).collect(),
                ..ListTransactionsResponse::default()
            },
            Err(code) => ListTransactionsResponse {
                error_code: code.code(),
                ..ListTransactionsResponse::default()
            },
        }
    }
}

async fn list(
    context: &Context,
    request: ListTransactionsRequest,
) -> Result<Vec<Listed>, ErrorCode> {
    let pattern = request.transactional_id_pattern.filter(|pattern| !pattern.is_empty());
    let pattern = pattern.map(|pattern| pattern::whole(&pattern)).transpose();
    let pattern = pattern.map_err(|_| ErrorCode::InvalidRegularExpression)?;
    let list = List {
        states: request.state_filters.iter().map(|name| name.to_string()).collect(),
        producer_ids: request.producer_id_filters,
        longer_than_ms: request.duration_filter,
    };
    let mut listed = context.node.transactions.list(list).await.map_err(ErrorCode::of)?;
    listed.retain(|one| pattern.as_ref().is_none_or(|pattern| pattern.is_match(&one.id)));
    Ok(listed)
}

fn shown(one: Listed) -> TransactionState {
    TransactionState {
        transactional_id: one.id,
        producer_id: one.producer_id,
        transaction_state: one.state.name().into(),
    }
}
