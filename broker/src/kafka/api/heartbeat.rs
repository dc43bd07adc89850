//! Heartbeat: key 12, v0–v4. A member of a classic group is alive, and hears of a rebalance.
//! Source: KIP-345; `coordinator::group::kafka`.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::Heartbeat as Beat;

use super::{Context, Handler};
use crate::kafka::codec::messages::{HeartbeatRequest, HeartbeatResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct Heartbeat;

impl Handler for Heartbeat {
    type Request = HeartbeatRequest;
    type Response = HeartbeatResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=4;

    async fn handle(context: &Context, request: HeartbeatRequest) -> HeartbeatResponse {
        let heartbeat = Beat {
            group: request.group_id,
            member: request.member_id,
            instance: request.group_instance_id,
            generation: request.generation_id,
        };
        let answer = context.node.coordinators.heartbeat(context.client(), heartbeat).await;
        let code = answer.map_or_else(ErrorCode::of, |()| ErrorCode::None);
        HeartbeatResponse { error_code: code.code(), ..HeartbeatResponse::default() }
    }
}
