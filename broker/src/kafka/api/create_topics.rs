//! CreateTopics: key 19, v2–v7. Creates topics, or says what would come of it (`validate_only`).
//!
//! Every partition has one replica, on this node. Leaves out: policies, quotas. Source: KIP-4,
//! KIP-464, KIP-525; ControllerApis.createTopics, ReplicationControlManager.createTopics.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::admin::{Decided, Refused, check_assignment, duplicates, fields, layers};
use super::{Context, Handler};
use crate::config::topic::Overrides;
use crate::controller::image::Image;
use crate::controller::names::METADATA_TOPIC;
use crate::controller::topics::{Door, IfExists, NewTopic, check_creations, check_new};
use crate::kafka::codec::messages::create_topics_request::CreatableTopic;
use crate::kafka::codec::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use crate::kafka::codec::messages::{CreateTopicsRequest, CreateTopicsResponse};
use crate::kafka::codec::{Str, Uuid};
use crate::kafka::errors::ErrorCode;
use crate::limits::REQUEST_PARTITIONS_MAX;

/// Names that stand for metadata, Kafka's and this node's.
const METADATA_NAMES: [&str; 2] = ["__cluster_metadata", METADATA_TOPIC];

/// The API.
pub(super) struct CreateTopics;

impl Handler for CreateTopics {
    type Request = CreateTopicsRequest;
    type Response = CreateTopicsResponse;
    const VERSIONS: RangeInclusive<i16> = 2..=7;

    async fn handle(context: &Context, request: CreateTopicsRequest) -> CreateTopicsResponse {
        let of_all = Refused::timed_out(request.timeout_ms)
            .and_then(|()| check_total(context, &request.topics));
        let topics = match of_all {
            Ok(()) => create_all(context, &request).await,
            Err(refused) => {
                request.topics.iter().map(|topic| failed(&topic.name, refused.clone())).collect()
            }
        };
        CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }
    }
}

/// A request may not ask for more partitions in all than one write of the metadata holds.
fn check_total(context: &Context, topics: &[CreatableTopic]) -> Decided {
    let default = context.node.config.num_partitions;
    let total = topics.iter().fold(0_i64, |total, topic| {
        let count = match topic.num_partitions {
            _ if !topic.assignments.is_empty() => {
                i64::try_from(topic.assignments.len()).unwrap_or(i64::MAX)
            }
            -1 => i64::from(default),
            count => i64::from(count.max(0)),
        };
        total.saturating_add(count)
    });
    if total > REQUEST_PARTITIONS_MAX {
        return Err(Refused::new(
            ErrorCode::PolicyViolation,
            "Excessively large number of partitions per request.",
        ));
    }
    Ok(())
}

/// One result a topic in the order asked, then those that were refused for their name alone.
async fn create_all(context: &Context, request: &CreateTopicsRequest) -> Vec<CreatableTopicResult> {
    let twice = duplicates(request.topics.iter().map(|topic| &*topic.name));
    let single: Vec<_> =
        request.topics.iter().filter(|topic| !is_refused_by_name(&twice, &topic.name)).collect();
    let image = Arc::clone(&context.node.controller.image());
    let decided: Vec<Decided<NewTopic>> =
        single.iter().map(|topic| decide(context, &image, topic)).collect();
    let wanted: Vec<NewTopic> = decided.iter().flatten().cloned().collect();
    let mut created = if request.validate_only {
        let checked = check_creations(&image, &wanted).into_iter();
        checked.map(|outcome| outcome.map(|()| None)).collect::<Vec<_>>()
    } else {
        let created = context.node.controller.create_topics(wanted, IfExists::Refuse).await;
        created.into_iter().map(|outcome| outcome.map(Some)).collect()
    }
    .into_iter();
    let image = Arc::clone(&context.node.controller.image());
    let mut results: Vec<_> = decided
        .into_iter()
        .zip(&single)
        .map(|(decided, topic)| {
            let outcome = decided.and_then(|new| match created.next() {
                Some(Ok(topic)) => Ok((new, topic.map_or(Uuid::ZERO, |topic| topic.id))),
                Some(Err(error)) => Err(error.into()),
                None => Err(Refused::bare(ErrorCode::UnknownServerError)),
            });
            match outcome {
                Ok((new, id)) => succeeded(context, &image, new, id),
                Err(refused) => failed(&topic.name, refused),
            }
        })
        .collect();
    let mut named = BTreeSet::new();
    let refused = request.topics.iter().map(|topic| &topic.name);
    for name in refused.filter(|name| is_refused_by_name(&twice, name)) {
        if named.insert(name) {
            results.push(failed(name, refusal_of_name(name)));
        }
    }
    results
}

fn is_refused_by_name(twice: &BTreeSet<&str>, name: &str) -> bool {
    twice.contains(name) || METADATA_NAMES.contains(&name)
}

fn refusal_of_name(name: &str) -> Refused {
    Refused::invalid_request(if METADATA_NAMES.contains(&name) {
        format!("Creation of internal topic {name} is prohibited.")
    } else {
        "Duplicate topic name.".to_owned()
    })
}

/// What to create, or why not; the controller checks name and settings once more as it writes.
fn decide(context: &Context, image: &Image, topic: &CreatableTopic) -> Decided<NewTopic> {
    let nulls: Vec<&str> = topic
        .configs
        .iter()
        .filter(|config| config.value.is_none())
        .map(|config| &*config.name)
        .collect();
    let overrides: Overrides = topic
        .configs
        .iter()
        .filter(|_| nulls.is_empty())
        .filter_map(|config| Some((config.name.to_string(), config.value.as_ref()?.to_string())))
        .collect();
    let mut new =
        NewTopic { name: topic.name.clone(), partitions: 1, overrides, door: Door::Kafka };
    check_new(image, &new)?;
    if !nulls.is_empty() {
        let names = nulls.join(",");
        return Err(Refused::new(
            ErrorCode::InvalidConfig,
            format!("Null value not supported for topic configs: {names}"),
        ));
    }
    let nodes = [context.node.id()];
    new.partitions = if topic.assignments.is_empty() {
        counted(context, &nodes, topic)?
    } else {
        assigned(&nodes, topic)?
    };
    check_new(image, &new)?;
    Ok(new)
}

/// The number of partitions that a topic asks for by number.
fn counted(context: &Context, nodes: &[i32], topic: &CreatableTopic) -> Decided<i32> {
    let factor = topic.replication_factor;
    if factor < -1 || factor == 0 {
        return Err(Refused::new(
            ErrorCode::InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ));
    }
    if topic.num_partitions < -1 || topic.num_partitions == 0 {
        return Err(Refused::new(
            ErrorCode::InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ));
    }
    if usize::try_from(factor).is_ok_and(|factor| factor > nodes.len()) {
        return Err(Refused::new(
            ErrorCode::InvalidReplicationFactor,
            format!(
                "Unable to replicate the partition {factor} time(s): The target replication \
                 factor of {factor} cannot be reached because only {} broker(s) are registered \
                 or some brokers have all their log directories cordoned.",
                nodes.len()
            ),
        ));
    }
    Ok(if topic.num_partitions == -1 {
        context.node.config.num_partitions
    } else {
        topic.num_partitions
    })
}

/// The number of partitions that a topic asks for by naming the replicas of each.
fn assigned(nodes: &[i32], topic: &CreatableTopic) -> Decided<i32> {
    let with = |what| {
        format!("A manual partition assignment was specified, but {what} was not set to -1.")
    };
    if topic.replication_factor != -1 {
        return Err(Refused::invalid_request(with("replication factor")));
    }
    if topic.num_partitions != -1 {
        return Err(Refused::invalid_request(with("numPartitions")));
    }
    let mut seen = BTreeSet::new();
    let mut replica_count = None;
    for assignment in &topic.assignments {
        let partition = assignment.partition_index;
        if !seen.insert(partition) {
            return Err(Refused::new(
                ErrorCode::InvalidReplicaAssignment,
                format!("Found multiple manual partition assignments for partition {partition}"),
            ));
        }
        check_assignment(nodes, &assignment.broker_ids, replica_count)?;
        replica_count = Some(assignment.broker_ids.len());
    }
    let count = i32::try_from(seen.len()).unwrap_or(i32::MAX);
    if seen.first() != Some(&0) || seen.last() != Some(&(count - 1)) {
        return Err(Refused::new(
            ErrorCode::InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence",
        ));
    }
    Ok(count)
}

fn succeeded(
    context: &Context,
    image: &Image,
    new: NewTopic,
    topic_id: Uuid,
) -> CreatableTopicResult {
    let configs = layers(context, image).topic(&new.overrides).into_iter().map(|entry| {
        CreatableTopicConfigs {
            name: entry.key.name.into(),
            value: entry.value.map(Str::from),
            read_only: false,
            config_source: entry.origin as i8,
            is_sensitive: false,
        }
    });
    CreatableTopicResult {
        name: new.name,
        topic_id,
        error_message: None,
        num_partitions: new.partitions,
        replication_factor: 1,
        configs: Some(configs.collect()),
        ..CreatableTopicResult::default()
    }
}

fn failed(name: &Str, refused: Refused) -> CreatableTopicResult {
    let (error_code, error_message) = fields(&Err(refused));
    let name = name.clone();
    CreatableTopicResult { name, error_code, error_message, ..CreatableTopicResult::default() }
}
