//! TxnOffsetCommit: key 28, v0–v5. Positions of a group that count once the transaction commits.
//!
//! The transaction has to write to the group's partition of `__consumer_offsets`: from v5 on that is
//! added here (KIP-890), before by AddOffsetsToTxn. Source: KIP-98, KIP-447, KIP-890;
//! KafkaApis.handleTxnOffsetCommitRequest.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{
    CommitForm, OffsetCommit as Commit, PartitionCommit, TopicCommit, TxnOffsetCommit as TxnCommit,
    UnknownGroup,
};
use duolog_coordinator::record::transaction::{Partitions, ProducerIdAndEpoch, TxnVersion};
use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_coordinator::txn::kafka::event::AddPartitions;
use duolog_log_core::ids::TopicId;
use duolog_log_core::log::{TxnEpochs, Verification, Verified};
use duolog_log_core::record::batch::NO_SEQUENCE;

use super::{Context, Handler};
use crate::controller::image::Image;
use crate::controller::names;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::txn_offset_commit_request::TxnOffsetCommitRequestTopic;
use crate::kafka::codec::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use crate::kafka::codec::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct TxnOffsetCommit;

/// First version that knows that a coordinator may still be loading.
const LOADING_FROM: i16 = 2;

/// First version that knows TRANSACTION_ABORTABLE.
const ABORTABLE_FROM: i16 = 4;

/// First version of transactions v2.
const ADDS_FROM: i16 = 5;

impl Handler for TxnOffsetCommit {
    type Request = TxnOffsetCommitRequest;
    type Response = TxnOffsetCommitResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=5;

    async fn handle(context: &Context, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse {
        let image = context.node.controller.image().clone();
        let mut commits = Vec::with_capacity(request.topics.len());
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics.into_iter().filter(|topic| !topic.partitions.is_empty()) {
            let (commit, answer) = check(&image, topic);
            commits.extend(commit);
            topics.push(answer);
        }
        if commits.is_empty() {
            return TxnOffsetCommitResponse { topics, ..TxnOffsetCommitResponse::default() };
        }
        let producer =
            ProducerIdAndEpoch { id: request.producer_id, epoch: request.producer_epoch };
        let commit = Commit {
            group: request.group_id,
            member: request.member_id,
            instance: request.group_instance_id,
            generation: request.generation_id,
            retention_ms: None,
            form: CommitForm::MemberEpoch,
            unknown_group: UnknownGroup::IllegalGeneration,
            topics: commits,
        };
        let codes = match verified(context, &commit.group, request.transactional_id, producer).await
        {
            Ok(verified) => commit_all(context, TxnCommit { commit, producer, verified }).await,
            Err(code) => Err(code),
        };
        fill(&mut topics, context.version, codes);
        TxnOffsetCommitResponse { topics, ..TxnOffsetCommitResponse::default() }
    }
}

/// One code for each position, in the order asked.
async fn commit_all(context: &Context, txn: TxnCommit) -> Result<Vec<ErrorCode>, ErrorCode> {
    let committed = context.node.coordinators.commit_in_transaction(txn).await;
    let results = committed.map_err(ErrorCode::of)?.into_iter().flat_map(|topic| topic.partitions);
    let code = |error: &Option<_>| error.as_ref().map_or(ErrorCode::None, ErrorCode::from);
    Ok(results.map(|result| code(&result.error)).collect())
}

/// Sees to it that the group's partition is in the transaction.
async fn verified(
    context: &Context,
    group: &str,
    id: Str,
    producer: ProducerIdAndEpoch,
) -> Result<Verified, ErrorCode> {
    if group.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    let adds = context.version >= ADDS_FROM;
    if adds && !super::serves_transactions_v2(context) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let image = context.node.controller.image().clone();
    if !adds && !super::verifies_transactions(&image) {
        return Ok(Verified::Unasked);
    }
    let index = context.node.coordinators.partition_of(group);
    let topic = image.topic(names::OFFSETS_TOPIC).ok_or(ErrorCode::NotCoordinator)?;
    let partition =
        context.node.partitions.find(topic.id, index).ok_or(ErrorCode::NotCoordinator)?;
    let verification = Verification {
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        base_sequence: NO_SEQUENCE,
        epochs: if adds { TxnEpochs::Rise } else { TxnEpochs::Stay },
    };
    let mut verified = partition.verified(verification).await.map_err(ErrorCode::of)?;
    let partitions = Partitions::from([(topic.name.clone(), BTreeSet::from([index]))]);
    let asked = AddPartitions { id, producer, partitions, version: TxnVersion::V2 };
    while verified != Verified::Open {
        is_in(context, &asked).await?;
        let confirmed = partition.verified(verification).await.map_err(ErrorCode::of)?;
        if confirmed == verified {
            break;
        }
        // The marker of the last transaction took the guard away.
        verified = confirmed;
    }
    Ok(verified)
}

/// Asks the coordinator to have the partition in the transaction, or of older clients whether it is.
async fn is_in(context: &Context, asked: &AddPartitions) -> Result<(), ErrorCode> {
    let transactions = &context.node.transactions;
    let is_in = if context.version >= ADDS_FROM {
        transactions.add_patiently(asked).await.map(|()| true)
    } else {
        transactions.verify_partitions(asked.clone()).await.map(|found| !found.is_empty())
    };
    match is_in {
        Ok(true) => Ok(()),
        Ok(false) if context.version >= ABORTABLE_FROM => Err(ErrorCode::TransactionAbortable),
        Ok(false) => Err(ErrorCode::InvalidTxnState),
        Err(TxnError::ProducerFenced) => Err(ErrorCode::InvalidProducerEpoch),
        Err(error) => Err(ErrorCode::from(&error)),
    }
}

/// What of a topic goes to the coordinator; and its answer, in which the partitions that go there
/// have no error yet.
fn check(
    image: &Image,
    asked: TxnOffsetCommitRequestTopic,
) -> (Option<TopicCommit>, TxnOffsetCommitResponseTopic) {
    let found = image.topic(&asked.name);
    let mut commits = Vec::with_capacity(asked.partitions.len());
    let mut partitions = Vec::with_capacity(asked.partitions.len());
    for partition in asked.partitions {
        let partition_index = partition.partition_index;
        let is_there = found.is_some_and(|topic| topic.has_partition(partition_index));
        let code = if is_there { ErrorCode::None } else { ErrorCode::UnknownTopicOrPartition };
        partitions
            .push(TxnOffsetCommitResponsePartition { partition_index, error_code: code.code() });
        if is_there {
            commits.push(PartitionCommit {
                partition: partition_index,
                offset: partition.committed_offset,
                leader_epoch: partition.committed_leader_epoch,
                metadata: partition.committed_metadata,
            });
        }
    }
    let commit = found.filter(|_| !commits.is_empty()).map(|topic| TopicCommit {
        topic: topic.name.clone(),
        topic_id: TopicId::ZERO,
        partitions: commits,
    });
    (commit, TxnOffsetCommitResponseTopic { name: asked.name, partitions })
}

/// Gives each partition without an error the word for it; those come in the order asked.
fn fill(
    topics: &mut [TxnOffsetCommitResponseTopic],
    version: i16,
    codes: Result<Vec<ErrorCode>, ErrorCode>,
) {
    let known = |code| match code {
        ErrorCode::CoordinatorLoadInProgress if version < LOADING_FROM => {
            ErrorCode::CoordinatorNotAvailable
        }
        code => code,
    };
    let open = topics.iter_mut().flat_map(|topic| &mut topic.partitions);
    let open = open.filter(|partition| partition.error_code == ErrorCode::None.code());
    match codes {
        Ok(codes) => {
            for (partition, code) in open.zip(codes) {
                partition.error_code = known(code).code();
            }
        }
        Err(code) => open.for_each(|partition| partition.error_code = known(code).code()),
    }
}
