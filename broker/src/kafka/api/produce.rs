//! Produce: key 0, v3–v13. Validates each partition's batch, hands it to the partition's owner, and
//! answers when as many replicas have it as `acks` says.
//!
//! The batch stays in the request's own memory until it is written. Leaves out: `current_leader`
//! hints (there is one node). Source: KIP-98, KIP-110, KIP-467, KIP-516, KIP-890;
//! ReplicaManager.appendRecords.

mod instruments;
mod transactions;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use duolog_bridge::backend::PERM_WRITE;
use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::log::AppendOrigin;
use duolog_log_core::record::validate::{
    KeyRule, ProduceRules, TimestampRule, Validated, ZstdRule, check_structure, validate,
};
use duolog_log_core::record::{BatchHeader, Compression, Compressor, RecordError, recompress};
use duolog_log_core::replication::partition::Acks;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::transactions::Verdicts;
use super::{Api, Context, Refusal, Reply, Running};
use crate::clock;
use crate::config::topic::{TimestampType, TopicConfig};
use crate::controller::image::{Image, Topic};
use crate::instruments::Passage;
use crate::kafka::codec::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::kafka::codec::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use crate::kafka::codec::messages::{ProduceRequest, ProduceResponse};
use crate::kafka::codec::{ApiKey, Frame, Message, Str, encode_response};
use crate::kafka::errors::ErrorCode;
use crate::limits::DECOMPRESSED_BYTES_MAX;
use crate::partitions::Partition;
use crate::partitions::append::{AppendResult, Appended, Flush, Payload};

/// The row of the table.
pub(super) const API: Api = Api::new(ApiKey::Produce, 3..=13, run);

/// First version that may carry zstd (KIP-110).
const ZSTD_FROM: i16 = 7;

/// First version that names topics by id (KIP-516).
const TOPIC_ID_FROM: i16 = 13;

/// What became of one partition so far.
enum Outcome {
    /// Its owner has it; the answer comes through here.
    Begun(Begun),
    /// Refused before it got there.
    Refused(Refused),
}

/// An append under way.
struct Begun {
    partition: Arc<Partition>,
    answer: oneshot::Receiver<AppendResult>,
}

/// An error of one partition.
struct Refused {
    code: ErrorCode,
    message: Option<Str>,
    records: Vec<BatchIndexAndErrorMessage>,
    /// -1 unless the log itself was what refused.
    log_start_offset: i64,
}

/// A topic of the request with what became of its partitions.
struct BegunTopic {
    name: Str,
    topic_id: duolog_log_core::ids::TopicId,
    partitions: Vec<(i32, Outcome)>,
}

fn run(context: Context, body: Bytes) -> Running {
    Box::pin(async move {
        let request = ProduceRequest::from_client(&body, context.version)?;
        drop(body);
        match instruments::receive(&context, &request.topic_data).await {
            Passage::Go => {}
            Passage::Drop => return Ok(Reply::None),
            Passage::Fail => return Err(Refusal::UnansweredFailure("a gate".to_owned())),
        }
        let acks = parse_acks(request.acks);
        let deadline = Instant::now()
            + Duration::from_millis(u64::from(request.timeout_ms.max(0).unsigned_abs()));
        let mut verdicts = transactions::verify(&context, &request).await;
        let mut begun = Vec::with_capacity(request.topic_data.len());
        let is_any = |topic: &TopicProduceData| !topic.partition_data.is_empty();
        for topic in request.topic_data.into_iter().filter(is_any) {
            begun.push(begin_topic(&context, topic, acks, &mut verdicts).await);
        }
        Ok(Reply::Later(Box::pin(finish(context, begun, acks, deadline))))
    })
}

/// 0, 1 and -1 are all there is (case B06).
fn parse_acks(acks: i16) -> Option<Acks> {
    match acks {
        0 => Some(Acks::None),
        1 => Some(Acks::Leader),
        -1 => Some(Acks::All),
        _ => None,
    }
}

fn find_topic<'a>(
    context: &Context,
    image: &'a Image,
    data: &TopicProduceData,
) -> Result<&'a Topic, ErrorCode> {
    if context.version >= TOPIC_ID_FROM {
        image.topic_by_id(data.topic_id).map(|topic| &**topic).ok_or(ErrorCode::UnknownTopicId)
    } else {
        let found = image.topic(&data.name).map(|topic| &**topic);
        found.ok_or(ErrorCode::UnknownTopicOrPartition)
    }
}

async fn begin_topic(
    context: &Context,
    data: TopicProduceData,
    acks: Option<Acks>,
    verdicts: &mut Verdicts,
) -> BegunTopic {
    let image = context.node.controller.image().clone();
    let topic = find_topic(context, &image, &data);
    let mut partitions = Vec::with_capacity(data.partition_data.len());
    for partition in data.partition_data {
        let index = partition.index;
        let begun = match topic {
            Ok(topic) => begin(context, topic, partition, acks, verdicts).await,
            Err(code) => Err(code.into()),
        };
        partitions.push((index, begun.map_or_else(Outcome::Refused, Outcome::Begun)));
    }
    BegunTopic { name: data.name, topic_id: data.topic_id, partitions }
}

/// Gives one partition's batch its place behind all that came before it.
async fn begin(
    context: &Context,
    topic: &Topic,
    data: PartitionProduceData,
    acks: Option<Acks>,
    verdicts: &mut Verdicts,
) -> Result<Begun, Refused> {
    let partition = context
        .node
        .partitions
        .find(topic.id, data.index)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let records = data.records.map(|records| records.to_bytes()).unwrap_or_default();
    check_structure(&records, zstd_rule(context.version))
        .map_err(|error| Refused::records(&error))?;
    // Whoever may not write hears so before the batch is read.
    let in_transaction = BatchHeader::parse(&records)
        .is_ok_and(|header| header.is_transactional() && header.has_producer_id());
    let verified = if in_transaction { Some(verdicts.take(topic.id, data.index)?) } else { None };
    let acks = acks.ok_or(ErrorCode::InvalidRequiredAcks)?;
    check_topic(topic)?;
    context.node.instruments.events.emit(|| {
        let event = Event::new(EventKind::ProduceReceived, clock::now_ms());
        let event = event.at(&topic.name, data.index).protocol(Protocol::Kafka);
        event.client(context.client_id.clone().unwrap_or_default())
    });
    let validated = check(context, &records, rules(&topic.config, context.version)).await;
    let validated = validated.map_err(|refused| refused.by_log(&partition))?;
    let records = match topic.config.compression {
        Some(compression) if validated.header.compression() != Ok(compression) => {
            recompressed(context, topic, &records, compression).await?
        }
        _ => records,
    };
    let origin = if validated.header.is_transactional() {
        let unasked = || verdicts.take(topic.id, data.index);
        AppendOrigin::ClientInTransaction(verified.map_or_else(unasked, Ok)?)
    } else {
        AppendOrigin::Client
    };
    let bytes = records.len();
    let payload = payload(records, &validated, origin);
    let begun = partition.append(payload, bytes, acks, Flush::Topic).await;
    match begun {
        Ok(answer) => Ok(Begun { partition, answer }),
        Err(error) => Err(ErrorCode::from(&error).with(&error.to_string()).by_log(&partition)),
    }
}

fn check_topic(topic: &Topic) -> Result<(), Refused> {
    if topic.internal {
        let text = format!("Cannot append to internal topic {}", topic.name);
        return Err(ErrorCode::InvalidTopicException.with(&text));
    }
    if topic.config.rmq_perm & PERM_WRITE == 0 {
        let text = format!("rmq.perm={} of {} forbids writing", topic.config.rmq_perm, topic.name);
        return Err(ErrorCode::PolicyViolation.with(&text));
    }
    Ok(())
}

async fn check(
    context: &Context,
    records: &Bytes,
    rules: ProduceRules,
) -> Result<Validated, Refused> {
    let shared = records.clone();
    let validated = context.node.batches.read(records, move |decompressor, limit| {
        validate(&shared, &ProduceRules { decompressed_bytes_max: limit, ..rules }, decompressor)
    });
    validated.await.map_err(|error| Refused::records(&error))
}

fn rules(config: &TopicConfig, version: i16) -> ProduceRules {
    let now = clock::now_ms();
    ProduceRules {
        batch_bytes_max: usize::try_from(config.max_message_bytes).unwrap_or_default(),
        decompressed_bytes_max: DECOMPRESSED_BYTES_MAX,
        timestamps: match config.timestamp_type {
            TimestampType::CreateTime => TimestampRule::CreateTime {
                now,
                before_max_ms: config.timestamp_before_max_ms,
                after_max_ms: config.timestamp_after_max_ms,
            },
            TimestampType::LogAppendTime => TimestampRule::LogAppendTime { now },
        },
        keys: if config.cleanup.compact { KeyRule::Required } else { KeyRule::Optional },
        zstd: zstd_rule(version),
    }
}

fn zstd_rule(version: i16) -> ZstdRule {
    if version >= ZSTD_FROM { ZstdRule::Accepted } else { ZstdRule::Refused }
}

/// The batch with the topic's codec. Errors: it has grown too large.
async fn recompressed(
    context: &Context,
    topic: &Topic,
    records: &Bytes,
    compression: Compression,
) -> Result<Bytes, Refused> {
    let shared = records.clone();
    let stored = context.node.batches.read(records, move |decompressor, limit| {
        recompress(&shared, compression, limit, decompressor, &mut Compressor::new())
    });
    let stored = stored.await.map_err(|error| Refused::records(&error))?;
    let (size, maximum) = (stored.len(), topic.config.max_message_bytes);
    let maximum = usize::try_from(maximum).unwrap_or_default();
    if size > maximum {
        return Err(Refused::records(&RecordError::BatchTooLarge { size, maximum }));
    }
    Ok(stored.freeze())
}

/// The batch where it lies in the request when nobody else holds the request any more, else a copy.
fn payload(records: Bytes, validated: &Validated, origin: AppendOrigin) -> Payload {
    Payload::Batch {
        bytes: records.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&*shared)),
        record_count: validated.record_count,
        timestamp_type: validated.timestamp_type,
        max_timestamp: validated.max_timestamp,
        origin,
    }
}

/// Waits for every partition and builds the answer.
async fn finish(
    context: Context,
    begun: Vec<BegunTopic>,
    acks: Option<Acks>,
    deadline: Instant,
) -> Result<Option<Frame>, Refusal> {
    let mut responses = Vec::with_capacity(begun.len());
    let mut failure = None;
    for topic in begun {
        let mut partition_responses = Vec::with_capacity(topic.partitions.len());
        for (index, outcome) in topic.partitions {
            let response = match wait(outcome, acks, deadline).await {
                Ok(appended) => accepted(index, &appended),
                Err(refused) => {
                    failure.get_or_insert(refused.code);
                    refused.response(index)
                }
            };
            partition_responses.push(response);
        }
        responses.push(TopicProduceResponse {
            name: topic.name,
            topic_id: topic.topic_id,
            partition_responses,
        });
    }
    if acks == Some(Acks::None) {
        return match failure {
            Some(code) => Err(Refusal::UnansweredFailure(code.to_string())),
            None => Ok(None),
        };
    }
    if instruments::acknowledge(&context, &responses).await != Passage::Go {
        return Ok(None);
    }
    let response = ProduceResponse { responses, ..ProduceResponse::default() };
    Ok(Some(encode_response(context.correlation_id, context.version, &response)?))
}

async fn wait(
    outcome: Outcome,
    acks: Option<Acks>,
    deadline: Instant,
) -> Result<Appended, Refused> {
    let Begun { partition, mut answer } = match outcome {
        Outcome::Begun(begun) => begun,
        Outcome::Refused(refused) => return Err(refused),
    };
    let answer = match answer.try_recv() {
        Ok(answer) => Ok(answer),
        // Only acks=all waits for others, so only it can be late.
        Err(_) if acks == Some(Acks::All) => tokio::time::timeout_at(deadline, answer)
            .await
            .map_err(|_| ErrorCode::RequestTimedOut)?,
        Err(_) => answer.await,
    };
    match answer {
        Ok(Ok(appended)) => Ok(appended),
        Ok(Err(error)) => Err(ErrorCode::from(&error).with(&error.to_string()).by_log(&partition)),
        Err(_) => Err(ErrorCode::KafkaStorageError.with("the partition has stopped")),
    }
}

fn accepted(index: i32, appended: &Appended) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        base_offset: appended.base_offset,
        log_append_time_ms: appended.log_append_time_ms,
        log_start_offset: appended.log_start_offset,
        ..PartitionProduceResponse::default()
    }
}

impl Refused {
    /// A batch that does not pass, with the records that are to blame (KIP-467).
    fn records(error: &RecordError) -> Self {
        let records = match error {
            RecordError::RejectedRecords(rejected) => rejected
                .listed
                .iter()
                .map(|record| BatchIndexAndErrorMessage {
                    batch_index: record.index,
                    batch_index_error_message: Some(record.cause.to_string().into()),
                })
                .collect(),
            _ => Vec::new(),
        };
        Self { records, ..ErrorCode::from(error).with(&error.to_string()) }
    }

    /// With what the answer says of the log, except for the errors that are told before Kafka looks at
    /// it (ReplicaManager.appendToLocalLog).
    fn by_log(self, partition: &Partition) -> Self {
        let log_start_offset = match self.code {
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::MessageTooLarge
            | ErrorCode::RecordListTooLarge
            | ErrorCode::CorruptMessage
            | ErrorCode::KafkaStorageError => -1,
            _ => partition.offsets().log_start,
        };
        Self { log_start_offset, ..self }
    }

    fn response(self, index: i32) -> PartitionProduceResponse {
        PartitionProduceResponse {
            index,
            error_code: self.code.code(),
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: self.log_start_offset,
            record_errors: self.records,
            error_message: self.message,
            ..PartitionProduceResponse::default()
        }
    }
}

impl From<ErrorCode> for Refused {
    fn from(code: ErrorCode) -> Self {
        Self { code, message: None, records: Vec::new(), log_start_offset: -1 }
    }
}

impl ErrorCode {
    fn with(self, text: &str) -> Refused {
        Refused { message: Some(text.into()), ..self.into() }
    }
}
