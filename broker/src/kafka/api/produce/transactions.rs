//! Whether the transactional batches of a request may be written: their transactions are open in
//! the partitions already, or the coordinator is asked (KIP-890). For a client of transactions v2
//! (v12+) that adds the partitions to its transaction; older ones have to have added them.
//!
//! Source: AddPartitionsToTxnManager, ReplicaManager.handleProduceAppend.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_coordinator::record::transaction::TxnVersion;
use duolog_coordinator::record::transaction::{Partitions as PartitionSet, ProducerIdAndEpoch};
use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_coordinator::txn::kafka::event::AddPartitions;
use duolog_log_core::ids::TopicId;
use duolog_log_core::log::{TxnEpochs, Verification, Verified};
use duolog_log_core::record::BatchHeader;

use super::super::{serves_transactions_v2, verifies_transactions};
use super::{Context, Refused, check_topic, find_topic};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::ProduceRequest;
use crate::kafka::errors::ErrorCode;
use crate::partitions::Partition;
use crate::partitions::append::AppendError;

/// First version of transactions v2.
pub(super) const ADDS_FROM: i16 = 12;

/// First version that knows TRANSACTION_ABORTABLE.
const ABORTABLE_FROM: i16 = 11;

/// What may be taken for granted of each transactional batch, by topic and partition.
#[derive(Default)]
pub(super) struct Verdicts(BTreeMap<(TopicId, i32), Result<Verified, Refused>>);

impl Verdicts {
    /// Errors: the request has no transactional id; the coordinator refused.
    pub(super) fn take(&mut self, topic: TopicId, index: i32) -> Result<Verified, Refused> {
        let unasked = || Err(ErrorCode::TransactionalIdAuthorizationFailed.into());
        self.0.remove(&(topic, index)).unwrap_or_else(unasked)
    }
}

/// A transactional batch of the request.
struct Candidate {
    partition: Arc<Partition>,
    producer: ProducerIdAndEpoch,
    base_sequence: i32,
}

/// A partition in which a transaction is to begin.
struct Beginning {
    partition: Arc<Partition>,
    verification: Verification,
    guard: Verified,
}

impl Beginning {
    /// After the coordinator's yes: what it is good for.
    async fn confirmed(mut self) -> Result<Confirmed, AppendError> {
        match self.partition.verified(self.verification).await? {
            guard @ Verified::Guard(_) if guard != self.guard => {
                self.guard = guard;
                Ok(Confirmed::Again(self))
            }
            verified => Ok(Confirmed::Verified(verified)),
        }
    }
}

enum Confirmed {
    Verified(Verified),
    /// The marker of the last transaction came after the guard was given and took it away.
    Again(Beginning),
}

/// Looks at all batches of the request, and asks the coordinator once about those that begin a
/// transaction in their partition.
pub(super) async fn verify(context: &Context, request: &ProduceRequest) -> Verdicts {
    let Some(id) = &request.transactional_id else { return Verdicts::default() };
    let candidates = candidates(context, request);
    let mut verdicts = Verdicts::default();
    let Some(producer) = candidates.first().map(|candidate| candidate.producer) else {
        return verdicts;
    };
    if candidates.iter().any(|candidate| candidate.producer != producer) {
        for Candidate { partition, .. } in candidates {
            let text = "Transactional records contained more than one producer ID";
            let refused = ErrorCode::InvalidProducerIdMapping.with(text);
            verdicts.0.insert((partition.topic_id, partition.index), Err(refused));
        }
        return verdicts;
    }
    if context.version >= ADDS_FROM && !serves_transactions_v2(context) {
        for Candidate { partition, .. } in candidates {
            let place = (partition.topic_id, partition.index);
            verdicts.0.insert(place, Err(ErrorCode::UnsupportedVersion.into()));
        }
        return verdicts;
    }
    if context.version < ADDS_FROM && !verifies_transactions(&context.node.controller.image()) {
        let unasked = |candidate: Candidate| {
            ((candidate.partition.topic_id, candidate.partition.index), Ok(Verified::Unasked))
        };
        verdicts.0.extend(candidates.into_iter().map(unasked));
        return verdicts;
    }
    let mut beginning = Vec::new();
    for Candidate { partition, producer, base_sequence } in candidates {
        let place = (partition.topic_id, partition.index);
        let verification = Verification {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence,
            epochs: if context.version >= ADDS_FROM { TxnEpochs::Rise } else { TxnEpochs::Stay },
        };
        match partition.verified(verification).await {
            Ok(guard @ Verified::Guard(_)) => {
                beginning.push(Beginning { partition, verification, guard });
            }
            Ok(verified) => _ = verdicts.0.insert(place, Ok(verified)),
            Err(error) => {
                let refused = ErrorCode::from(&error).with(&error.to_string());
                verdicts.0.insert(place, Err(refused));
            }
        }
    }
    while !beginning.is_empty() {
        beginning = ask(context, id.clone(), producer, beginning, &mut verdicts).await;
    }
    verdicts
}

/// Batches that are refused for other reasons are left out: they are not to change anything.
fn candidates(context: &Context, request: &ProduceRequest) -> Vec<Candidate> {
    let image = context.node.controller.image().clone();
    let mut candidates = Vec::new();
    for data in &request.topic_data {
        let Ok(topic) = find_topic(context, &image, data) else { continue };
        if check_topic(topic).is_err() {
            continue;
        }
        for data in &data.partition_data {
            let Some(partition) = context.node.partitions.find(topic.id, data.index) else {
                continue;
            };
            let Some(records) = &data.records else { continue };
            let Ok(header) = BatchHeader::parse(&records.to_bytes()) else { continue };
            if header.is_transactional() && header.has_producer_id() {
                candidates.push(Candidate {
                    partition,
                    producer: ProducerIdAndEpoch {
                        id: header.producer_id.0,
                        epoch: header.producer_epoch.0,
                    },
                    base_sequence: header.base_sequence,
                });
            }
        }
    }
    candidates
}

/// Asks the coordinator, and returns what it has to be asked about again.
async fn ask(
    context: &Context,
    id: Str,
    producer: ProducerIdAndEpoch,
    beginning: Vec<Beginning>,
    verdicts: &mut Verdicts,
) -> Vec<Beginning> {
    let mut partitions = PartitionSet::new();
    for Beginning { partition, .. } in &beginning {
        let indexes: &mut BTreeSet<i32> = partitions.entry(partition.topic.clone()).or_default();
        indexes.insert(partition.index);
    }
    let asked = AddPartitions { id, producer, partitions, version: TxnVersion::V2 };
    let answer = if context.version >= ADDS_FROM {
        let added = context.node.transactions.add_patiently(&asked).await;
        added.map(|()| asked.partitions)
    } else {
        context.node.transactions.verify_partitions(asked).await
    };
    let mut again = Vec::new();
    for beginning in beginning {
        let partition = &beginning.partition;
        let place = (partition.topic_id, partition.index);
        let is_in = |found: &PartitionSet| {
            found.get(&partition.topic).is_some_and(|indexes| indexes.contains(&partition.index))
        };
        let verdict = match &answer {
            Ok(found) if is_in(found) => match beginning.confirmed().await {
                Ok(Confirmed::Verified(verified)) => Ok(verified),
                Ok(Confirmed::Again(beginning)) => {
                    again.push(beginning);
                    continue;
                }
                Err(error) => Err(ErrorCode::from(&error).with(&error.to_string())),
            },
            Ok(_) => Err(not_in_transaction(context.version)),
            Err(error) => Err(refused(context.version, *error)),
        };
        verdicts.0.insert(place, verdict);
    }
    again
}

fn not_in_transaction(version: i16) -> Refused {
    if version >= ABORTABLE_FROM {
        return ErrorCode::TransactionAbortable.into();
    }
    ErrorCode::InvalidTxnState.with("Partition was not added to the transaction")
}

/// The coordinator's refusal in codes that producers know how to take.
fn refused(version: i16, error: TxnError) -> Refused {
    let is_for_later = match error {
        TxnError::CoordinatorLoadInProgress
        | TxnError::CoordinatorNotAvailable
        | TxnError::NotCoordinator => true,
        TxnError::ConcurrentTransactions => version < ADDS_FROM,
        _ => false,
    };
    let code = ErrorCode::from(&error);
    if is_for_later {
        // Older clients try again at this one without asking for metadata first.
        let text = format!(
            "Unable to verify the partition has been added to the transaction. Underlying error: \
             {code}"
        );
        return ErrorCode::NotEnoughReplicas.with(&text);
    }
    match error {
        TxnError::ProducerFenced => ErrorCode::InvalidProducerEpoch.into(),
        _ => code.into(),
    }
}
