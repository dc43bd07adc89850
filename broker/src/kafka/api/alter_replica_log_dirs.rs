//! AlterReplicaLogDirs: key 34, v1–v2. A replica stays in the one log directory that there is; any
//! other is refused.
//!
//! Leaves out: moving, for which there is nowhere to go. Source: KIP-113;
//! ReplicaManager.alterReplicaLogDirs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

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
    if Path::new(path) != context.node.partitions.shared().data_dir.path() {
        return ErrorCode::LogDirNotFound;
    }
    let image = context.node.controller.image();
    let topic = image.topic(topic).filter(|topic| topic.has_partition(index));
    if topic.is_some() { ErrorCode::None } else { ErrorCode::UnknownTopicOrPartition }
}
