//! SyncGroup: key 14, v0–v5. The leader brings the assignment, every member takes its part.
//! Source: KIP-345, KIP-559; `coordinator::group::kafka`.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{Event, SyncGroup as Sync};
use duolog_coordinator::group::response::Response;

use super::{Context, Handler};
use crate::kafka::codec::messages::{SyncGroupRequest, SyncGroupResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct SyncGroup;

impl Handler for SyncGroup {
    type Request = SyncGroupRequest;
    type Response = SyncGroupResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: SyncGroupRequest) -> SyncGroupResponse {
        let group = request.group_id.clone();
        let event = Event::SyncGroup(Sync {
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
        });
        let code = match context.node.coordinators.request(&group, event).await {
            Ok(Response::SyncGroup(synced)) => {
                return SyncGroupResponse {
                    protocol_type: synced.protocol_type,
                    protocol_name: synced.protocol,
                    assignment: synced.assignment,
                    ..SyncGroupResponse::default()
                };
            }
            Ok(_) => ErrorCode::UnknownServerError,
            Err(error) => ErrorCode::from(&error),
        };
        SyncGroupResponse { error_code: code.code(), ..SyncGroupResponse::default() }
    }
}
