//! DescribeAcls, CreateAcls, DeleteAcls: keys 29 to 31, v1–v3 each. Nothing is authorized yet, as in a
//! Kafka without `authorizer.class.name`, and each is answered as there.
//!
//! Leaves out: rules. Source: KIP-140, KIP-290; AclApis.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::create_acls_response::AclCreationResult;
use crate::kafka::codec::messages::delete_acls_response::DeleteAclsFilterResult;
use crate::kafka::codec::messages::{
    CreateAclsRequest, CreateAclsResponse, DeleteAclsRequest, DeleteAclsResponse,
    DescribeAclsRequest, DescribeAclsResponse,
};
use crate::kafka::errors::ErrorCode;

/// The APIs.
pub(super) struct DescribeAcls;
pub(super) struct CreateAcls;
pub(super) struct DeleteAcls;

/// Code and text of each answer.
fn disabled() -> (i16, Option<Str>) {
    (ErrorCode::SecurityDisabled.code(), Some("No Authorizer is configured.".into()))
}

impl Handler for DescribeAcls {
    type Request = DescribeAclsRequest;
    type Response = DescribeAclsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=3;

    async fn handle(_: &Context, _: DescribeAclsRequest) -> DescribeAclsResponse {
        let (error_code, _) = disabled();
        let error_message = Some("No Authorizer is configured on the broker".into());
        DescribeAclsResponse { error_code, error_message, ..DescribeAclsResponse::default() }
    }
}

impl Handler for CreateAcls {
    type Request = CreateAclsRequest;
    type Response = CreateAclsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=3;

    async fn handle(_: &Context, request: CreateAclsRequest) -> CreateAclsResponse {
        let results = request.creations.iter().map(|_| {
            let (error_code, error_message) = disabled();
            AclCreationResult { error_code, error_message }
        });
        CreateAclsResponse { results: results.collect(), ..CreateAclsResponse::default() }
    }
}

impl Handler for DeleteAcls {
    type Request = DeleteAclsRequest;
    type Response = DeleteAclsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=3;

    async fn handle(_: &Context, request: DeleteAclsRequest) -> DeleteAclsResponse {
        let results = request.filters.iter().map(|_| {
            let (error_code, error_message) = disabled();
            let matching_acls = Vec::new();
            DeleteAclsFilterResult { error_code, error_message, matching_acls }
        });
        DeleteAclsResponse { filter_results: results.collect(), ..DeleteAclsResponse::default() }
    }
}
