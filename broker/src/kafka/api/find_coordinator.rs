//! FindCoordinator: key 10, v0–v6. Which node coordinates a group or a transactional id: this one.
//!
//! Creates `__consumer_offsets` or `__transaction_state` on first need. Leaves out: share groups,
//! which are INVALID_REQUEST with a text until they exist. Source: KIP-699;
//! KafkaApis.getCoordinator.

use std::ops::RangeInclusive;

use duolog_coordinator::error::GroupError;
use duolog_coordinator::txn::kafka::error::TxnError;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::find_coordinator_response::Coordinator;
use crate::kafka::codec::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct FindCoordinator;

/// First version that asks for many at once.
const MANY_FROM: i16 = 4;

/// `CoordinatorType.GROUP`.
const GROUP: i8 = 0;

/// `CoordinatorType.TRANSACTION`.
const TRANSACTION: i8 = 1;

impl Handler for FindCoordinator {
    type Request = FindCoordinatorRequest;
    type Response = FindCoordinatorResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=6;

    async fn handle(context: &Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
        if context.version < MANY_FROM {
            let one = find(context, request.key_type, request.key).await;
            let is_found = one.error_code == ErrorCode::None.code();
            return FindCoordinatorResponse {
                error_code: one.error_code,
                // As Kafka says it, which is the name of the error that there is none.
                error_message: if is_found { Some("NONE".into()) } else { one.error_message },
                node_id: one.node_id,
                host: one.host,
                port: one.port,
                ..FindCoordinatorResponse::default()
            };
        }
        let mut coordinators = Vec::with_capacity(request.coordinator_keys.len());
        for key in request.coordinator_keys {
            coordinators.push(find(context, request.key_type, key).await);
        }
        FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() }
    }
}

async fn find(context: &Context, key_type: i8, key: Str) -> Coordinator {
    // While its log is read a coordinator is known all the same, and says so itself.
    let prepared = match key_type {
        GROUP => match context.node.coordinators.prepare(&key).await {
            Ok(()) | Err(GroupError::CoordinatorLoadInProgress) => Ok(()),
            Err(error) => Err((ErrorCode::from(&error), error.to_string())),
        },
        TRANSACTION => match context.node.transactions.prepare(&key).await {
            Ok(()) | Err(TxnError::CoordinatorLoadInProgress) => Ok(()),
            Err(error) => Err((ErrorCode::from(&error), error.to_string())),
        },
        other => {
            let known = "0 (group) and 1 (transaction)";
            let text = format!("coordinators of type {other} are not supported yet, only {known}");
            Err((ErrorCode::InvalidRequest, text))
        }
    };
    match prepared {
        Ok(()) => {
            let (host, port) = context.node.advertised(context.listener);
            Coordinator { key, node_id: context.node.id(), host, port, ..Coordinator::default() }
        }
        Err((code, text)) => refused(key, code, text.into()),
    }
}

fn refused(key: Str, code: ErrorCode, text: Str) -> Coordinator {
    Coordinator {
        key,
        node_id: -1,
        host: "".into(),
        port: -1,
        error_code: code.code(),
        error_message: Some(text),
    }
}
