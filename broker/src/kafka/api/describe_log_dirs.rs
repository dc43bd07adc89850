//! DescribeLogDirs: key 35, v1–v5. The log directories of this node, and what each partition takes.
//!
//! Partitions that were never written take nothing, and are listed. A copy that is to take a partition's
//! place is listed where it is, with what it lacks. Of a directory that is offline nothing is known. Source: KIP-113, KIP-827, KIP-1066;
//! ReplicaManager.describeLogDirs.

use std::collections::{BTreeMap, BTreeSet};
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
use crate::log_dirs::LogDir;
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
        let dirs = context.node.partitions.shared().log_dirs.all().to_vec();
        let measured = tokio::task::spawn_blocking(move || {
            dirs.iter().map(|dir| described(dir, &wanted)).collect()
        });
        match measured.await {
            Ok(results) => {
                DescribeLogDirsResponse { results, ..DescribeLogDirsResponse::default() }
            }
            Err(error) => {
                tracing::error!(%error, "cannot look into the log directories");
                let error_code = ErrorCode::KafkaStorageError.code();
                DescribeLogDirsResponse { error_code, ..DescribeLogDirsResponse::default() }
            }
        }
    }
}

fn described(dir: &Arc<LogDir>, wanted: &Wanted) -> DescribeLogDirsResult {
    let log_dir: Str = dir.path().display().to_string().into();
    if !dir.is_online() {
        let error_code = ErrorCode::KafkaStorageError.code();
        return DescribeLogDirsResult { error_code, log_dir, ..DescribeLogDirsResult::default() };
    }
    let space = system::disk_space(dir.path());
    let bytes = |bytes: Option<u64>| bytes.map_or(-1, |b| i64::try_from(b).unwrap_or(i64::MAX));
    DescribeLogDirsResult {
        log_dir,
        topics: wanted.iter().filter_map(|topic| measured(dir, topic)).collect(),
        total_bytes: bytes(space.map(|space| space.total)),
        usable_bytes: bytes(space.map(|space| space.usable)),
        ..DescribeLogDirsResult::default()
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
    let mut indexes: BTreeMap<&Str, BTreeSet<i32>> = BTreeMap::new();
    for asked in topics {
        indexes.entry(&asked.topic).or_default().extend(&asked.partitions);
    }
    let found = indexes.into_iter().filter_map(|(name, indexes)| {
        let topic = image.topic(name)?;
        let of_topic = indexes.into_iter().filter_map(|index| partitions.find(topic.id, index));
        Some((name.clone(), of_topic.collect::<Vec<_>>()))
    });
    found.filter(|(_, partitions)| !partitions.is_empty()).collect()
}

/// What partitions of a topic take of a directory, if one is there. Looks into the folders of logs that
/// are not open.
fn measured(
    dir: &Arc<LogDir>,
    (name, partitions): &(Str, Vec<Arc<Partition>>),
) -> Option<DescribeLogDirsTopic> {
    let here = partitions.iter().filter(|partition| Arc::ptr_eq(&partition.log_dir(), dir));
    let present = here.map(|partition| DescribeLogDirsPartition {
        partition_index: partition.index,
        partition_size: i64::try_from(partition.bytes_on_disk()).unwrap_or(i64::MAX),
        offset_lag: 0,
        is_future_key: false,
    });
    let future = partitions.iter().filter_map(|partition| future(dir, partition));
    let partitions: Vec<_> = present.chain(future).collect();
    let name = name.clone();
    (!partitions.is_empty()).then_some(DescribeLogDirsTopic { name, partitions })
}

/// The copy of a partition on its way to a directory.
fn future(dir: &Arc<LogDir>, partition: &Arc<Partition>) -> Option<DescribeLogDirsPartition> {
    let movement = partition.movement().filter(|movement| Arc::ptr_eq(movement.target(), dir))?;
    // By the time that it is listed as present it is no future one any more.
    if Arc::ptr_eq(&partition.log_dir(), dir) {
        return None;
    }
    let progress = movement.progress();
    Some(DescribeLogDirsPartition {
        partition_index: partition.index,
        partition_size: i64::try_from(progress.bytes()).unwrap_or(i64::MAX),
        offset_lag: partition.offsets().log_end.saturating_sub(progress.end_offset()).max(0),
        is_future_key: true,
    })
}
