use std::collections::BTreeMap;

use super::*;
use crate::kafka::api::{APIS, Api};
use crate::kafka::codec::messages::{ApiVersionsRequest, ApiVersionsResponse};
use crate::kafka::errors::ErrorCode;
use crate::kafka::features::FEATURES;

async fn versions(served: &Served, version: i16, software: &str) -> ApiVersionsResponse {
    let request = ApiVersionsRequest {
        client_software_name: software.into(),
        client_software_version: "1".into(),
    };
    served.ask(version, &request).await
}

#[tokio::test]
async fn what_is_served_is_listed_and_nothing_else() {
    let served = Served::start(&[]).await;
    let hidden = |api: &&Api| !api.is_served(&served.node.config);
    let hidden: Vec<ApiKey> = APIS.iter().filter(hidden).map(|api| api.key).collect();
    assert_eq!(hidden, [ApiKey::GetTelemetrySubscriptions, ApiKey::PushTelemetry]);
    for version in 0..=4 {
        let response = versions(&served, version, "rust").await;
        assert_eq!(response.error_code, ErrorCode::None.code());
        let listed: BTreeMap<_, _> = response
            .api_keys
            .iter()
            .map(|api| (api.api_key, (api.min_version, api.max_version)))
            .collect();
        assert_eq!(listed.len(), APIS.len() - hidden.len(), "each once");
        for api in APIS.iter().filter(|api| !hidden.contains(&api.key)) {
            let (min, max) = api.versions();
            // Listed from 0 as Kafka does, for old librdkafka.
            let min = if api.key == ApiKey::Produce { 0 } else { min };
            assert_eq!(listed.get(&(api.key as i16)), Some(&(min, max)), "{api:?}");
            assert_eq!(api.versions(), api.key.versions(), "all versions of the table");
        }
        let finalized: Vec<_> = response
            .finalized_features
            .iter()
            .map(|feature| (&*feature.name, feature.min_version_level, feature.max_version_level))
            .collect();
        let whole: Vec<_> = FEATURES.iter().map(|of| (of.name, of.max, of.max)).collect();
        assert_eq!(finalized, if version >= 3 { whole } else { Vec::new() });
        // Before version 4 no feature is told that may be off.
        let told = response.supported_features.iter().filter(|feature| feature.min_version == 0);
        assert_eq!(told.count() > 0, version == 4);
    }
}

#[tokio::test]
async fn a_software_name_that_is_none_is_refused() {
    let served = Served::start(&[]).await;
    for name in ["", "-bad-", "a b", "x."] {
        let response = versions(&served, 3, name).await;
        assert_eq!(response.error_code, ErrorCode::InvalidRequest.code(), "{name}");
        assert!(response.api_keys.is_empty());
    }
    assert_eq!(versions(&served, 2, "").await.error_code, ErrorCode::None.code());
}

#[tokio::test]
async fn an_unknown_version_is_answered_in_the_form_of_version_0() {
    // Case B03.
    let served = Served::start(&[]).await;
    for version in [5_i16, 99, i16::MAX] {
        let mut frame = vec![0, 18];
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 7, 0xFF, 0xFF]);
        frame.extend_from_slice(&[0xA5; 20]);
        let answer = served.serve(&frame.into()).await;
        let (correlation_id, response) =
            decode_response::<ApiVersionsResponse>(&answer, 0).expect("a version 0 body");
        assert_eq!(correlation_id, 7);
        assert_eq!(response.error_code, ErrorCode::UnsupportedVersion.code());
        let only = response.api_keys.first().expect("itself");
        assert_eq!((only.api_key, only.min_version, only.max_version), (18, 0, 4));
    }
}
