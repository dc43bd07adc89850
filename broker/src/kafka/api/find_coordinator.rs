//! FindCoordinator: key 10, v0–v6. Which node coordinates a group: this one.
//!
//! Creates `__consumer_offsets` on first need. Leaves out: transactions and share groups, which are
//! INVALID_REQUEST with a text until they exist. Source: KIP-699; KafkaApis.getCoordinator.

use std::ops::RangeInclusive;

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

type Found = Result<(), (ErrorCode, Str)>;

impl Handler for FindCoordinator {
    type Request = FindCoordinatorRequest;
    type Response = FindCoordinatorResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=6;

    async fn handle(context: &Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse {
        let found = find(context, request.key_type).await;
        if context.version < MANY_FROM {
            let one = answer(context, request.key, &found);
            return FindCoordinatorResponse {
                error_code: one.error_code,
                error_message: one.error_message,
                node_id: one.node_id,
                host: one.host,
                port: one.port,
                ..FindCoordinatorResponse::default()
            };
        }
        let keys = request.coordinator_keys.into_iter();
        let coordinators = keys.map(|key| answer(context, key, &found)).collect();
        FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() }
    }
}

async fn find(context: &Context, key_type: i8) -> Found {
    if key_type != GROUP {
        let text = format!("coordinator type {key_type} is not supported yet");
        return Err((ErrorCode::InvalidRequest, text.into()));
    }
    let opened = context.node.open_coordinators().await;
    opened.map_err(|code| (code, "the offsets topic cannot be created".into()))
}

fn answer(context: &Context, key: Str, found: &Found) -> Coordinator {
    match found {
        Ok(()) => {
            let (host, port) = context.node.advertised(context.listener);
            Coordinator { key, node_id: context.node.id(), host, port, ..Coordinator::default() }
        }
        Err((code, text)) => Coordinator {
            key,
            node_id: -1,
            host: "".into(),
            port: -1,
            error_code: code.code(),
            error_message: Some(text.clone()),
        },
    }
}
