//! DescribeProducers: key 61, v0. Who writes to partitions, and where their open transactions
//! begin: how `kafka-transactions` finds those that hang. Source: KIP-664.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::controller::names;
use crate::kafka::codec::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use crate::kafka::codec::messages::{DescribeProducersRequest, DescribeProducersResponse};
use crate::kafka::errors::ErrorCode;
use crate::partitions;

/// The API.
pub(super) struct DescribeProducers;

impl Handler for DescribeProducers {
    type Request = DescribeProducersRequest;
    type Response = DescribeProducersResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        context: &Context,
        request: DescribeProducersRequest,
    ) -> DescribeProducersResponse {
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
            for index in topic.partition_indexes {
                let found = producers(context, &topic.name, index).await;
                partitions.push(answer(index, found));
            }
            topics.push(TopicResponse { name: topic.name, partitions });
        }
        DescribeProducersResponse { topics, ..DescribeProducersResponse::default() }
    }
}

async fn producers(
    context: &Context,
    topic: &str,
    index: i32,
) -> Result<Vec<partitions::ProducerState>, ErrorCode> {
    names::check(topic).map_err(|_| ErrorCode::InvalidTopicException)?;
    let id = context.node.controller.image().topic(topic).map(|topic| topic.id);
    let partition = id.and_then(|id| context.node.partitions.find(id, index));
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    partition.producers().await.map_err(ErrorCode::of)
}

fn answer(
    partition_index: i32,
    found: Result<Vec<partitions::ProducerState>, ErrorCode>,
) -> PartitionResponse {
    match found {
        Ok(producers) => PartitionResponse {
            partition_index,
            active_producers: producers.iter().map(shown).collect(),
            ..PartitionResponse::default()
        },
        Err(code) => PartitionResponse {
            partition_index,
            error_code: code.code(),
            ..PartitionResponse::default()
        },
    }
}

fn shown(producer: &partitions::ProducerState) -> ProducerState {
    ProducerState {
        producer_id: producer.id,
        producer_epoch: i32::from(producer.epoch),
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.txn_start_offset.unwrap_or(-1),
    }
}
