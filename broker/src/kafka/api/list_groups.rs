//! ListGroups: key 16, v0–v5. Every group of both protocols.
//!
//! RocketMQ's groups are among them, with an empty protocol type, so that `kafka-consumer-groups`
//! shows their positions. Source: KIP-518, KIP-848; GroupCoordinatorService.listGroups.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::ListGroups as List;

use super::{Context, Handler};
use crate::kafka::codec::messages::list_groups_response::ListedGroup;
use crate::kafka::codec::messages::{ListGroupsRequest, ListGroupsResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct ListGroups;

impl Handler for ListGroups {
    type Request = ListGroupsRequest;
    type Response = ListGroupsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: ListGroupsRequest) -> ListGroupsResponse {
        let list = List { states: request.states_filter, types: request.types_filter };
        let listed = match context.node.coordinators.list_groups(list).await {
            Ok(listed) => listed,
            Err(error) => {
                let error_code = ErrorCode::from(&error).code();
                return ListGroupsResponse { error_code, ..ListGroupsResponse::default() };
            }
        };
        let groups = listed
            .into_iter()
            .map(|group| ListedGroup {
                group_id: group.group,
                protocol_type: group.protocol_type,
                group_state: group.state.name().into(),
                group_type: group.group_type.into(),
            })
            .collect();
        ListGroupsResponse { groups, ..ListGroupsResponse::default() }
    }
}
