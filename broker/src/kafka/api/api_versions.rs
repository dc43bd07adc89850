//! ApiVersions: key 18, v0–v4. Says what is served, from the table itself; first request of every
//! connection.
//!
//! A version that is not known is answered in the form of version 0 with error 35 and this API's
//! own range, so that the client can ask again (KIP-511, case B03). Source: KIP-35, KIP-511, KIP-584.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::{APIS, Api, Context, Handler, Reply, Running};
use crate::controller::image::Image;
use crate::kafka::codec::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use crate::kafka::codec::messages::{ApiVersionsRequest, ApiVersionsResponse};
use crate::kafka::codec::{ApiKey, Message, encode_response};
use crate::kafka::errors::ErrorCode;
use crate::kafka::features::{FEATURES, Feature};

/// The row of the table.
pub(super) const API: Api = Api::new(ApiKey::ApiVersions, ApiVersions::VERSIONS, run);

struct ApiVersions;

fn run(context: Context, body: Bytes) -> Running {
    Box::pin(async move {
        let (version, response) = if ApiVersions::VERSIONS.contains(&context.version) {
            let request = ApiVersionsRequest::from_client(&body, context.version)?;
            (context.version, ApiVersions::handle(&context, request).await)
        } else {
            (0, unsupported_version())
        };
        Ok(Reply::Now(encode_response(context.correlation_id, version, &response)?))
    })
}

impl Handler for ApiVersions {
    type Request = ApiVersionsRequest;
    type Response = ApiVersionsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=4;

    async fn handle(context: &Context, request: ApiVersionsRequest) -> ApiVersionsResponse {
        let valid = context.version < 3
            || (is_software_name(&request.client_software_name)
                && is_software_name(&request.client_software_version));
        if !valid {
            let error_code = ErrorCode::InvalidRequest.code();
            return ApiVersionsResponse { error_code, ..ApiVersionsResponse::default() };
        }
        if context.version >= 3 {
            let (name, version) = (request.client_software_name, request.client_software_version);
            context.connection.set_software(name, version);
        }
        let image = context.node.controller.image();
        ApiVersionsResponse {
            api_keys: APIS
                .iter()
                .filter(|api| api.is_served(&context.node.config))
                .map(advertised)
                .collect(),
            supported_features: supported(context.version),
            finalized_features_epoch: image.features_epoch(),
            finalized_features: finalized(&image),
            ..ApiVersionsResponse::default()
        }
    }
}

/// Clients of version 3 cannot read a feature that may be off.
fn supported(version: i16) -> Vec<SupportedFeatureKey> {
    let readable = FEATURES.iter().filter(|feature| version >= 4 || feature.min > 0);
    let key = |feature: &Feature| SupportedFeatureKey {
        name: feature.name.into(),
        min_version: feature.min,
        max_version: feature.max,
    };
    readable.map(key).collect()
}

/// The levels in force; a feature at level 0 is not told.
fn finalized(image: &Image) -> Vec<FinalizedFeatureKey> {
    let key = |feature: &Feature| {
        let level = feature.level(image);
        FinalizedFeatureKey {
            name: feature.name.into(),
            max_version_level: level,
            min_version_level: level,
        }
    };
    FEATURES.iter().map(key).filter(|key| key.max_version_level > 0).collect()
}

/// Letters, digits, dots and dashes, beginning and ending with a letter or digit (KIP-511).
fn is_software_name(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let at_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    name.bytes().all(inside) && at_end(name.bytes().next()) && at_end(name.bytes().last())
}

fn unsupported_version() -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![advertised(&API)],
        ..ApiVersionsResponse::default()
    }
}

fn advertised(api: &Api) -> ApiVersion {
    let (min, max) = api.versions();
    // Listed from 0 though 0 to 2 are refused, as in Kafka: librdkafka does not compress otherwise.
    let min = if api.key == ApiKey::Produce { 0 } else { min };
    ApiVersion { api_key: api.key as i16, min_version: min, max_version: max }
}
