//! AlterUserScramCredentials: key 51, v0. Nothing is stored: no listener asks for credentials yet.
//!
//! Leaves out: credentials. Source: KIP-554; ScramControlManager.alterCredentials.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::alter_user_scram_credentials_response::AlterUserScramCredentialsResult;
use crate::kafka::codec::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse,
};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct AlterUserScramCredentials;

impl Handler for AlterUserScramCredentials {
    type Request = AlterUserScramCredentialsRequest;
    type Response = AlterUserScramCredentialsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        _: &Context,
        request: AlterUserScramCredentialsRequest,
    ) -> AlterUserScramCredentialsResponse {
        let refused = |user: Str, code: ErrorCode, text: &str| AlterUserScramCredentialsResult {
            user,
            error_code: code.code(),
            error_message: Some(text.into()),
        };
        let deletions = request.deletions.into_iter().map(|deletion| {
            let text = "Attempt to delete a user credential that does not exist";
            refused(deletion.name, ErrorCode::ResourceNotFound, text)
        });
        let upsertions = request.upsertions.into_iter().map(|upsertion| {
            let text = "credentials are not supported yet: no listener asks for them";
            refused(upsertion.name, ErrorCode::UnsupportedSaslMechanism, text)
        });
        AlterUserScramCredentialsResponse {
            results: deletions.chain(upsertions).collect(),
            ..AlterUserScramCredentialsResponse::default()
        }
    }
}
