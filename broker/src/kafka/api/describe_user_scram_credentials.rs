//! DescribeUserScramCredentials: key 50, v0. Nobody has credentials yet.
//!
//! Leaves out: credentials. Source: KIP-554; ScramImage.describe.

use std::ops::RangeInclusive;

use super::admin::duplicates;
use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_user_scram_credentials_response::DescribeUserScramCredentialsResult;
use crate::kafka::codec::messages::{
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DescribeUserScramCredentials;

impl Handler for DescribeUserScramCredentials {
    type Request = DescribeUserScramCredentialsRequest;
    type Response = DescribeUserScramCredentialsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        _: &Context,
        request: DescribeUserScramCredentialsRequest,
    ) -> DescribeUserScramCredentialsResponse {
        let users = request.users.unwrap_or_default();
        let twice = duplicates(users.iter().map(|user| &user.name));
        let mut seen = std::collections::BTreeSet::new();
        let asked = users.iter().filter(|user| seen.insert(&user.name));
        let results = asked.map(|user| {
            let name = &user.name;
            let (code, text) = if twice.contains(name) {
                let text = format!("Cannot describe SCRAM credentials for the same user twice in a single request: {name}");
                (ErrorCode::DuplicateResource, text)
            } else {
                let text = format!("Attempt to describe a user credential that does not exist: {name}");
                (ErrorCode::ResourceNotFound, text)
            };
            DescribeUserScramCredentialsResult {
                user: name.clone(),
                error_code: code.code(),
                error_message: Some(text.into()),
                ..DescribeUserScramCredentialsResult::default()
            }
        });
        DescribeUserScramCredentialsResponse {
            error_message: Some(Str::default()),
            results: results.collect(),
            ..DescribeUserScramCredentialsResponse::default()
        }
    }
}
