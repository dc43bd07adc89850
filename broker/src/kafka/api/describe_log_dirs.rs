//! DescribeLogDirs: key 35, v1–v5. The log directory of this node, and what each partition takes of it.
//!
//! Partitions that were never written take nothing, and are listed. Leaves out: replicas on their way
//! to another directory, since there is one. Source: KIP-113, KIP-827, KIP-1066;
//! ReplicaManager.describeLogDirs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_log_dirs_request::DescribableLogDirTopic;
use crate::kafka::codec::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use crate::kafka::codec::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use crate::kafka::errors::ErrorCode;
use crate::partitions::Partition;
use crate::system;

/// The API.
pub(super) struct DescribeLogDirs;

impl Handler for DescribeLogDirs {
    type Request = DescribeLogDirsRequest;
    type Response = DescribeLogDirsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=5;

    async fn handle(context: &Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse {
        let wanted = wanted(context, request.topics.as_deref());
        let dir = context.node.partitions.shared().data_dir.path().to_owned();
        let measured = tokio::task::spawn_blocking(move || {
            let space = system::disk_space(&dir);
            let topics: Vec<_> = wanted.into_iter().map(measured).collect();
            let log_dir: Str = dir.display().to_string().into();
            let unknown =
                |bytes: Option<u64>| bytes.map_or(-1, |b| i64::try_from(b).unwrap_or(i64::MAX));
            DescribeLogDirsResult {
                log_dir,
                topics,
                total_bytes: unknown(space.map(|space| space.total)),
                usable_bytes: unknown(space.map(|space| space.usable)),
                ..DescribeLogDirsResult::default()
            }
        });
        match measured.await {
            Ok(result) => DescribeLogDirsResponse {
                results: vec![result],
                ..DescribeLogDirsResponse::default()
            },
            Err(error) => {
                tracing::error!(%error, "cannot look into the log directory");
                let error_code = ErrorCode::KafkaStorageError.code();
                DescribeLogDirsResponse { error_code, ..DescribeLogDirsResponse::default() }
            }
        }
    }
}

type Wanted = Vec<(Str, Vec<Arc<Partition>>)>;

/// The partitions asked for that there are; all without a list.
fn wanted(context: &Context, topics: Option<&[DescribableLogDirTopic]>) -> Wanted {
    let image = context.node.controller.image();
    let partitions = &context.node.partitions;
    let Some(topics) = topics else {
        let all = image.topics_sorted().into_iter();
        return all
            .filter_map(|topic| {
                let found = partitions.of_topic(topic.id)?;
                Some((topic.name.clone(), found.to_vec()))
            })
            .collect();
    };
    let mut found: BTreeMap<Str, Vec<Arc<Partition>>> = BTreeMap::new();
    for asked in topics {
        let Some(topic) = image.topic(&asked.topic) else { continue };
        let of_topic =
            asked.partitions.iter().filter_map(|index| partitions.find(topic.id, *index));
        found.entry(asked.topic.clone()).or_default().extend(of_topic);
    }
    found.into_iter().filter(|(_, partitions)| !partitions.is_empty()).collect()
}

/// Looks into the folders of logs that are not open.
fn measured((name, partitions): (Str, Vec<Arc<Partition>>)) -> DescribeLogDirsTopic {
    let partition = |partition: &Arc<Partition>| DescribeLogDirsPartition {
        partition_index: partition.index,
        partition_size: i64::try_from(partition.bytes_on_disk()).unwrap_or(i64::MAX),
        offset_lag: 0,
        is_future_key: false,
    };
    DescribeLogDirsTopic { name, partitions: partitions.iter().map(partition).collect() }
}
