//! Fetch: key 1, v4–v18. Whole batches from each partition, waiting for data where there is none.
//!
//! Reads whatever is there; while that is less than `min_bytes`, waits until so much has come, there is
//! something else to tell, or `max_wait_ms` is over. From version 7 on a client may have a session
//! and is then told only what has changed ([`crate::kafka::fetch_sessions`]). Leaves out:
//! followers, racks. Source: KIP-74, KIP-98, KIP-207, KIP-227, KIP-320, KIP-516;
//! KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages.

mod coming;
mod deliver;
mod read;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use self::read::{Bounds, Isolation, Look, Source, Wanted};
use super::{Context, Handler};
use crate::clock;
use crate::controller::image::Image;
use crate::kafka::codec::messages::fetch_request::{FetchTopic, ForgottenTopic};
use crate::kafka::codec::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use crate::kafka::codec::messages::{FetchRequest, FetchResponse};
use crate::kafka::codec::{Str, Uuid};
use crate::kafka::errors::ErrorCode;
use crate::kafka::fetch_sessions::{
    Ask, Begun, Naming, PartitionKey, SessionError, SessionRequest, TopicKey,
};
use crate::partitions::Partition;

/// The API.
pub(super) struct Fetch;

/// First version that names topics by id (KIP-516).
const TOPIC_ID_FROM: i16 = 13;

/// First version that names the replica in its state (KIP-903).
const REPLICA_STATE_FROM: i16 = 15;

impl Handler for Fetch {
    type Request = FetchRequest;
    type Response = FetchResponse;
    const VERSIONS: RangeInclusive<i16> = 4..=18;

    async fn handle(context: &Context, mut request: FetchRequest) -> FetchResponse {
        if context.version >= REPLICA_STATE_FROM {
            request.replica_id = request.replica_state.replica_id;
        }
        let bounds = bounds(context, &request);
        let begun = match begin(context, &mut request) {
            Ok(begun) => begun,
            Err(error) => return refused(0, error),
        };
        let wanted = find(context, &request, &begun).await;
        let mut look = read::look_until_enough(&context.node, &bounds, &wanted).await;
        deliver::deliver(context, &wanted, &mut look).await;
        drop(wanted);
        respond(context, begun, look)
    }
}

fn bounds(context: &Context, request: &FetchRequest) -> Bounds {
    let max_bytes = request.max_bytes.min(context.node.config.fetch_max_bytes).max(0);
    Bounds {
        max_wait_ms: u64::try_from(request.max_wait_ms).unwrap_or_default(),
        // More than may be answered is never there.
        min_bytes: request.min_bytes.min(max_bytes),
        max_bytes,
        isolation: match request.isolation_level {
            1 => Isolation::ReadCommitted,
            _ => Isolation::ReadUncommitted,
        },
    }
}

/// Finds the request's session, or begins without one.
fn begin(context: &Context, request: &mut FetchRequest) -> Result<Begun, SessionError> {
    let naming = if context.version >= TOPIC_ID_FROM { Naming::Ids } else { Naming::Names };
    let image = context.node.controller.image();
    let asks = asks(naming, &image, std::mem::take(&mut request.topics));
    let forgotten = forgotten(naming, std::mem::take(&mut request.forgotten_topics_data));
    let session = SessionRequest { id: request.session_id, epoch: request.session_epoch, naming };
    let name_of = |topic: &TopicKey| name_of(&image, topic);
    let sessions = &context.node.fetch_sessions;
    sessions.begin(session, asks, &forgotten, name_of, clock::tick_ms())
}

fn key(naming: Naming, name: &Str, id: Uuid) -> TopicKey {
    match naming {
        Naming::Names => TopicKey::Name(name.clone()),
        Naming::Ids => TopicKey::Id(id),
    }
}

fn name_of(image: &Image, topic: &TopicKey) -> Option<Str> {
    match topic {
        TopicKey::Name(name) => Some(name.clone()),
        TopicKey::Id(id) => image.topic_by_id(*id).map(|topic| topic.name.clone()),
    }
}

/// Everything that is asked, each partition once: as it is asked last, where it stands first.
fn asks(naming: Naming, image: &Image, topics: Vec<FetchTopic>) -> Vec<Ask> {
    let mut asks: Vec<Ask> = Vec::with_capacity(topics.iter().map(|t| t.partitions.len()).sum());
    let mut places = HashMap::with_capacity(asks.capacity());
    for topic in topics {
        let named = key(naming, &topic.topic, topic.topic_id);
        let name = name_of(image, &named);
        for fetch in topic.partitions {
            let key = PartitionKey { topic: named.clone(), partition: fetch.partition };
            let ask = Ask {
                key: key.clone(),
                name: name.clone(),
                fetch_offset: fetch.fetch_offset,
                max_bytes: fetch.partition_max_bytes,
                leader_epoch: fetch.current_leader_epoch,
                last_fetched_epoch: fetch.last_fetched_epoch,
            };
            let place = *places.entry(key).or_insert(asks.len());
            match asks.get_mut(place) {
                Some(held) => *held = ask,
                None => asks.push(ask),
            }
        }
    }
    asks
}

fn forgotten(naming: Naming, topics: Vec<ForgottenTopic>) -> Vec<PartitionKey> {
    let mut keys = Vec::new();
    for topic in topics {
        let named = key(naming, &topic.topic, topic.topic_id);
        let partitions = topic.partitions.into_iter();
        keys.extend(partitions.map(|partition| PartitionKey { topic: named.clone(), partition }));
    }
    keys
}

/// Finds the partitions and opens their logs.
async fn find<'a>(context: &Context, request: &FetchRequest, begun: &'a Begun) -> Vec<Wanted<'a>> {
    let mut wanted = Vec::with_capacity(begun.asks.len());
    let mut last: Option<(&TopicKey, Result<Topic, Source>)> = None;
    for (ask, told) in &begun.asks {
        let topic = match last.take().filter(|(key, _)| **key == ask.key.topic) {
            Some((_, topic)) => topic,
            None => resolve(context, ask),
        };
        let source = match &topic {
            Ok(topic) => topic.source(ask).await,
            Err(source) => source.clone(),
        };
        last = Some((&ask.key.topic, topic));
        let source = if request.replica_id >= 0 { source.not_led() } else { source };
        wanted.push(Wanted { ask, told: *told, source });
    }
    wanted
}

/// A topic of the name that is asked for.
struct Topic {
    partitions: Arc<[Arc<Partition>]>,
    /// Whether it took the place of the one that is meant.
    is_another: bool,
}

fn resolve(context: &Context, ask: &Ask) -> Result<Topic, Source> {
    let name = ask.name.as_ref().ok_or(Source::Unknown(ErrorCode::UnknownTopicId))?;
    let id = context.node.controller.image().topic(name).map(|topic| topic.id);
    let partitions = id.and_then(|id| context.node.partitions.of_topic(id));
    let partitions = partitions.ok_or(Source::Unknown(ErrorCode::UnknownTopicOrPartition))?;
    let is_another = match ask.key.topic {
        TopicKey::Id(wanted) => id != Some(wanted),
        TopicKey::Name(_) => false,
    };
    Ok(Topic { partitions, is_another })
}

impl Topic {
    /// Opens the log that is asked for.
    async fn source(&self, ask: &Ask) -> Source {
        let index = usize::try_from(ask.key.partition).ok();
        let Some(partition) = index.and_then(|index| self.partitions.get(index)) else {
            return Source::Unknown(ErrorCode::UnknownTopicOrPartition);
        };
        if self.is_another {
            return Source::Failed(ErrorCode::InconsistentTopicId);
        }
        if let Err(error) = partition.reader().await {
            return Source::Failed(ErrorCode::from(&error));
        }
        match check_epoch(partition, ask.leader_epoch) {
            Ok(()) => Source::Partition(partition.clone()),
            Err(code) => Source::Failed(code),
        }
    }
}

/// A client that has missed, or is ahead of, a change of leader looks for the leader again
/// (KIP-320); -1 asks for no check.
pub(super) fn check_epoch(partition: &Partition, given: i32) -> Result<(), ErrorCode> {
    let current = partition.offsets().leader_epoch;
    match given {
        -1 => Ok(()),
        given if given < current => Err(ErrorCode::FencedLeaderEpoch),
        given if given > current => Err(ErrorCode::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

/// Tells the session what is answered, and answers.
fn respond(context: &Context, begun: Begun, look: Look) -> FetchResponse {
    let noted: Vec<_> =
        look.answers.iter().map(|(index, data)| (*index, read::answered(data))).collect();
    let responses = topics(&begun, look.answers);
    match context.node.fetch_sessions.finish(begun, &noted, clock::tick_ms()) {
        Ok(session_id) => FetchResponse { session_id, responses, ..FetchResponse::default() },
        Err((session_id, error)) => refused(session_id, error),
    }
}

fn refused(session_id: i32, error: SessionError) -> FetchResponse {
    let error_code = ErrorCode::from(error).code();
    FetchResponse { error_code, session_id, ..FetchResponse::default() }
}

/// The answers, partitions of a topic that follow each other together (`FetchResponse.toMessage`).
fn topics(begun: &Begun, answers: Vec<(usize, PartitionData)>) -> Vec<FetchableTopicResponse> {
    let mut topics: Vec<FetchableTopicResponse> = Vec::new();
    let mut last = None;
    for (index, data) in answers {
        let Some((ask, _)) = begun.asks.get(index) else { continue };
        match topics.last_mut() {
            Some(topic) if last == Some(&ask.key.topic) => topic.partitions.push(data),
            _ => {
                let mut topic = FetchableTopicResponse::default();
                match &ask.key.topic {
                    TopicKey::Name(name) => topic.topic = name.clone(),
                    TopicKey::Id(id) => topic.topic_id = *id,
                }
                topic.partitions.push(data);
                topics.push(topic);
                last = Some(&ask.key.topic);
            }
        }
    }
    topics
}
