use duolog_log_core::storage::checkpoint::{Durability, write};
use duolog_log_core::testing::mem_disk::{Crash, MemDisk};

use super::*;

const CLUSTER: TopicId = TopicId([1; 16]);
const DIRECTORY: TopicId = TopicId([2; 16]);

fn open(disk: &Arc<dyn Disk>, node_id: i32) -> Result<DataDir, DataDirError> {
    DataDir::open(disk.clone(), Path::new("/data"), node_id, CLUSTER, DIRECTORY)
}

fn put(disk: &Arc<dyn Disk>, name: &str, content: &str) {
    disk.create_dir_all(Path::new("/data")).expect("created");
    let path = Path::new("/data").join(name);
    write(&**disk, &path, content.as_bytes(), Durability::Synced).expect("written");
}

#[test]
fn the_cluster_id_stays_and_the_clean_marker_counts_once() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let dir = open(&disk, 1).expect("new");
    assert_eq!((dir.cluster_id(), dir.shutdown()), (CLUSTER, Shutdown::Unclean));
    dir.mark_clean().expect("written");
    drop(dir);
    let again = DataDir::open(disk.clone(), Path::new("/data"), 1, TopicId::ZERO, TopicId::ZERO);
    let again = again.expect("ours");
    assert_eq!((again.cluster_id(), again.shutdown()), (CLUSTER, Shutdown::Clean));
    drop(again);
    assert_eq!(open(&disk, 1).expect("ours").shutdown(), Shutdown::Unclean);
}

#[test]
fn a_new_directory_is_there_after_a_power_cut() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let path = Path::new("/var/lib/duolog");
    DataDir::open(shared, path, 1, CLUSTER, DIRECTORY).expect("new");
    let after: Arc<dyn Disk> = Arc::new(disk.crash(Crash::ForgetUnsynced));
    let again = DataDir::open(after, path, 1, TopicId::ZERO, TopicId::ZERO).expect("ours");
    assert_eq!(again.cluster_id(), CLUSTER);
}

#[test]
fn a_directory_in_use_is_refused() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let held = open(&disk, 1).expect("new");
    assert!(matches!(open(&disk, 1), Err(DataDirError::Locked(_))));
    drop(held);
    open(&disk, 1).expect("free again");
}

#[test]
fn foreign_and_unreadable_data_is_refused() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    put(&disk, "photo.jpg", "");
    assert!(
        matches!(open(&disk, 1), Err(DataDirError::Foreign { found, .. }) if found == "photo.jpg")
    );
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    open(&disk, 1).expect("new");
    let text = open(&disk, 2).expect_err("another node's").to_string();
    assert!(text.contains("node.id 1") && text.contains("set node.id=1"), "{text}");
    for content in
        ["", "version=2\n", "version=1\nnode.id=1\n", "version=1\nnode.id=1\ncluster.id=x\n"]
    {
        put(&disk, META, content);
        assert!(matches!(open(&disk, 1), Err(DataDirError::Unreadable { .. })), "{content:?}");
    }
}

#[test]
fn a_kafka_brokers_directory_is_refused() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    open(&disk, 1).expect("new");
    disk.create_dir_all(Path::new("/data/__cluster_metadata-0")).expect("created");
    assert!(matches!(open(&disk, 1), Err(DataDirError::Kafkas { .. })));
}

#[test]
fn a_directory_of_ours_without_its_meta_properties_is_told_what_it_lacks() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    put(&disk, ".lock", "");
    disk.create_dir_all(Path::new("/data/__consumer_offsets-0")).expect("created");
    disk.create_dir_all(Path::new("/data/__duolog_metadata-0")).expect("created");
    let text = open(&disk, 3).expect_err("it is not a new one").to_string();
    assert!(text.contains("put that file back") && text.contains("node.id=3"), "{text}");
}
