//! DescribeGroups: key 15, v0–v6. State, members and assignment of groups.
//! Source: KIP-345, KIP-430, KIP-1043; GroupCoordinatorService.describeGroups.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{DescribeGroup, MissingGroup};
use duolog_coordinator::group::response;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_groups_response::{
    DescribedGroup, DescribedGroupMember,
};
use crate::kafka::codec::messages::{DescribeGroupsRequest, DescribeGroupsResponse};
use crate::kafka::errors::ErrorCode;
use crate::kafka::operations;

/// The API.
pub(super) struct DescribeGroups;

/// First version that says of a missing group that it is missing.
const NOT_FOUND_FROM: i16 = 6;

impl Handler for DescribeGroups {
    type Request = DescribeGroupsRequest;
    type Response = DescribeGroupsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=6;

    async fn handle(context: &Context, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
        let mut groups = Vec::with_capacity(request.groups.len());
        for group in request.groups {
            let mut described = describe(context, group).await;
            let is_described = described.error_code == ErrorCode::None.code();
            described.authorized_operations =
                if request.include_authorized_operations && is_described {
                    operations::GROUP
                } else {
                    operations::NOT_ASKED
                };
            groups.push(described);
        }
        DescribeGroupsResponse { groups, ..DescribeGroupsResponse::default() }
    }
}

async fn describe(context: &Context, group: Str) -> DescribedGroup {
    let missing =
        if context.version < NOT_FOUND_FROM { MissingGroup::Dead } else { MissingGroup::NotFound };
    let asked = DescribeGroup { group: group.clone(), missing };
    match context.node.coordinators.describe_group(asked).await {
        Ok(described) => answer(described),
        Err(error) => DescribedGroup {
            error_code: ErrorCode::from(&error).code(),
            group_id: group,
            ..DescribedGroup::default()
        },
    }
}

fn answer(described: response::DescribedGroup) -> DescribedGroup {
    let code = described.error.as_ref().map_or(ErrorCode::None, ErrorCode::from);
    DescribedGroup {
        error_code: code.code(),
        error_message: described.error_message.map(Into::into),
        group_id: described.group,
        group_state: described.state.name().into(),
        protocol_type: described.protocol_type,
        protocol_data: described.protocol,
        members: described
            .members
            .into_iter()
            .map(|member| DescribedGroupMember {
                member_id: member.member,
                group_instance_id: member.instance,
                client_id: member.client_id,
                client_host: member.client_host,
                member_metadata: member.metadata,
                member_assignment: member.assignment,
            })
            .collect(),
        ..DescribedGroup::default()
    }
}
