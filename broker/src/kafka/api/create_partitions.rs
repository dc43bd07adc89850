//! CreatePartitions: key 37, v0–v3. Gives topics more partitions, never fewer.
//!
//! Every partition has one replica, on this node. Leaves out: quotas. Source: KIP-195;
//! ReplicationControlManager.createPartitions.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::admin::{Decided, Refused, check_assignment, duplicates, fields};
use super::{Context, Handler};
use crate::controller::names::is_coordinators;
use crate::controller::topics::check_more_partitions;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use crate::kafka::codec::messages::create_partitions_response::CreatePartitionsTopicResult;
use crate::kafka::codec::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct CreatePartitions;

impl Handler for CreatePartitions {
    type Request = CreatePartitionsRequest;
    type Response = CreatePartitionsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=3;

    async fn handle(
        context: &Context,
        request: CreatePartitionsRequest,
    ) -> CreatePartitionsResponse {
        let twice = duplicates(request.topics.iter().map(|topic| &*topic.name));
        let in_time = Refused::timed_out(request.timeout_ms);
        let mut results: Vec<_> = twice
            .iter()
            .map(|name| {
                result(&Str::from(*name), Err(Refused::invalid_request("Duplicate topic name.")))
            })
            .collect();
        for topic in request.topics.iter().filter(|topic| !twice.contains(&*topic.name)) {
            let outcome = match &in_time {
                Ok(()) => grow(context, topic, request.validate_only).await,
                Err(refused) => Err(refused.clone()),
            };
            results.push(result(&topic.name, outcome));
        }
        CreatePartitionsResponse { results, ..CreatePartitionsResponse::default() }
    }
}

async fn grow(context: &Context, wanted: &CreatePartitionsTopic, validate_only: bool) -> Decided {
    let image = Arc::clone(&context.node.controller.image());
    let unknown = || Refused::bare(ErrorCode::UnknownTopicOrPartition);
    let topic = image.topic(&wanted.name).ok_or_else(unknown)?;
    check_more_partitions(topic, wanted.count)?;
    if is_coordinators(&topic.name) {
        return Err(Refused::invalid_request(format!(
            "The partitions of {} belong to groups by their number; it cannot change.",
            topic.name
        )));
    }
    let more = i64::from(wanted.count) - i64::from(topic.partition_count());
    if let Some(assignments) = &wanted.assignments {
        check_assignments(context, assignments, more)?;
    }
    if validate_only {
        return Ok(());
    }
    Ok(context.node.controller.create_partitions(topic.id, wanted.count).await?)
}

fn check_assignments(
    context: &Context,
    assignments: &[CreatePartitionsAssignment],
    more: i64,
) -> Decided {
    if i64::try_from(assignments.len()) != Ok(more) {
        return Err(Refused::new(
            ErrorCode::InvalidReplicaAssignment,
            format!(
                "Attempted to add {more} additional partition(s), but only {} assignment(s) were \
                 specified.",
                assignments.len()
            ),
        ));
    }
    let mut each = assignments.iter();
    each.try_for_each(|each| check_assignment(&[context.node.id()], &each.broker_ids, Some(1)))
}

fn result(name: &Str, outcome: Decided) -> CreatePartitionsTopicResult {
    let (error_code, error_message) = fields(&outcome);
    CreatePartitionsTopicResult { name: name.clone(), error_code, error_message }
}
