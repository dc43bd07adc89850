//! JoinGroup: key 11, v0–v9. A member asks to be in a classic group; answered when the group's join
//! phase ends. Source: KIP-62, KIP-345, KIP-394, KIP-800, KIP-814; `coordinator::group::kafka`.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{FirstJoin, JoinGroup as Join, LeaderReturn, Protocol};
use duolog_coordinator::group::response;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::join_group_response::JoinGroupResponseMember;
use crate::kafka::codec::messages::{JoinGroupRequest, JoinGroupResponse};
use crate::kafka::errors::ErrorCode;
use crate::random;

/// The API.
pub(super) struct JoinGroup;

/// First version whose first join is answered with a member id to come back with.
const GIVEN_ID_FROM: i16 = 4;
/// First version whose protocol name may be null.
const NULLABLE_PROTOCOL_FROM: i16 = 7;
/// First version with `skip_assignment`.
const SKIP_ASSIGNMENT_FROM: i16 = 9;

impl Handler for JoinGroup {
    type Request = JoinGroupRequest;
    type Response = JoinGroupResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=9;

    async fn handle(context: &Context, request: JoinGroupRequest) -> JoinGroupResponse {
        let member = request.member_id.clone();
        let Ok(uuid) = random::uuid() else {
            return refused(context, member, ErrorCode::UnknownServerError);
        };
        let join = Join {
            group: request.group_id,
            member: request.member_id,
            instance: request.group_instance_id,
            client_id: context.client_id.clone().unwrap_or_else(|| "".into()),
            client_host: java_address(context.peer.ip()).into(),
            rebalance_timeout_ms: if context.version == 0 {
                request.session_timeout_ms
            } else {
                request.rebalance_timeout_ms
            },
            session_timeout_ms: request.session_timeout_ms,
            protocol_type: request.protocol_type,
            protocols: request
                .protocols
                .into_iter()
                .map(|protocol| Protocol { name: protocol.name, metadata: protocol.metadata })
                .collect(),
            reason: request.reason,
            first_join: if context.version < GIVEN_ID_FROM {
                FirstJoin::Direct
            } else {
                FirstJoin::WithGivenId
            },
            leader_return: if context.version < SKIP_ASSIGNMENT_FROM {
                LeaderReturn::AsFollower
            } else {
                LeaderReturn::SkipAssignment
            },
            uuid: uuid.0,
        };
        match context.node.coordinators.join_group(join).await {
            Ok(joined) => answer(context, joined),
            Err(error) => refused(context, member, ErrorCode::from(&error)),
        }
    }
}

/// As `InetAddress.toString` prints an address without a name.
pub(super) fn java_address(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("/{address}"),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:x}"));
            format!("/{}", groups.join(":"))
        }
    }
}

fn refused(context: &Context, member_id: Str, code: ErrorCode) -> JoinGroupResponse {
    let old = context.version < NULLABLE_PROTOCOL_FROM;
    JoinGroupResponse {
        error_code: code.code(),
        generation_id: -1,
        protocol_name: old.then(|| "".into()),
        member_id,
        ..JoinGroupResponse::default()
    }
}

fn answer(context: &Context, joined: response::JoinGroupResponse) -> JoinGroupResponse {
    let old = context.version < NULLABLE_PROTOCOL_FROM;
    let code = joined.error.as_ref().map_or(ErrorCode::None, ErrorCode::from);
    JoinGroupResponse {
        error_code: code.code(),
        generation_id: joined.generation,
        protocol_type: joined.protocol_type,
        protocol_name: joined.protocol.or_else(|| old.then(|| "".into())),
        leader: joined.leader,
        skip_assignment: joined.skip_assignment,
        member_id: joined.member,
        members: joined
            .members
            .into_iter()
            .map(|member| JoinGroupResponseMember {
                member_id: member.member,
                group_instance_id: member.instance,
                metadata: member.metadata,
            })
            .collect(),
        ..JoinGroupResponse::default()
    }
}

#[cfg(test)]
mod tests;
