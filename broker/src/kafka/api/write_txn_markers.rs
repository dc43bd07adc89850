//! WriteTxnMarkers: key 27, v1–v2. Markers into this node's partitions: what coordinators on other
//! nodes send, and `kafka-transactions abort` to end a hanging transaction (KIP-664).
//!
//! A marker without producer id or epoch is none: then nothing of the request is written. Source:
//! KIP-98, KIP-1228; KafkaApis.handleWriteTxnMarkersRequest, MemoryRecordsBuilder.appendEndTxnMarker.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use duolog_coordinator::error::GroupError;
use duolog_coordinator::record::transaction::{ProducerIdAndEpoch, TxnVersion};
use duolog_log_core::record::TransactionOutcome;
use futures_util::future::join_all;

use super::{Context, Handler};
use crate::coordinators::transactions::{Mark, MarkError};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::write_txn_markers_request::{
    WritableTxnMarker, WritableTxnMarkerTopic,
};
use crate::kafka::codec::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use crate::kafka::codec::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct WriteTxnMarkers;

/// What became of a producer's markers, by topic and partition.
type Results = BTreeMap<Str, BTreeMap<i32, ErrorCode>>;

impl Handler for WriteTxnMarkers {
    type Request = WriteTxnMarkersRequest;
    type Response = WriteTxnMarkersResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=2;

    async fn handle(context: &Context, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse {
        // As in Kafka, the answer knows producers only, not which marker it was.
        let mut by_producer: BTreeMap<i64, Results> = BTreeMap::new();
        let refused = request.markers.iter().any(|marker| is_of_nobody(context, marker));
        for marker in request.markers {
            let producer_id = marker.producer_id;
            let written = if refused {
                let refuse = |(topic, index)| (topic, index, ErrorCode::UnknownServerError);
                places(&marker).into_iter().map(refuse).collect()
            } else {
                write(context, marker).await
            };
            // A marker for no partition is not answered.
            for (topic, index, code) in written {
                let results = by_producer.entry(producer_id).or_default();
                results.entry(topic).or_default().insert(index, code);
            }
        }
        let markers = by_producer.into_iter().map(|(producer_id, results)| {
            let topics = results.into_iter().map(topic_result).collect();
            WritableTxnMarkerResult { producer_id, topics }
        });
        WriteTxnMarkersResponse { markers: markers.collect() }
    }
}

fn topic_result(
    (name, partitions): (Str, BTreeMap<i32, ErrorCode>),
) -> WritableTxnMarkerTopicResult {
    let partitions = partitions.into_iter().map(|(partition_index, code)| {
        WritableTxnMarkerPartitionResult { partition_index, error_code: code.code() }
    });
    WritableTxnMarkerTopicResult { name, partitions: partitions.collect() }
}

/// Whether the marker names no producer, and a partition that is there.
fn is_of_nobody(context: &Context, marker: &WritableTxnMarker) -> bool {
    let names_none = marker.producer_id < 0 || marker.producer_epoch < 0;
    names_none && {
        let image = context.node.controller.image();
        let has = |topic: &str, index| image.topic(topic).is_some_and(|it| it.has_partition(index));
        places(marker).iter().any(|(topic, index)| has(topic, *index))
    }
}

/// Where a marker is to be written: once into each partition, however often it is named.
fn places(marker: &WritableTxnMarker) -> BTreeSet<(Str, i32)> {
    let topics = marker.topics.iter();
    let of = |topic: &WritableTxnMarkerTopic| {
        let name = topic.name.clone();
        let indexes: Vec<i32> = topic.partition_indexes.clone();
        indexes.into_iter().map(move |index| (name.clone(), index))
    };
    topics.flat_map(of).collect()
}

/// Writes one marker into all its partitions at once.
async fn write(context: &Context, marker: WritableTxnMarker) -> Vec<(Str, i32, ErrorCode)> {
    let mark = Mark {
        producer: ProducerIdAndEpoch { id: marker.producer_id, epoch: marker.producer_epoch },
        coordinator_epoch: marker.coordinator_epoch,
        outcome: if marker.transaction_result {
            TransactionOutcome::Commit
        } else {
            TransactionOutcome::Abort
        },
        version: TxnVersion(i16::from(marker.transaction_version)),
        client: context.client().into(),
    };
    let places = places(&marker).into_iter();
    join_all(places.map(|(topic, index)| write_one(context, topic, index, &mark))).await
}

async fn write_one(
    context: &Context,
    topic: Str,
    index: i32,
    mark: &Mark,
) -> (Str, i32, ErrorCode) {
    let written = context.node.transactions.mark(&topic, index, mark).await;
    (topic, index, written.map_or_else(|error| code_of(&error), |()| ErrorCode::None))
}

fn code_of(error: &MarkError) -> ErrorCode {
    match error {
        MarkError::UnknownPartition => ErrorCode::UnknownTopicOrPartition,
        MarkError::Append(error) => ErrorCode::from(error),
        // What a transaction coordinator understands of a group coordinator that is not ready.
        MarkError::Group(
            GroupError::CoordinatorNotAvailable
            | GroupError::CoordinatorLoadInProgress
            | GroupError::NotCoordinator,
        ) => ErrorCode::NotLeaderOrFollower,
        MarkError::Group(error) => ErrorCode::from(error),
    }
}
