//! DescribeClientQuotas: key 48, v0–v1. No quota is set, whoever is asked for.
//!
//! Leaves out: quotas. Source: KIP-546; ClientQuotasImage.describe.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::admin::{Decided, Refused};
use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_client_quotas_request::ComponentData;
use crate::kafka::codec::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DescribeClientQuotas;

/// Who may have quotas.
const ENTITIES: [&str; 3] = [USER, CLIENT_ID, IP];
const USER: &str = "user";
const CLIENT_ID: &str = "client-id";
const IP: &str = "ip";

/// `ClientQuotaFilterComponent`: a name, the default, any name.
const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const SPECIFIED: i8 = 2;

impl Handler for DescribeClientQuotas {
    type Request = DescribeClientQuotasRequest;
    type Response = DescribeClientQuotasResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(
        _: &Context,
        request: DescribeClientQuotasRequest,
    ) -> DescribeClientQuotasResponse {
        match check(&request.components) {
            Ok(()) => DescribeClientQuotasResponse {
                error_message: Some(Str::default()),
                entries: Some(Vec::new()),
                ..DescribeClientQuotasResponse::default()
            },
            Err(refused) => DescribeClientQuotasResponse {
                error_code: refused.code.code(),
                error_message: refused.message,
                entries: None,
                ..DescribeClientQuotasResponse::default()
            },
        }
    }
}

fn check(components: &[ComponentData]) -> Decided {
    let mut entities = BTreeSet::new();
    for component in components {
        let kind = &*component.entity_type;
        if kind.is_empty() {
            return Err(Refused::invalid_request("Invalid empty entity type."));
        }
        if !entities.insert(kind) {
            return Err(Refused::invalid_request(format!(
                "Entity type {kind} cannot appear more than once in the filter."
            )));
        }
        if !ENTITIES.contains(&kind) {
            let text = format!("Unsupported entity type {kind}");
            return Err(Refused::new(ErrorCode::UnsupportedVersion, text));
        }
        check_match(component)?;
    }
    if entities.contains(IP) && (entities.contains(USER) || entities.contains(CLIENT_ID)) {
        return Err(Refused::invalid_request(
            "Invalid entity filter component combination. IP filter component should not be used \
             with user or clientId filter component.",
        ));
    }
    Ok(())
}

/// A name is matched by itself alone, and needed for that.
fn check_match(component: &ComponentData) -> Decided {
    let text = match (component.match_type, &component.r#match) {
        (EXACT, Some(_)) | (DEFAULT | SPECIFIED, None) => return Ok(()),
        (EXACT, None) => {
            "Request specified MATCH_TYPE_EXACT, but set match string to null.".to_owned()
        }
        (DEFAULT, Some(_)) => {
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.".to_owned()
        }
        (SPECIFIED, Some(_)) => {
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.".to_owned()
        }
        (other, _) => format!("Unknown match type {other}"),
    };
    Err(Refused::invalid_request(text))
}

#[cfg(test)]
mod tests;
