//! SyncGroup: key 14, v0–v5. The leader brings the assignment, every member takes its part.
//! Source: KIP-345, KIP-559; `coordinator::group::kafka`.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::SyncGroup as Sync;

use super::{Context, Handler};
use crate::kafka::codec::messages::{SyncGroupRequest, SyncGroupResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct SyncGroup;

/// First version that must name protocol type and protocol, though the fields may be null (KIP-559).
const PROTOCOL_FROM: i16 = 5;

impl Handler for SyncGroup {
    type Request = SyncGroupRequest;
    type Response = SyncGroupResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: SyncGroupRequest) -> SyncGroupResponse {
        let sync = Sync {
            group: request.group_id,
            member: request.member_id,
            instance: request.group_instance_id,
            generation: request.generation_id,
            protocol_type: request.protocol_type,
            protocol: request.protocol_name,
            assignments: request
                .assignments
                .into_iter()
                .map(|assigned| (assigned.member_id, assigned.assignment))
                .collect(),
        };
        let has_protocol = sync.protocol_type.is_some() && sync.protocol.is_some();
        if context.version >= PROTOCOL_FROM && !has_protocol {
            return refused(ErrorCode::InconsistentGroupProtocol);
        }
        match context.node.coordinators.sync_group(context.client(), sync).await {
            Ok(synced) => SyncGroupResponse {
                protocol_type: synced.protocol_type,
                protocol_name: synced.protocol,
                assignment: synced.assignment,
                ..SyncGroupResponse::default()
            },
            Err(error) => refused(ErrorCode::from(&error)),
        }
    }
}

fn refused(code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code: code.code(), ..SyncGroupResponse::default() }
}
