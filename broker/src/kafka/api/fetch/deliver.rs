//! What happens to records that are about to leave for a consumer: counted, told, and held by gates.

use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::{LeaderEpoch, Offset};
use duolog_log_core::record::batch::record_count;

use super::Context;
use super::read::{Look, Source, Wanted, refused};
use crate::clock;
use crate::instruments::Passage;
use crate::kafka::codec::Records;
use crate::kafka::codec::messages::fetch_response::PartitionData;
use crate::kafka::errors::ErrorCode;

/// Passes `deliver.before` for each partition with records, counts what leaves and tells of it.
///
/// What a gate drops is left out of the answer, what it fails is answered as a failed disk.
pub(super) async fn deliver(context: &Context, wanted: &[Wanted<'_>], look: &mut Look) {
    let (mut records, mut bytes) = (0, 0);
    for (index, answer) in &mut look.answers {
        let Some(wanted) = wanted.get(*index) else { continue };
        if answer.records.as_ref().is_none_or(Records::is_empty) {
            continue;
        }
        if !context.node.instruments.gates.is_idle() {
            pass(context, wanted, answer).await;
        }
        let pieces = answer.records.as_ref().map(Records::pieces).unwrap_or_default();
        let count: u64 = pieces.iter().map(|piece| record_count(piece)).sum();
        if count > 0 {
            records += count;
            bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
            tell(context, wanted, count);
        }
    }
    if records > 0 {
        context.node.metrics.kafka_out.add(records, bytes);
    }
}

async fn pass(context: &Context, wanted: &Wanted<'_>, answer: &mut PartitionData) {
    let subject = GateSubject {
        topic: wanted.ask.name.as_deref(),
        partition: Some(wanted.ask.key.partition),
        offset: Some(Offset(wanted.ask.fetch_offset)),
        client: context.client_id.as_deref(),
    };
    match context.node.instruments.pass(GatePoint::DeliverBefore, subject).await {
        Passage::Go => {}
        Passage::Drop => answer.records = Some(Records::EMPTY),
        Passage::Fail => *answer = refused(wanted.ask, ErrorCode::KafkaStorageError),
    }
}

/// The offset is the one that was asked for; a first batch may begin before it.
fn tell(context: &Context, wanted: &Wanted<'_>, records: u64) {
    let Source::Partition(partition) = &wanted.source else { return };
    context.node.instruments.events.emit(|| {
        Event::new(EventKind::Deliver, clock::now_ms())
            .at(&partition.topic, partition.index)
            .offset(Offset(wanted.ask.fetch_offset))
            .epoch(LeaderEpoch(partition.offsets().leader_epoch))
            .protocol(Protocol::Kafka)
            .client(context.client())
            .cause(format!("{records} records"))
    });
}
