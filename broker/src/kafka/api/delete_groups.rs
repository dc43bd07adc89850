//! DeleteGroups: key 42, v0–v2. Groups without members go, with all their positions.
//! Source: KIP-229; GroupCoordinatorService.deleteGroups.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use duolog_coordinator::group::event::DeleteGroup;

use super::{Context, Handler};
use crate::kafka::codec::messages::delete_groups_response::DeletableGroupResult;
use crate::kafka::codec::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DeleteGroups;

impl Handler for DeleteGroups {
    type Request = DeleteGroupsRequest;
    type Response = DeleteGroupsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
        let mut results = Vec::with_capacity(request.groups_names.len());
        let mut seen = HashSet::new();
        for group_id in request.groups_names {
            if !seen.insert(group_id.clone()) {
                continue;
            }
            let delete = DeleteGroup { group: group_id.clone() };
            let answer = context.node.delete_group(delete).await;
            let code = answer.map_or_else(ErrorCode::of, |()| ErrorCode::None);
            results.push(DeletableGroupResult { group_id, error_code: code.code() });
        }
        DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() }
    }
}
