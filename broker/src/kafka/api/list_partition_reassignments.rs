//! ListPartitionReassignments: key 46, v0. There is one node, so none is ever under way.
//!
//! Leaves out: nothing. Source: KIP-455; ReplicationControlManager.listPartitionReassignments.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::kafka::codec::messages::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

/// The API.
pub(super) struct ListPartitionReassignments;

impl Handler for ListPartitionReassignments {
    type Request = ListPartitionReassignmentsRequest;
    type Response = ListPartitionReassignmentsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        _: &Context,
        _: ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        ListPartitionReassignmentsResponse {
            error_message: None,
            ..ListPartitionReassignmentsResponse::default()
        }
    }
}
