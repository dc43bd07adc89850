//! DescribeClientQuotas: key 48, v0–v1. No quota is set, whoever is asked for.
//!
//! Leaves out: quotas. Source: KIP-546; ClientQuotasImage.describe.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DescribeClientQuotas;

/// Who may have quotas.
const ENTITIES: [&str; 3] = ["user", "client-id", "ip"];

/// `ClientQuotaFilterComponent`: a name, the default, any name.
const MATCHES: RangeInclusive<i8> = 0..=2;

/// The one of them that needs a name.
const EXACT: i8 = 0;

impl Handler for DescribeClientQuotas {
    type Request = DescribeClientQuotasRequest;
    type Response = DescribeClientQuotasResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(
        _: &Context,
        request: DescribeClientQuotasRequest,
    ) -> DescribeClientQuotasResponse {
        let refused = request.components.iter().find_map(|component| {
            let kind = &component.entity_type;
            if kind.is_empty() {
                let text = "Invalid empty entity type.".to_owned();
                return Some((ErrorCode::InvalidRequest, text));
            }
            if !ENTITIES.contains(&&**kind) {
                let text = format!("Unsupported entity type {kind}");
                return Some((ErrorCode::UnsupportedVersion, text));
            }
            if component.match_type == EXACT && component.r#match.is_none() {
                let text = "Request specifies MATCH_TYPE_EXACT, but no match".to_owned();
                return Some((ErrorCode::InvalidRequest, text));
            }
            let is_known = MATCHES.contains(&component.match_type);
            let text = format!("Unknown match type {}", component.match_type);
            (!is_known).then_some((ErrorCode::InvalidRequest, text))
        });
        match refused {
            None => DescribeClientQuotasResponse {
                error_message: Some(Str::default()),
                entries: Some(Vec::new()),
                ..DescribeClientQuotasResponse::default()
            },
            Some((code, text)) => DescribeClientQuotasResponse {
                error_code: code.code(),
                error_message: Some(text.into()),
                entries: None,
                ..DescribeClientQuotasResponse::default()
            },
        }
    }
}
