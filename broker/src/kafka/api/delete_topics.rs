//! DeleteTopics: key 20, v1–v6. Deletes topics by name or, from v6 on, by id.
//!
//! A topic is gone for every client when the answer comes; its folders go in the background.
//! Source: KIP-4, KIP-516; ControllerApis.deleteTopics.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::admin::{Decided, Refused, duplicates, fields};
use super::{Context, Handler};
use crate::controller::ControllerError;
use crate::controller::image::Image;
use crate::controller::names::is_coordinators;
use crate::kafka::codec::messages::delete_topics_request::DeleteTopicState;
use crate::kafka::codec::messages::delete_topics_response::DeletableTopicResult;
use crate::kafka::codec::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use crate::kafka::codec::{Str, Uuid};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DeleteTopics;

impl Handler for DeleteTopics {
    type Request = DeleteTopicsRequest;
    type Response = DeleteTopicsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=6;

    async fn handle(context: &Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
        let topics: Vec<_> = if context.version < 6 {
            let by_name = |name| DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO };
            request.topic_names.into_iter().map(by_name).collect()
        } else {
            request.topics
        };
        let of_all = check_enabled(context).and_then(|()| Refused::timed_out(request.timeout_ms));
        let responses = match of_all {
            Ok(()) => delete_all(context, &topics).await,
            Err(refused) => {
                topics.iter().map(|topic| result(topic, Err(refused.clone()))).collect()
            }
        };
        DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() }
    }
}

fn check_enabled(context: &Context) -> Decided {
    match context.version {
        _ if context.node.config.delete_topics => Ok(()),
        ..3 => Err(Refused::bare(ErrorCode::InvalidRequest)),
        _ => Err(Refused::bare(ErrorCode::TopicDeletionDisabled)),
    }
}

/// What is wrong with the request itself is told first, each name and id once.
async fn delete_all(context: &Context, topics: &[DeleteTopicState]) -> Vec<DeletableTopicResult> {
    let image = Arc::clone(&context.node.controller.image());
    let names = || topics.iter().filter(|topic| is_by_name(topic)).filter_map(|t| t.name.as_ref());
    let ids = || topics.iter().filter(|topic| is_by_id(topic)).map(|topic| &topic.topic_id);
    let names_twice = duplicates(names());
    let ids_twice = duplicates(ids());
    let ids: BTreeSet<Uuid> = ids().copied().collect();
    let mut results = refused_twice(&names_twice, &ids_twice);
    let mut named_too = BTreeSet::new();
    let mut wanted = Vec::new();
    for topic in topics {
        match (&topic.name, topic.topic_id) {
            (Some(name), Uuid::ZERO) if names_twice.contains(name) => {}
            (Some(name), Uuid::ZERO) => match by_name(&image, name, &ids) {
                Ok(found) => wanted.push(found),
                Err((id, refused)) => {
                    named_too.insert(id);
                    let topic = DeleteTopicState { name: Some(name.clone()), topic_id: id };
                    results.push(result(&topic, Err(refused)));
                }
            },
            (None, id) if id == Uuid::ZERO => results.push(result(
                topic,
                Err(Refused::invalid_request("Neither topic name nor id were specified.")),
            )),
            (None, id) if ids_twice.contains(&id) => {}
            (None, id) => match image.topic_by_id(id) {
                Some(found) => wanted.push((found.name.clone(), id)),
                None => results.push(result(topic, Err(ControllerError::UnknownTopicId.into()))),
            },
            (Some(_), _) => results.push(result(
                topic,
                Err(Refused::invalid_request("You may not specify both topic name and topic id.")),
            )),
        }
    }
    for (name, topic_id) in wanted.into_iter().filter(|(_, id)| !named_too.contains(id)) {
        let outcome = delete(context, &name, topic_id).await;
        results.push(result(&DeleteTopicState { name: Some(name), topic_id }, outcome));
    }
    results
}

fn is_by_name(topic: &DeleteTopicState) -> bool {
    topic.name.is_some() && topic.topic_id == Uuid::ZERO
}

fn is_by_id(topic: &DeleteTopicState) -> bool {
    topic.name.is_none() && topic.topic_id != Uuid::ZERO
}

fn refused_twice(names: &BTreeSet<&Str>, ids: &BTreeSet<&Uuid>) -> Vec<DeletableTopicResult> {
    let names = names.iter().map(|name| {
        let topic = DeleteTopicState { name: Some((*name).clone()), topic_id: Uuid::ZERO };
        result(&topic, Err(Refused::invalid_request("Duplicate topic name.")))
    });
    let ids = ids.iter().map(|id| {
        let topic = DeleteTopicState { name: None, topic_id: **id };
        result(&topic, Err(Refused::invalid_request("Duplicate topic id.")))
    });
    names.chain(ids).collect()
}

/// The topic of a name, or the id to answer with and why not.
fn by_name(
    image: &Image,
    name: &Str,
    ids: &BTreeSet<Uuid>,
) -> Result<(Str, Uuid), (Uuid, Refused)> {
    let unknown = || (Uuid::ZERO, ControllerError::UnknownTopic.into());
    let topic = image.topic(name).ok_or_else(unknown)?;
    if ids.contains(&topic.id) {
        let text = "The provided topic name maps to an ID that was already supplied.";
        return Err((topic.id, Refused::invalid_request(text)));
    }
    Ok((topic.name.clone(), topic.id))
}

async fn delete(context: &Context, name: &str, id: Uuid) -> Decided {
    if is_coordinators(name) {
        return Err(Refused::invalid_request(format!(
            "{name} holds the state of all groups of this node and cannot be deleted."
        )));
    }
    Ok(context.node.delete_topic(id).await?)
}

fn result(topic: &DeleteTopicState, outcome: Decided) -> DeletableTopicResult {
    let (error_code, error_message) = fields(&outcome);
    DeletableTopicResult {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        error_code,
        error_message,
    }
}
