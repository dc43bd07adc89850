//! AddPartitionsToTxn: key 24, v0–v5. Partitions of transactions: by a client for its one (v0–v3),
//! by brokers for many, to be added or only looked for (v4+, KIP-890).
//!
//! A partition that does not exist fails its whole transaction. Source: KIP-98, KIP-890;
//! KafkaApis.handleAddPartitionsToTxnRequest.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use duolog_coordinator::record::transaction::{Partitions, ProducerIdAndEpoch, TxnVersion};
use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_coordinator::txn::kafka::event::AddPartitions;

use super::{Context, Handler};
use crate::controller::names;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use crate::kafka::codec::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use crate::kafka::codec::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct AddPartitionsToTxn;

/// First version of brokers.
const MANY_FROM: i16 = 4;

/// First version that knows PRODUCER_FENCED.
const FENCED_FROM: i16 = 2;

/// What to do with the partitions of one transaction.
#[derive(Clone, Copy)]
enum Purpose {
    Add,
    Verify,
}

impl Handler for AddPartitionsToTxn {
    type Request = AddPartitionsToTxnRequest;
    type Response = AddPartitionsToTxnResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(
        context: &Context,
        request: AddPartitionsToTxnRequest,
    ) -> AddPartitionsToTxnResponse {
        if context.version < MANY_FROM {
            let producer = ProducerIdAndEpoch {
                id: request.v3_and_below_producer_id,
                epoch: request.v3_and_below_producer_epoch,
            };
            let id = request.v3_and_below_transactional_id;
            let topics = &request.v3_and_below_topics;
            let partitions = merged(topics);
            let asked = AddPartitions { id, producer, partitions, version: TxnVersion::V1 };
            return AddPartitionsToTxnResponse {
                results_by_topic_v3_and_below: one(context, asked, topics, Purpose::Add).await,
                ..AddPartitionsToTxnResponse::default()
            };
        }
        let mut results_by_transaction = Vec::with_capacity(request.transactions.len());
        for txn in request.transactions {
            let id = txn.transactional_id.clone();
            let producer = ProducerIdAndEpoch { id: txn.producer_id, epoch: txn.producer_epoch };
            let partitions = merged(&txn.topics);
            let asked = AddPartitions { id, producer, partitions, version: TxnVersion::V2 };
            let purpose = if txn.verify_only { Purpose::Verify } else { Purpose::Add };
            results_by_transaction.push(AddPartitionsToTxnResult {
                transactional_id: txn.transactional_id,
                topic_results: one(context, asked, &txn.topics, purpose).await,
            });
        }
        AddPartitionsToTxnResponse {
            results_by_transaction,
            ..AddPartitionsToTxnResponse::default()
        }
    }
}

/// What is named twice is in it once.
fn merged(topics: &[AddPartitionsToTxnTopic]) -> Partitions {
    let mut partitions = Partitions::new();
    for topic in topics.iter().filter(|topic| !topic.partitions.is_empty()) {
        let indexes: &mut BTreeSet<i32> = partitions.entry(topic.name.clone()).or_default();
        indexes.extend(&topic.partitions);
    }
    partitions
}

/// One transaction's partitions. What the coordinator was asked to add is answered as it was asked, all else as of a map.
async fn one(
    context: &Context,
    asked: AddPartitions,
    topics: &[AddPartitionsToTxnTopic],
    purpose: Purpose,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let image = context.node.controller.image().clone();
    let exists = |topic: &str, index: i32| {
        image.topic(topic).is_some_and(|topic| topic.has_partition(index))
    };
    let partitions = &asked.partitions;
    let has_all =
        |topic: &str, indexes: &BTreeSet<i32>| indexes.iter().all(|index| exists(topic, *index));
    // Only the node itself writes there: brokers ask so for positions, clients may not.
    let is_closed = |topic: &str| context.version < MANY_FROM && names::is_internal(topic);
    if partitions.iter().any(|(topic, indexes)| is_closed(topic) || !has_all(topic, indexes)) {
        return results(partitions, |topic, index| {
            if is_closed(topic) {
                ErrorCode::TopicAuthorizationFailed
            } else if exists(topic, index) {
                ErrorCode::OperationNotAttempted
            } else {
                ErrorCode::UnknownTopicOrPartition
            }
        });
    }
    let transactions = &context.node.transactions;
    let refused =
        |error: TxnError| ErrorCode::from(&error).fenced_from(FENCED_FROM, context.version);
    match purpose {
        Purpose::Add => {
            let added = transactions.add_partitions(asked).await;
            let code = added.map_or_else(refused, |()| ErrorCode::None);
            topics.iter().map(|of| result(&of.name, &of.partitions, |_| code)).collect()
        }
        Purpose::Verify => match transactions.verify_partitions(asked.clone()).await {
            Ok(found) => results(partitions, |topic, index| {
                let is_in = found.get(topic).is_some_and(|indexes| indexes.contains(&index));
                if is_in { ErrorCode::None } else { ErrorCode::TransactionAbortable }
            }),
            Err(error) => {
                let code = refused(error);
                results(partitions, |_, _| code)
            }
        },
    }
}

fn results(
    partitions: &Partitions,
    code: impl Fn(&str, i32) -> ErrorCode,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let topic =
        |(name, indexes): (&Str, &BTreeSet<i32>)| result(name, indexes, |index| code(name, index));
    partitions.iter().map(topic).collect()
}

fn result<'a>(
    name: &Str,
    indexes: impl IntoIterator<Item = &'a i32>,
    code: impl Fn(i32) -> ErrorCode,
) -> AddPartitionsToTxnTopicResult {
    let partition = |&partition_index: &i32| AddPartitionsToTxnPartitionResult {
        partition_index,
        partition_error_code: code(partition_index).code(),
    };
    let results_by_partition = indexes.into_iter().map(partition).collect();
    AddPartitionsToTxnTopicResult { name: name.clone(), results_by_partition }
}
