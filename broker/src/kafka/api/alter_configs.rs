//! AlterConfigs: key 33, v0–v2. Replaces all settings of a topic or of the node: what is not named
//! goes back to its default. Each resource whole or not at all.
//!
//! Leaves out what IncrementalAlterConfigs does, which took its place. Source: KIP-133;
//! ConfigurationControlManager.legacyAlterConfigs.

use std::ops::RangeInclusive;

use super::admin::{Refused, duplicates, fields};
use super::incremental_alter_configs::{Resource, alter, check_values};
use super::{Context, Handler};
use crate::config::change::Alteration;
use crate::kafka::codec::messages::alter_configs_request::AlterConfigsResource;
use crate::kafka::codec::messages::alter_configs_response::AlterConfigsResourceResponse;
use crate::kafka::codec::messages::{AlterConfigsRequest, AlterConfigsResponse};

/// The API.
pub(super) struct AlterConfigs;

impl Handler for AlterConfigs {
    type Request = AlterConfigsRequest;
    type Response = AlterConfigsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: AlterConfigsRequest) -> AlterConfigsResponse {
        let names: Vec<_> = request.resources.iter().map(name_of).collect();
        let twice = duplicates(names.iter());
        let mut responses = Vec::with_capacity(request.resources.len());
        for (asked, name) in request.resources.iter().zip(&names) {
            let outcome = if twice.contains(name) {
                Err(Refused::invalid_request("Each resource must appear at most once."))
            } else {
                match whole(asked) {
                    Ok(whole) => {
                        let resource = Resource { kind: name.0, name: name.1 };
                        alter(context, resource, whole, request.validate_only).await
                    }
                    Err(refused) => Err(refused),
                }
            };
            let (error_code, error_message) = fields(&outcome);
            responses.push(AlterConfigsResourceResponse {
                error_code,
                error_message,
                resource_type: asked.resource_type,
                resource_name: asked.resource_name.clone(),
            });
        }
        AlterConfigsResponse { responses, ..AlterConfigsResponse::default() }
    }
}

fn name_of(resource: &AlterConfigsResource) -> (i8, &str) {
    (resource.resource_type, &resource.resource_name)
}

/// All that the resource shall set, each key once and with a value.
fn whole(resource: &AlterConfigsResource) -> Result<Alteration, Refused> {
    let values = || resource.configs.iter().map(|config| (&*config.name, config.value.as_deref()));
    check_values(values())?;
    let set = values().map(|(name, value)| (name.to_owned(), value.unwrap_or_default().to_owned()));
    Ok(Alteration::Whole(set.collect()))
}
