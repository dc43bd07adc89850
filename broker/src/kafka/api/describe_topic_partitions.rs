//! DescribeTopicPartitions: key 75, v0. Topics in order of their names, so many partitions at a
//! time; a cursor says where the next answer begins.
//!
//! This node leads everything and is the whole ISR. Leaves out: eligible leader replicas, of which
//! there are none. Source: KIP-966; DescribeTopicPartitionsRequestHandler.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Context, Handler};
use crate::controller::image::{Image, Topic};
use crate::controller::names;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_topic_partitions_request as wire;
use crate::kafka::codec::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use crate::kafka::codec::messages::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
};
use crate::kafka::errors::ErrorCode;
use crate::kafka::operations;

/// Partitions of one answer at most (`max.request.partition.size.limit`).
const PARTITIONS_MAX: i32 = 2000;

/// The API.
pub(super) struct DescribeTopicPartitions;

impl Handler for DescribeTopicPartitions {
    type Request = DescribeTopicPartitionsRequest;
    type Response = DescribeTopicPartitionsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        context: &Context,
        request: DescribeTopicPartitionsRequest,
    ) -> DescribeTopicPartitionsResponse {
        let cursor = request.cursor.as_ref();
        if cursor.is_some_and(|cursor| !is_within(cursor, &request.topics)) {
            let refused = |topic: wire::TopicRequest| DescribeTopicPartitionsResponseTopic {
                error_code: ErrorCode::InvalidRequest.code(),
                name: Some(topic.name),
                ..DescribeTopicPartitionsResponseTopic::default()
            };
            return DescribeTopicPartitionsResponse {
                topics: request.topics.into_iter().map(refused).collect(),
                ..DescribeTopicPartitionsResponse::default()
            };
        }
        let image = Arc::clone(&context.node.controller.image());
        let names = wanted(&image, &request, cursor);
        let limit = request.response_partition_limit.clamp(1, PARTITIONS_MAX);
        let first_partition = |name: &Str| {
            let at = cursor.filter(|cursor| cursor.topic_name == *name);
            at.map_or(0, |cursor| cursor.partition_index)
        };
        let mut page = Page { context, left: limit, topics: Vec::new(), next: None };
        for name in names {
            if page.next.is_some() {
                break;
            }
            page.add(&image, &name, first_partition(&name));
        }
        DescribeTopicPartitionsResponse {
            topics: page.topics,
            next_cursor: page.next,
            ..DescribeTopicPartitionsResponse::default()
        }
    }
}

/// A cursor stands in a topic of the request, if that names any, and at no negative partition.
fn is_within(cursor: &wire::Cursor, topics: &[wire::TopicRequest]) -> bool {
    let named = topics.is_empty() || topics.iter().any(|topic| topic.name == cursor.topic_name);
    named && cursor.partition_index >= 0
}

/// The names to describe, each once, in order, from the cursor on; all topics if none is named.
fn wanted(
    image: &Image,
    request: &DescribeTopicPartitionsRequest,
    cursor: Option<&wire::Cursor>,
) -> BTreeSet<Str> {
    let reached = |name: &Str| cursor.is_none_or(|cursor| *name >= cursor.topic_name);
    if request.topics.is_empty() {
        image.topics().map(|topic| topic.name.clone()).filter(reached).collect()
    } else {
        request.topics.iter().map(|topic| topic.name.clone()).filter(reached).collect()
    }
}

struct Page<'a> {
    context: &'a Context,
    /// Partitions that still fit.
    left: i32,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next: Option<Cursor>,
}

impl Page<'_> {
    fn add(&mut self, image: &Image, name: &Str, first: i32) {
        let cursor = |partition_index| Cursor { topic_name: name.clone(), partition_index };
        if self.left == 0 {
            self.next = Some(cursor(0));
            return;
        }
        let Some(topic) = image.topic(name) else {
            self.topics.push(missing(name));
            return;
        };
        let count = topic.partition_count();
        let end = first.saturating_add(self.left).min(count).max(first);
        let partitions = (first..end).map(|index| partition(self.context, topic, index)).collect();
        self.left -= end - first;
        self.topics.push(described(topic, partitions));
        if end < count {
            self.next = Some(cursor(end));
        }
    }
}

fn partition(
    context: &Context,
    topic: &Topic,
    partition_index: i32,
) -> DescribeTopicPartitionsResponsePartition {
    let node = context.node.id();
    let offline = context.node.partitions.is_offline(topic.id, partition_index);
    let code = if offline { ErrorCode::LeaderNotAvailable } else { ErrorCode::None };
    DescribeTopicPartitionsResponsePartition {
        error_code: code.code(),
        partition_index,
        leader_id: if offline { -1 } else { node },
        leader_epoch: context.node.leader_epoch(),
        replica_nodes: vec![node],
        isr_nodes: vec![node],
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        offline_replicas: if offline { vec![node] } else { Vec::new() },
    }
}

fn described(
    topic: &Topic,
    partitions: Vec<DescribeTopicPartitionsResponsePartition>,
) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions,
        topic_authorized_operations: operations::TOPIC,
    }
}

fn missing(name: &Str) -> DescribeTopicPartitionsResponseTopic {
    let code = match names::check(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: code.code(),
        name: Some(name.clone()),
        is_internal: names::is_internal(name),
        topic_authorized_operations: operations::TOPIC,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}
