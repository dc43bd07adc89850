//! AlterReplicaLogDirs: key 34, v1–v2. A replica stays in its log directory; any other is refused.
//!
//! Leaves out: moving. Source: KIP-113; ReplicaManager.alterReplicaLogDirs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use crate::kafka::codec::messages::{AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct AlterReplicaLogDirs;

impl Handler for AlterReplicaLogDirs {
    type Request = AlterReplicaLogDirsRequest;
    type Response = AlterReplicaLogDirsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=2;

    async fn handle(
        context: &Context,
        request: AlterReplicaLogDirsRequest,
    ) -> AlterReplicaLogDirsResponse {
        let mut results: BTreeMap<Str, Vec<AlterReplicaLogDirPartitionResult>> = BTreeMap::new();
        for dir in request.dirs {
            for topic in dir.topics {
                let partitions = topic.partitions.iter().map(|index| {
                    let code = alter(context, &dir.path, &topic.name, *index);
                    AlterReplicaLogDirPartitionResult {
                        partition_index: *index,
                        error_code: code.code(),
                    }
                });
                results.entry(topic.name.clone()).or_default().extend(partitions);
            }
        }
        let result =
            |(topic_name, partitions)| AlterReplicaLogDirTopicResult { topic_name, partitions };
        AlterReplicaLogDirsResponse {
            results: results.into_iter().map(result).collect(),
            ..AlterReplicaLogDirsResponse::default()
        }
    }
}

fn alter(context: &Context, path: &str, topic: &str, index: i32) -> ErrorCode {
    let partitions = &context.node.partitions;
    let Some(dir) = partitions.shared().log_dirs.at(Path::new(path)) else {
        return ErrorCode::LogDirNotFound;
    };
    let image = context.node.controller.image();
    let topic = image.topic(topic);
    let Some(partition) = topic.and_then(|topic| partitions.find(topic.id, index)) else {
        return ErrorCode::UnknownTopicOrPartition;
    };
    if !dir.is_online() || partition.is_offline() {
        ErrorCode::KafkaStorageError
    } else if Arc::ptr_eq(&partition.log_dir(), dir) {
        ErrorCode::None
    } else {
        ErrorCode::LogDirNotFound
    }
}
