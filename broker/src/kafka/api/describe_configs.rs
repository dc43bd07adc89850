//! DescribeConfigs: key 32, v1–v4. Values of topics and of the node, with where they come from.
//!
//! Resource types: 2 topic, 4 broker (an empty name means what is set for all nodes), 16
//! client metrics, 32 group. Leaves out: documentation texts; loggers (8). Source: KIP-133, KIP-226,
//! KIP-569, KIP-714, KIP-848; ConfigHelper.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::admin::{Decided, Refused, layers};
use super::{Context, Handler};
use crate::config::describe::{self, Entry};
use crate::config::key::Kind;
use crate::controller::image::Image;
use crate::controller::names;
use crate::controller::record::ConfigScope;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_configs_request::DescribeConfigsResource;
use crate::kafka::codec::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use crate::kafka::codec::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use crate::kafka::errors::ErrorCode;
use crate::limits::DESCRIBED_BYTES_MAX;

/// `ConfigResource.Type`.
pub(super) const TOPIC: i8 = 2;
pub(super) const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
pub(super) const CLIENT_METRICS: i8 = 16;
pub(super) const GROUP: i8 = 32;
const TYPES: [i8; 5] = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];
/// One resource of a kind that there is not spoils the whole request (KafkaApis.handleDescribeConfigsRequest).
const MALFORMED: &str = "This most likely occurs because of a request being malformed by the client library or the message \
    was sent to an incompatible broker. See the broker logs for more details.";

/// The API.
pub(super) struct DescribeConfigs;

impl Handler for DescribeConfigs {
    type Request = DescribeConfigsRequest;
    type Response = DescribeConfigsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=4;

    async fn handle(context: &Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
        let image = Arc::clone(&context.node.controller.image());
        let is_malformed = request.resources.iter().any(|it| !TYPES.contains(&it.resource_type));
        let mut room = DESCRIBED_BYTES_MAX;
        let mut results = Vec::with_capacity(request.resources.len());
        for resource in &request.resources {
            let entries = match resource.resource_type {
                _ if is_malformed => Err(Refused::invalid_request(MALFORMED)),
                _ if room == 0 => Err(too_many()),
                TOPIC => topic(context, &image, resource),
                BROKER => broker(context, &image, resource),
                CLIENT_METRICS => client_metrics(context, &image, resource),
                GROUP => group(context, &image, resource),
                other => Err(unknown_type(other)),
            };
            let result = result(resource, entries, request.include_synonyms);
            room = room.saturating_sub(bytes(&result));
            results.push(result);
        }
        DescribeConfigsResponse { results, ..DescribeConfigsResponse::default() }
    }
}

pub(super) fn unknown_type(resource_type: i8) -> Refused {
    Refused::invalid_request(format!("Unknown resource type {resource_type}"))
}

/// As Kafka refuses a CreateTopics with too many partitions.
fn too_many() -> Refused {
    let text = "Excessively large number of resources per request.";
    Refused::new(ErrorCode::PolicyViolation, text)
}

/// What a result takes, about, in memory and on the wire.
fn bytes(result: &DescribeConfigsResult) -> usize {
    const EACH: usize = 128;
    let of = |text: &Option<Str>| text.as_ref().map_or(0, |text| text.len());
    let synonyms = |entry: &DescribeConfigsResourceResult| -> usize {
        entry.synonyms.iter().map(|it| EACH + it.name.len() + of(&it.value)).sum()
    };
    let entry = |entry: &DescribeConfigsResourceResult| {
        EACH + entry.name.len() + of(&entry.value) + synonyms(entry)
    };
    EACH + result.resource_name.len() + result.configs.iter().map(entry).sum::<usize>()
}

/// An entry, and whether it can be altered while the node runs.
type Shown = (Entry, bool);

fn topic(
    context: &Context,
    image: &Image,
    resource: &DescribeConfigsResource,
) -> Decided<Vec<Shown>> {
    let name = &resource.resource_name;
    names::check(name).map_err(|text| Refused::new(ErrorCode::InvalidTopicException, text))?;
    let unknown = || Refused::new(ErrorCode::UnknownTopicOrPartition, "");
    let topic = image.topic(name).ok_or_else(unknown)?;
    let entries = layers(context, image).topic(&topic.overrides);
    Ok(entries.into_iter().map(|entry| (entry, true)).collect())
}

/// A resource need not exist.
fn client_metrics(
    context: &Context,
    image: &Image,
    resource: &DescribeConfigsResource,
) -> Decided<Vec<Shown>> {
    let name = &*resource.resource_name;
    if name.is_empty() {
        let text = "Client metrics subscription name must not be empty";
        return Err(Refused::invalid_request(text));
    }
    let own = image.config(ConfigScope::ClientMetrics, name).cloned().unwrap_or_default();
    let entries = layers(context, image).client_metrics(&own);
    Ok(entries.into_iter().map(|entry| (entry, true)).collect())
}

/// A group need not exist.
fn group(
    context: &Context,
    image: &Image,
    resource: &DescribeConfigsResource,
) -> Decided<Vec<Shown>> {
    let name = &*resource.resource_name;
    if name.is_empty() {
        return Err(Refused::invalid_request("Group name must not be empty"));
    }
    let own = image.config(ConfigScope::Group, name).cloned().unwrap_or_default();
    let entries = layers(context, image).group(&own);
    Ok(entries.into_iter().map(|entry| (entry, true)).collect())
}

fn broker(
    context: &Context,
    image: &Image,
    resource: &DescribeConfigsResource,
) -> Decided<Vec<Shown>> {
    let name = &*resource.resource_name;
    let entries = if name.is_empty() {
        image.config(ConfigScope::Broker, "").map(describe::cluster).unwrap_or_default()
    } else {
        let id: i32 = name.parse().map_err(|_| {
            Refused::invalid_request(format!("Broker id must be an integer, but it is: {name}"))
        })?;
        let own = context.node.id();
        if id != own {
            return Err(Refused::invalid_request(format!(
                "Unexpected broker id, expected {own} or empty string, but received {id}"
            )));
        }
        layers(context, image).broker()
    };
    let with_update = |entry: Entry| {
        let dynamic = entry.key.is_dynamic();
        (entry, dynamic)
    };
    Ok(entries.into_iter().map(with_update).collect())
}

fn result(
    resource: &DescribeConfigsResource,
    entries: Decided<Vec<Shown>>,
    with_synonyms: bool,
) -> DescribeConfigsResult {
    let keys = resource.configuration_keys.as_deref().filter(|keys| !keys.is_empty());
    let is_wanted =
        |entry: &Entry| keys.is_none_or(|keys| keys.iter().any(|key| **key == *entry.key.name));
    let (error_code, error_message, configs) = match entries {
        Ok(entries) => (
            ErrorCode::None.code(),
            Some(Str::default()),
            entries
                .into_iter()
                .filter(|(entry, _)| is_wanted(entry))
                .map(|(entry, dynamic)| described(entry, dynamic, with_synonyms))
                .collect(),
        ),
        Err(refused) => (refused.code.code(), refused.message, Vec::new()),
    };
    DescribeConfigsResult {
        error_code,
        error_message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        configs,
    }
}

fn described(entry: Entry, dynamic: bool, with_synonyms: bool) -> DescribeConfigsResourceResult {
    let synonyms = entry.synonyms.into_iter().filter(|_| with_synonyms);
    DescribeConfigsResourceResult {
        name: entry.key.name.into(),
        value: entry.value.map(Str::from),
        read_only: !dynamic,
        config_source: entry.origin as i8,
        is_sensitive: entry.key.kind == Kind::Password,
        synonyms: synonyms
            .map(|synonym| DescribeConfigsSynonym {
                name: synonym.name.into(),
                value: synonym.value.map(Str::from),
                source: synonym.origin as i8,
            })
            .collect(),
        config_type: config_type(entry.key.kind),
        documentation: None,
    }
}

/// `ConfigEntry.ConfigType`.
fn config_type(kind: Kind) -> i8 {
    match kind {
        Kind::Boolean => 1,
        Kind::String => 2,
        Kind::Int => 3,
        Kind::Short => 4,
        Kind::Long => 5,
        Kind::Double => 6,
        Kind::List => 7,
        Kind::Class => 8,
        Kind::Password => 9,
    }
}

#[cfg(test)]
mod tests;
