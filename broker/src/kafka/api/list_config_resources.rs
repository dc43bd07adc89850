//! ListConfigResources: key 74, v0–v1. The names of what has settings: topics, this node, its logger.
//!
//! Without types all of them, groups and client metrics where something is set for them; version 0 knows
//! client metrics only. Source: KIP-1000, KIP-1142; KafkaApis.handleListConfigResources.

use std::ops::RangeInclusive;

use super::describe_configs::{BROKER, CLIENT_METRICS, GROUP, TOPIC};
use super::{Context, Handler};
use crate::controller::record::ConfigScope;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::list_config_resources_response::ConfigResource;
use crate::kafka::codec::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct ListConfigResources;

/// `ConfigResource.Type`.
const BROKER_LOGGER: i8 = 8;

impl Handler for ListConfigResources {
    type Request = ListConfigResourcesRequest;
    type Response = ListConfigResourcesResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(
        context: &Context,
        request: ListConfigResourcesRequest,
    ) -> ListConfigResourcesResponse {
        let types = match request.resource_types {
            _ if context.version == 0 => vec![CLIENT_METRICS],
            types if types.is_empty() => {
                vec![TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP]
            }
            types => types,
        };
        let mut config_resources = Vec::new();
        for resource_type in types {
            let Some(names) = names(context, resource_type) else {
                let error_code = ErrorCode::UnsupportedVersion.code();
                return ListConfigResourcesResponse {
                    error_code,
                    ..ListConfigResourcesResponse::default()
                };
            };
            let resource = |resource_name| ConfigResource { resource_name, resource_type };
            config_resources.extend(names.into_iter().map(resource));
        }
        ListConfigResourcesResponse { config_resources, ..ListConfigResourcesResponse::default() }
    }
}

/// `None` for a type that there is none of.
fn names(context: &Context, resource_type: i8) -> Option<Vec<Str>> {
    Some(match resource_type {
        TOPIC => {
            let topics = context.node.controller.image().topics_sorted();
            topics.into_iter().map(|topic| topic.name.clone()).collect()
        }
        BROKER | BROKER_LOGGER => vec![context.node.id().to_string().into()],
        GROUP => {
            let image = context.node.controller.image();
            image.configured(ConfigScope::Group).map(Str::from).collect()
        }
        CLIENT_METRICS => {
            let image = context.node.controller.image();
            image.configured(ConfigScope::ClientMetrics).map(Str::from).collect()
        }
        _ => return None,
    })
}
