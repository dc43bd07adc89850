//! IncrementalAlterConfigs: key 44, v0–v1. Sets, deletes, appends to and subtracts from values of
//! topics and of the node; each resource whole or not at all.
//!
//! Resource types: 2 topic, 4 broker (an empty name means all nodes), 16 client metrics, 32 group. Leaves
//! out: loggers (8); keys that no running node takes. Source: KIP-339, KIP-714; ConfigAdminManager, ConfigurationControlManager.incrementalAlterConfigs.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::admin::{Decided, Refused, duplicates, fields};
use super::describe_configs::{BROKER, CLIENT_METRICS, GROUP, TOPIC, unknown_type};
use super::{Context, Handler};
use crate::config::change::{self, Alteration, Change, KeyChange};
use crate::config::key;
use crate::config::topic::Overrides;
use crate::controller::names;
use crate::controller::record::ConfigScope;
use crate::kafka::codec::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use crate::kafka::codec::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use crate::kafka::codec::messages::{
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};
use crate::kafka::errors::ErrorCode;

/// `AlterConfigOp.OpType`.
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// The API.
pub(super) struct IncrementalAlterConfigs;

impl Handler for IncrementalAlterConfigs {
    type Request = IncrementalAlterConfigsRequest;
    type Response = IncrementalAlterConfigsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(
        context: &Context,
        request: IncrementalAlterConfigsRequest,
    ) -> IncrementalAlterConfigsResponse {
        let names: Vec<_> = request.resources.iter().map(name_of).collect();
        let twice = duplicates(names.iter());
        let mut responses = Vec::with_capacity(request.resources.len());
        for (resource, name) in request.resources.iter().zip(&names) {
            let outcome = if twice.contains(name) {
                Err(Refused::invalid_request("Each resource must appear at most once."))
            } else {
                match changes(&resource.configs) {
                    Ok(changes) => {
                        let of = Resource { kind: name.0, name: name.1 };
                        alter(context, of, changes, request.validate_only).await
                    }
                    Err(refused) => Err(refused),
                }
            };
            let (error_code, error_message) = fields(&outcome);
            responses.push(AlterConfigsResourceResponse {
                error_code,
                error_message,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name.clone(),
            });
        }
        IncrementalAlterConfigsResponse { responses, ..IncrementalAlterConfigsResponse::default() }
    }
}

fn name_of(resource: &AlterConfigsResource) -> (i8, &str) {
    (resource.resource_type, &resource.resource_name)
}

/// Whose settings are meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource<'a> {
    /// `ConfigResource.Type`.
    pub(super) kind: i8,
    pub(super) name: &'a str,
}

/// Alters the settings of one resource, or only says whether that could be done.
pub(super) async fn alter(
    context: &Context,
    resource: Resource<'_>,
    alteration: Alteration,
    validate_only: bool,
) -> Decided {
    match resource.kind {
        TOPIC => alter_topic(context, resource.name, alteration, validate_only).await,
        BROKER => alter_broker(context, resource.name, alteration, validate_only).await,
        CLIENT_METRICS => {
            alter_client_metrics(context, resource.name, alteration, validate_only).await
        }
        GROUP => alter_group(context, resource.name, alteration, validate_only).await,
        other => Err(unknown_type(other)),
    }
}

/// The changes of one resource, each key once, each with the value that its operation needs.
fn changes(configs: &[AlterableConfig]) -> Decided<Alteration> {
    check_values(configs.iter().map(|config| {
        let needs_none = config.config_operation == DELETE;
        (&*config.name, config.value.as_deref().or(needs_none.then_some("")))
    }))?;
    Ok(Alteration::Keys(configs.iter().map(change_of).collect::<Decided<_>>()?))
}

/// Refuses a key that comes twice, and one without a value.
pub(super) fn check_values<'a>(
    values: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
) -> Decided {
    if !duplicates(values.clone().map(|(name, _)| name)).is_empty() {
        return Err(Refused::invalid_request("Error due to duplicate config keys"));
    }
    let nulls: Vec<&str> =
        values.filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
    if nulls.is_empty() {
        return Ok(());
    }
    let text = format!("Null value not supported for : {}", nulls.join(","));
    Err(Refused::invalid_request(text))
}

fn change_of(config: &AlterableConfig) -> Decided<KeyChange> {
    let value = config.value.as_deref().unwrap_or_default().to_owned();
    let change = match config.config_operation {
        SET => Change::Set(value),
        DELETE => Change::Delete,
        APPEND => Change::Append(value),
        SUBTRACT => Change::Subtract(value),
        other => {
            return Err(Refused::invalid_request(format!("Unknown config operation {other}")));
        }
    };
    Ok((config.name.to_string(), change))
}

async fn alter_topic(
    context: &Context,
    name: &str,
    alteration: Alteration,
    validate_only: bool,
) -> Decided {
    change::check_lists(alteration.named(), key::topic_key)?;
    if name.is_empty() {
        return Err(Refused::invalid_request("Default topic resources are not allowed."));
    }
    names::check(name).map_err(|text| Refused::new(ErrorCode::InvalidTopicException, text))?;
    let image = Arc::clone(&context.node.controller.image());
    let unknown = || {
        let text = format!("The topic '{name}' does not exist.");
        Refused::new(ErrorCode::UnknownTopicOrPartition, text)
    };
    let Some(topic) = image.topic(name) else {
        // What is wrong with the settings is told first.
        let none = Overrides::default();
        change::topic(image.values(), &none, &alteration.changes(&none))?;
        return Err(unknown());
    };
    if validate_only {
        let changes = alteration.changes(&topic.overrides);
        change::topic(image.values(), &topic.overrides, &changes)?;
        return Ok(());
    }
    Ok(context.node.controller.alter_topic_config(topic.id, alteration).await?)
}

async fn alter_client_metrics(
    context: &Context,
    name: &str,
    alteration: Alteration,
    validate_only: bool,
) -> Decided {
    if validate_only {
        let image = Arc::clone(&context.node.controller.image());
        let held = image.config(ConfigScope::ClientMetrics, name).cloned().unwrap_or_default();
        change::client_metrics(name, &held, &alteration.changes(&held))?;
        return Ok(());
    }
    Ok(context.node.controller.alter_client_metrics(name, alteration).await?)
}

async fn alter_group(
    context: &Context,
    name: &str,
    alteration: Alteration,
    validate_only: bool,
) -> Decided {
    change::check_lists(alteration.named(), key::group_key)?;
    if name.is_empty() {
        return Err(Refused::invalid_request("Default group resources are not allowed."));
    }
    if validate_only {
        let image = Arc::clone(&context.node.controller.image());
        let held = image.config(ConfigScope::Group, name).cloned().unwrap_or_default();
        change::group(image.values(), &held, &alteration.changes(&held))?;
        return Ok(());
    }
    Ok(context.node.controller.alter_group_config(name, alteration).await?)
}

async fn alter_broker(
    context: &Context,
    name: &str,
    alteration: Alteration,
    validate_only: bool,
) -> Decided {
    check_node(context, name)?;
    if validate_only {
        let image = Arc::clone(&context.node.controller.image());
        let held = image.config(ConfigScope::Broker, name).cloned().unwrap_or_default();
        change::broker(image.values(), &held, &alteration.changes(&held))?;
        return Ok(());
    }
    Ok(context.node.controller.alter_broker_config(name, alteration).await?)
}

/// An empty name means all nodes, else it must be this one's id.
fn check_node(context: &Context, name: &str) -> Decided {
    if name.is_empty() {
        return Ok(());
    }
    let id: i32 = name.parse().map_err(|_| {
        Refused::invalid_request(format!("Node id must be an integer, but it is: {name}"))
    })?;
    let own = context.node.id();
    if id != own {
        return Err(Refused::invalid_request(format!(
            "Unexpected broker id, expected {own}, but received {id}"
        )));
    }
    Ok(())
}
