//! LeaveGroup: key 13, v0–v5. Members go, or are removed by an administrator.
//! Source: KIP-345, KIP-800; `coordinator::group::kafka`.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{LeaveGroup as Leave, LeavingMember};
use duolog_coordinator::group::response::LeftMember;

use super::{Context, Handler};
use crate::kafka::codec::messages::leave_group_response::MemberResponse;
use crate::kafka::codec::messages::{LeaveGroupRequest, LeaveGroupResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct LeaveGroup;

/// First version that names many members.
const MANY_FROM: i16 = 3;

impl Handler for LeaveGroup {
    type Request = LeaveGroupRequest;
    type Response = LeaveGroupResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: LeaveGroupRequest) -> LeaveGroupResponse {
        let members = if context.version < MANY_FROM {
            vec![LeavingMember { member: request.member_id, instance: None, reason: None }]
        } else {
            request
                .members
                .into_iter()
                .map(|leaving| LeavingMember {
                    member: leaving.member_id,
                    instance: leaving.group_instance_id,
                    reason: leaving.reason,
                })
                .collect()
        };
        let leave = Leave { group: request.group_id, members };
        match context.node.coordinators.leave_group(leave).await {
            Ok(left) => answer(context.version, left),
            Err(error) => LeaveGroupResponse {
                error_code: ErrorCode::from(&error).code(),
                ..LeaveGroupResponse::default()
            },
        }
    }
}

fn code(member: &LeftMember) -> i16 {
    member.error.as_ref().map_or(ErrorCode::None, ErrorCode::from).code()
}

fn answer(version: i16, left: Vec<LeftMember>) -> LeaveGroupResponse {
    if version < MANY_FROM {
        let error_code = left.first().map(code).unwrap_or_default();
        return LeaveGroupResponse { error_code, ..LeaveGroupResponse::default() };
    }
    let members = left
        .into_iter()
        .map(|member| MemberResponse {
            error_code: code(&member),
            member_id: member.member,
            group_instance_id: member.instance,
        })
        .collect();
    LeaveGroupResponse { members, ..LeaveGroupResponse::default() }
}
