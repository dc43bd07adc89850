//! Metadata: key 3, v0–v13. The nodes, and the topics with their partitions; creates unknown topics
//! where that is allowed.
//!
//! This node leads everything and is the whole ISR. Leaves out: racks. Source: KIP-4, KIP-430,
//! KIP-516, KIP-700; KafkaApis.handleTopicMetadataRequest.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Context, Handler};
use crate::config::topic::Overrides;
use crate::controller::image::Topic;
use crate::controller::names;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::messages::metadata_request::MetadataRequestTopic;
use crate::kafka::codec::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use crate::kafka::codec::messages::{MetadataRequest, MetadataResponse};
use crate::kafka::codec::{Str, Uuid};
use crate::kafka::errors::ErrorCode;
use crate::kafka::operations;

/// The API.
pub(super) struct Metadata;

/// First version that asks for topics by id; before it the ids are there and have to be empty (KIP-516).
const TOPIC_ID_FROM: i16 = 12;

impl Handler for Metadata {
    type Request = MetadataRequest;
    type Response = MetadataResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=13;

    async fn handle(context: &Context, request: MetadataRequest) -> MetadataResponse {
        let node = &context.node;
        let named = request.topics.as_deref().unwrap_or_default();
        if context.version < TOPIC_ID_FROM
            && named.iter().any(|topic| topic.name.is_none() || has_id(topic))
        {
            return refused(named);
        }
        // An empty list meant every topic before null did (version 0).
        let all = match &request.topics {
            None => true,
            Some(topics) => topics.is_empty() && context.version == 0,
        };
        let mut topics = if all {
            node.controller.image().topics().map(|topic| found(context, topic)).collect()
        } else {
            let may_create = node.config.auto_create_topics && request.allow_auto_topic_creation;
            wanted(context, request.topics.unwrap_or_default(), may_create).await
        };
        if request.include_topic_authorized_operations {
            let is_known = |topic: &&mut MetadataResponseTopic| {
                topic.error_code != ErrorCode::UnknownTopicId.code()
            };
            for topic in topics.iter_mut().filter(is_known) {
                topic.topic_authorized_operations = operations::TOPIC;
            }
        }
        let (host, port) = node.advertised(context.listener);
        let broker = MetadataResponseBroker { node_id: node.id(), host, port, rack: None };
        MetadataResponse {
            brokers: vec![broker],
            cluster_id: Some(node.cluster_id()),
            controller_id: node.id(),
            topics,
            cluster_authorized_operations: if request.include_cluster_authorized_operations {
                operations::CLUSTER
            } else {
                operations::NOT_ASKED
            },
            ..MetadataResponse::default()
        }
    }
}

async fn wanted(
    context: &Context,
    wanted: Vec<MetadataRequestTopic>,
    may_create: bool,
) -> Vec<MetadataResponseTopic> {
    // Named twice, answered once: else a small request could ask for any amount of memory.
    // One id, and no name counts any more. Who asks by id may also leave names empty instead of null.
    if wanted.iter().any(|topic| has_id(topic) || topic.name.is_none()) {
        let by_id_alone = |topic: &&MetadataRequestTopic| has_id(topic) || topic.name.is_none();
        let ids = wanted.iter().filter(by_id_alone).map(|topic| topic.topic_id);
        let mut seen = HashSet::new();
        return ids.filter(|id| seen.insert(*id)).map(|id| by_id(context, id)).collect();
    }
    let mut seen = HashSet::new();
    let mut topics = Vec::new();
    for name in wanted.into_iter().filter_map(|topic| topic.name) {
        if seen.insert(name.clone()) {
            topics.push(by_name(context, name, may_create).await);
        }
    }
    topics
}

fn has_id(topic: &MetadataRequestTopic) -> bool {
    topic.topic_id != Uuid::ZERO
}

/// Nothing but the error, for each topic. Source: MetadataRequest.getErrorResponse.
fn refused(topics: &[MetadataRequestTopic]) -> MetadataResponse {
    let refused = |topic: &MetadataRequestTopic| {
        let name = topic.name.clone().unwrap_or_default();
        missing(Some(name), topic.topic_id, ErrorCode::InvalidRequest)
    };
    MetadataResponse { topics: topics.iter().map(refused).collect(), ..MetadataResponse::default() }
}

fn by_id(context: &Context, id: Uuid) -> MetadataResponseTopic {
    match context.node.controller.image().topic_by_id(id) {
        Some(topic) => found(context, topic),
        None => missing(None, id, ErrorCode::UnknownTopicId),
    }
}

async fn by_name(context: &Context, name: Str, may_create: bool) -> MetadataResponseTopic {
    if let Some(topic) = context.node.controller.image().topic(&name) {
        return found(context, topic);
    }
    if names::check(&name).is_err() {
        return missing(Some(name), Uuid::ZERO, ErrorCode::InvalidTopicException);
    }
    if !may_create {
        return missing(Some(name), Uuid::ZERO, ErrorCode::UnknownTopicOrPartition);
    }
    match create(context, name.clone()).await {
        Ok(topic) => found(context, &topic),
        Err(code) => missing(Some(name), Uuid::ZERO, code),
    }
}

async fn create(context: &Context, name: Str) -> Result<Arc<Topic>, ErrorCode> {
    let topic = match &*name {
        names::OFFSETS_TOPIC => {
            let topic = context.node.coordinators.offsets_topic().await;
            return topic.map_err(ErrorCode::of);
        }
        names::TRANSACTIONS_TOPIC => {
            let topic = context.node.transactions.state_topic().await;
            return topic.map_err(ErrorCode::of);
        }
        names::SHARE_TOPIC => {
            let topic = context.node.inflight.topic().await;
            return topic.map_err(ErrorCode::of);
        }
        names::TIMER_TOPIC => {
            let topic = context.node.timers.topic().await;
            return topic.map_err(ErrorCode::of);
        }
        _ => NewTopic {
            name,
            partitions: context.node.config.num_partitions,
            overrides: Overrides::new(),
            door: Door::Kafka,
        },
    };
    let created = context.node.controller.create_topic(topic, IfExists::Return).await;
    created.map_err(ErrorCode::of)
}

fn found(context: &Context, topic: &Topic) -> MetadataResponseTopic {
    let node = context.node.id();
    let leader_epoch = context.node.leader_epoch();
    let partitions = (0..topic.partition_count())
        .map(|partition_index| {
            let offline = context.node.partitions.is_offline(topic.id, partition_index);
            let leaderless = ErrorCode::LeaderNotAvailable;
            MetadataResponsePartition {
                error_code: if offline { leaderless } else { ErrorCode::None }.code(),
                partition_index,
                leader_id: if offline { -1 } else { node },
                leader_epoch,
                replica_nodes: vec![node],
                isr_nodes: vec![node],
                offline_replicas: if offline { vec![node] } else { Vec::new() },
            }
        })
        .collect();
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions,
        topic_authorized_operations: operations::NOT_ASKED,
        ..MetadataResponseTopic::default()
    }
}

fn missing(name: Option<Str>, topic_id: Uuid, code: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: code.code(),
        is_internal: name.as_deref().is_some_and(names::is_internal),
        name,
        topic_id,
        partitions: Vec::new(),
        topic_authorized_operations: operations::NOT_ASKED,
    }
}
