//! A stop waits for the disk on behalf of many logs at once.

use std::path::Path;
use std::time::{Duration, Instant};

use duolog_log_core::log::AppendOrigin;
use duolog_log_core::record::TimestampType;
use duolog_log_core::replication::partition::Acks;
use duolog_log_core::storage::disk::{
    DirEntry, Disk, DiskFile, DiskLock, DiskResult, FileStat, MappedFile, OpenMode,
};
use parking_lot::{Condvar, Mutex};

use super::*;
use crate::controller::topics::{Door as TopicDoor, IfExists, NewTopic};
use crate::partitions::append::{Flush, Payload};

/// Syncs of folders that have to be under way at once.
const TOGETHER: usize = 8;
const LIMIT: Duration = Duration::from_secs(60);

/// Lets no sync of a topic's folder end before [`TOGETHER`] of them are under way.
#[derive(Debug, Default)]
struct MeetingDisk {
    disk: MemDisk,
    /// Those under way, and the most there were.
    under_way: Mutex<(usize, usize)>,
    more: Condvar,
}

impl Disk for MeetingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> DiskResult<Arc<dyn DiskFile>> {
        self.disk.open(path, mode)
    }

    fn map(&self, path: &Path) -> DiskResult<Arc<dyn MappedFile>> {
        self.disk.map(path)
    }

    fn stat(&self, path: &Path) -> DiskResult<FileStat> {
        self.disk.stat(path)
    }

    fn list(&self, dir: &Path) -> DiskResult<Vec<DirEntry>> {
        self.disk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> DiskResult<()> {
        self.disk.create_dir_all(dir)
    }

    fn remove(&self, path: &Path) -> DiskResult<()> {
        self.disk.remove(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> DiskResult<()> {
        self.disk.remove_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        if !dir.to_string_lossy().contains("/t-") {
            return self.disk.sync_dir(dir);
        }
        let deadline = Instant::now() + LIMIT;
        let mut under_way = self.under_way.lock();
        under_way.0 += 1;
        under_way.1 = under_way.1.max(under_way.0);
        self.more.notify_all();
        while under_way.1 < TOGETHER && !self.more.wait_until(&mut under_way, deadline).timed_out()
        {
        }
        under_way.0 -= 1;
        drop(under_way);
        self.disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>> {
        self.disk.lock(path)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_closes_many_logs_at_once() {
    let disk = Arc::new(MeetingDisk::default());
    let shared: Arc<dyn Disk> = disk.clone();
    let silent = Events::silent(NodeId(1));
    let node = Node::start(served::config(&[]), shared, silent).await.expect("it starts");
    let overrides = crate::config::topic::Overrides::default();
    let partitions = 2 * i32::try_from(TOGETHER).expect("few");
    let topic = NewTopic { name: TOPIC.into(), partitions, overrides, door: TopicDoor::Kafka };
    let topic = node.controller.create_topic(topic, IfExists::Refuse).await.expect("created");
    for partition in node.partitions.of_topic(topic.id).expect("its partitions").iter() {
        let payload = Payload::Batch {
            bytes: batch(&["kept"]),
            record_count: 1,
            timestamp_type: TimestampType::CreateTime,
            max_timestamp: 1,
            origin: AppendOrigin::Client,
        };
        let answer = partition.append(payload, 100, Acks::Leader, Flush::Topic).await;
        answer.expect("a place").await.expect("an answer").expect("in the log");
    }
    node.stop().await;
    assert!(disk.under_way.lock().1 >= TOGETHER);
}
