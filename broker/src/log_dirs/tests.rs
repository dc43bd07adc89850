use duolog_log_core::storage::checkpoint::{Durability, write};
use duolog_log_core::testing::mem_disk::MemDisk;

use super::*;

const CLUSTER: TopicId = TopicId([1; 16]);

fn open(disk: &MemDisk, paths: &[&str]) -> Result<LogDirs, DataDirError> {
    let directories = (2..).map(|id| TopicId([id; 16])).take(paths.len()).collect();
    open_with(disk, paths, &FreshIds { cluster: CLUSTER, directories })
}

fn open_with(disk: &MemDisk, paths: &[&str], fresh: &FreshIds) -> Result<LogDirs, DataDirError> {
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    LogDirs::open(Arc::new(disk.clone()), &paths, 1, fresh)
}

/// Puts a file where a directory should be.
fn block(disk: &MemDisk, path: &str) {
    let path = Path::new(path);
    disk.create_dir_all(path.parent().expect("a folder")).expect("created");
    write(disk, path, b"", Durability::Synced).expect("written");
}

#[test]
fn each_directory_has_its_own_id_and_all_have_one_cluster() {
    let disk = MemDisk::new();
    let dirs = open(&disk, &["/a", "/b"]).expect("new");
    let ids: Vec<_> = dirs.all().iter().map(|dir| dir.id()).collect();
    assert_eq!(ids, [TopicId([2; 16]), TopicId([3; 16])]);
    drop(dirs);
    // A third one joins, and the order is another one.
    let directories = vec![TopicId([9; 16]); 3];
    let fresh = FreshIds { cluster: TopicId([8; 16]), directories };
    let dirs = open_with(&disk, &["/c", "/b", "/a"], &fresh).expect("ours");
    assert_eq!(dirs.cluster_id(), CLUSTER);
    let ids: Vec<_> = dirs.all().iter().map(|dir| dir.id().0[0]).collect();
    assert_eq!(ids, [9, 3, 2]);
}

#[test]
fn the_metadata_log_stays_where_it_is_and_is_never_begun_anew() {
    let disk = MemDisk::new();
    assert_eq!(open(&disk, &["/a", "/b"]).expect("new").metadata().path(), Path::new("/a"));
    disk.create_dir_all(Path::new("/b/__duolog_metadata-0")).expect("created");
    let dirs = open(&disk, &["/a", "/b"]).expect("ours");
    assert_eq!(dirs.metadata().path(), Path::new("/b"));
    drop(dirs);
    // Where it may be in a directory that cannot be read, no other takes its place.
    block(&disk, "/x/off");
    let refused = open(&disk, &["/a", "/x/off"]).expect_err("it may be there");
    assert!(matches!(refused, DataDirError::WithoutMetadataLog { .. }), "{refused}");
    let dirs = open(&disk, &["/x/off", "/b"]).expect("it is here");
    let online: Vec<_> = dirs.online().map(|dir| dir.path()).collect();
    assert_eq!(online, [Path::new("/b")]);
    assert!(matches!(open(&disk, &["/x/off"]), Err(DataDirError::Disk(_))));
    drop(dirs);
    disk.create_dir_all(Path::new("/a/__duolog_metadata-0")).expect("created");
    let refused = open(&disk, &["/a", "/b"]).expect_err("two of them");
    assert!(matches!(refused, DataDirError::TwoMetadataLogs { .. }), "{refused}");
}

#[test]
fn directories_that_do_not_belong_together_are_refused() {
    let disk = MemDisk::new();
    drop(open(&disk, &["/a"]).expect("new"));
    let directories = vec![TopicId([3; 16])];
    let other = FreshIds { cluster: TopicId([8; 16]), directories };
    drop(open_with(&disk, &["/b"], &other).expect("new"));
    let refused = open(&disk, &["/a", "/b"]).expect_err("two clusters");
    assert!(matches!(refused, DataDirError::TwoClusters { .. }), "{refused}");
    let meta = disk.content(Path::new("/a/meta.properties")).expect("written");
    disk.create_dir_all(Path::new("/copy")).expect("created");
    write(&disk, Path::new("/copy/meta.properties"), &meta, Durability::Synced).expect("copied");
    let refused = open(&disk, &["/a", "/copy"]).expect_err("a copy");
    assert!(matches!(refused, DataDirError::SameId { .. }), "{refused}");
    let held = open(&disk, &["/a"]).expect("ours");
    assert!(matches!(open(&disk, &["/c", "/a"]), Err(DataDirError::Locked(_))));
    drop(held);
}

#[test]
fn new_partitions_go_where_the_fewest_are() {
    let disk = MemDisk::new();
    let dirs = open(&disk, &["/a", "/b", "/c"]).expect("new");
    let places =
        |count| -> Vec<u8> { dirs.with_fewest(count).into_iter().map(|id| id.0[0]).collect() };
    assert_eq!(places(4), [2, 3, 4, 2]);
    for _ in 0..3 {
        dirs.all()[0].partition_came();
    }
    dirs.all()[2].partition_came();
    assert_eq!(places(4), [3, 3, 4, 3]);
    dirs.all()[0].partition_went();
    assert_eq!(dirs.all()[0].partition_count(), 2);
}
