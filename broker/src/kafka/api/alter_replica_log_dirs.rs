//! AlterReplicaLogDirs: key 34, v1–v2. Has replicas moved to other log directories of this node.
//!
//! The answer says that a move is begun; DescribeLogDirs says how far it is. A replica that was never
//! written moves too. While a directory is offline no move is begun. Leaves out: throttles. Source: KIP-113;
//! ReplicaManager.alterReplicaLogDirs.

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
use crate::partitions::movement;

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
        // Of a replica that is named twice the last directory counts.
        let mut wanted: BTreeMap<(Str, i32), Str> = BTreeMap::new();
        for dir in request.dirs {
            for topic in dir.topics {
                let replicas = topic.partitions.iter().map(|index| (topic.name.clone(), *index));
                wanted.extend(replicas.map(|replica| (replica, dir.path.clone())));
            }
        }
        let mut results: BTreeMap<Str, Vec<AlterReplicaLogDirPartitionResult>> = BTreeMap::new();
        for ((topic, partition_index), path) in wanted {
            let error_code = alter(context, &path, &topic, partition_index).await.code();
            let result = AlterReplicaLogDirPartitionResult { partition_index, error_code };
            results.entry(topic).or_default().push(result);
        }
        let result =
            |(topic_name, partitions)| AlterReplicaLogDirTopicResult { topic_name, partitions };
        AlterReplicaLogDirsResponse {
            results: results.into_iter().map(result).collect(),
            ..AlterReplicaLogDirsResponse::default()
        }
    }
}

async fn alter(context: &Context, path: &str, topic: &str, index: i32) -> ErrorCode {
    let partitions = &context.node.partitions;
    let dirs = &partitions.shared().log_dirs;
    let Some(dir) = dirs.at(Path::new(path)) else { return ErrorCode::LogDirNotFound };
    if !dir.is_online() {
        return ErrorCode::KafkaStorageError;
    }
    let id = context.node.controller.image().topic(topic).map(|topic| topic.id);
    let Some(partition) = id.and_then(|id| partitions.find(id, index)) else {
        return ErrorCode::UnknownTopicOrPartition;
    };
    let is_elsewhere = !Arc::ptr_eq(&partition.log_dir(), dir);
    if partition.is_offline() || (is_elsewhere && dirs.has_offline()) {
        return ErrorCode::KafkaStorageError;
    }
    match movement::begin(&context.node, &partition, dir).await {
        Ok(()) => ErrorCode::None,
        Err(error) => ErrorCode::from(&error),
    }
}
