//! AddOffsetsToTxn: key 25, v0–v4. A group whose positions the transaction is about to commit: its
//! partition of `__consumer_offsets` becomes one of the transaction's.
//! Source: KIP-98; KafkaApis.handleAddOffsetsToTxnRequest.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use duolog_coordinator::record::transaction::{Partitions, ProducerIdAndEpoch, TxnVersion};
use duolog_coordinator::txn::kafka::event::AddPartitions;

use super::{Context, Handler};
use crate::controller::names;
use crate::kafka::codec::messages::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct AddOffsetsToTxn;

/// First version that knows PRODUCER_FENCED.
const FENCED_FROM: i16 = 2;

impl Handler for AddOffsetsToTxn {
    type Request = AddOffsetsToTxnRequest;
    type Response = AddOffsetsToTxnResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=4;

    async fn handle(context: &Context, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse {
        let partition = context.node.coordinators.partition_of(&request.group_id);
        let partitions =
            Partitions::from([(names::OFFSETS_TOPIC.into(), BTreeSet::from([partition]))]);
        let add = AddPartitions {
            id: request.transactional_id,
            producer: ProducerIdAndEpoch { id: request.producer_id, epoch: request.producer_epoch },
            partitions,
            version: TxnVersion::V1,
        };
        let code = match context.node.transactions.add_partitions(add).await {
            Ok(()) => ErrorCode::None,
            Err(error) => ErrorCode::from(&error).fenced_from(FENCED_FROM, context.version),
        };
        AddOffsetsToTxnResponse { error_code: code.code(), ..AddOffsetsToTxnResponse::default() }
    }
}
