//! Gates and events of a Produce: one relaxed load each when nobody is there.

use std::sync::Arc;

use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::{LeaderEpoch, Offset, TopicId};

use super::{Context, PartitionProduceResponse, TopicProduceData, TopicProduceResponse};
use crate::clock;
use crate::instruments::Passage;

/// Passes `produce.recv` for each partition; the first gate that lets one not go decides for the request.
pub(super) async fn receive(context: &Context, topics: &[TopicProduceData]) -> Passage {
    if context.node.instruments.gates.is_idle() {
        return Passage::Go;
    }
    for topic in topics {
        let name = stored_name(context, &topic.name, topic.topic_id);
        for partition in &topic.partition_data {
            let place = (name.as_deref(), partition.index);
            let passage = pass(context, GatePoint::ProduceReceived, place, None).await;
            if passage != Passage::Go {
                return passage;
            }
        }
    }
    Passage::Go
}

/// Passes `produce.ack.before` for each partition, as [`receive`] does, and tells of each answer.
pub(super) async fn acknowledge(context: &Context, topics: &[TopicProduceResponse]) -> Passage {
    let instruments = &context.node.instruments;
    if instruments.gates.is_idle() && !instruments.events.is_listening() {
        return Passage::Go;
    }
    for topic in topics {
        let name = stored_name(context, &topic.name, topic.topic_id);
        for partition in &topic.partition_responses {
            let place = (name.as_deref(), partition.index);
            let offset = Some(partition.base_offset).filter(|offset| *offset >= 0);
            let passage = pass(context, GatePoint::ProduceAckBefore, place, offset).await;
            if passage != Passage::Go {
                return passage;
            }
        }
    }
    for topic in topics {
        let name = stored_name(context, &topic.name, topic.topic_id);
        for partition in &topic.partition_responses {
            instruments.events.emit(|| acknowledged(context, name.as_ref(), partition));
        }
    }
    Passage::Go
}

/// An answer: with the offset of its first record, or the reason why there is none.
fn acknowledged(
    context: &Context,
    topic: Option<&Arc<str>>,
    partition: &PartitionProduceResponse,
) -> Event {
    let mut event = Event::new(EventKind::ProduceAcknowledged, clock::now_ms())
        .protocol(Protocol::Kafka)
        .client(context.client());
    event.topic = topic.cloned();
    event.partition = Some(partition.index);
    if partition.error_code == 0 {
        let epoch = LeaderEpoch(context.node.leader_epoch());
        return event.offset(Offset(partition.base_offset)).epoch(epoch);
    }
    let code = partition.error_code;
    match &partition.error_message {
        Some(text) => event.cause(format!("error {code}: {text}")),
        None => event.cause(format!("error {code}")),
    }
}

async fn pass(
    context: &Context,
    point: GatePoint,
    (topic, partition): (Option<&str>, i32),
    offset: Option<i64>,
) -> Passage {
    let subject = GateSubject {
        topic,
        partition: Some(partition),
        offset: offset.map(Offset),
        client: context.client_id.as_deref(),
    };
    context.node.instruments.pass(point, subject).await
}

/// The name under which a topic of the request is stored: newer versions give only its id.
fn stored_name(context: &Context, name: &str, id: TopicId) -> Option<Arc<str>> {
    let image = context.node.controller.image();
    let topic = if name.is_empty() { image.topic_by_id(id) } else { image.topic(name) };
    topic.map(|topic| topic.name.clone())
}
