//! The texts below come from a data directory of Kafka 4.3.1 (topic `golden` with two partitions,
//! records deleted below offset 5000, producer perf test, controlled shutdown).

use super::*;
use crate::ids::NodeId;
use crate::testing::mem_disk::{Crash, MemDisk};

fn dir() -> (MemDisk, &'static Path) {
    let disk = MemDisk::new();
    disk.create_dir_all(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    (disk, Path::new("/data"))
}

#[test]
fn offset_checkpoints_equal_kafkas() {
    let (disk, dir) = dir();
    let path = dir.join(LOG_START_FILE);
    disk.overwrite(&path, b"0\n1\ngolden 0 5000\n");
    let offsets = read_offsets(&disk, dir, LOG_START_FILE).unwrap();
    assert_eq!(offsets, Offsets::from([(TopicPartition::new("golden", 0), 5000)]));
    disk.remove(&path).unwrap();
    write_offsets(&disk, dir, LOG_START_FILE, &offsets).unwrap();
    assert_eq!(disk.content(&path).unwrap(), b"0\n1\ngolden 0 5000\n");

    let many = Offsets::from([
        (TopicPartition::new("golden", 1), 15146),
        (TopicPartition::new("a.b-c", 0), 0),
        (TopicPartition::new("golden", 0), 15193),
    ]);
    write_offsets(&disk, dir, RECOVERY_POINT_FILE, &many).unwrap();
    assert_eq!(
        disk.content(&dir.join(RECOVERY_POINT_FILE)).unwrap(),
        b"0\n3\na.b-c 0 0\ngolden 0 15193\ngolden 1 15146\n"
    );
    assert_eq!(read_offsets(&disk, dir, RECOVERY_POINT_FILE).unwrap(), many);
}

#[test]
fn leader_epochs_equal_kafkas() {
    let (disk, dir) = dir();
    let path = dir.join(LEADER_EPOCH_FILE);
    disk.overwrite(&path, b"0\n1\n0 5000\n");
    let epochs = read_leader_epochs(&disk, dir).unwrap().unwrap();
    assert_eq!(epochs.latest().unwrap().start_offset, Offset(5000));
    write_leader_epochs(&disk, dir, &epochs, Durability::Synced).unwrap();
    assert_eq!(disk.content(&path).unwrap(), b"0\n1\n0 5000\n");
}

#[test]
fn partition_metadata_equals_kafkas() {
    let (disk, dir) = dir();
    let path = dir.join(PARTITION_METADATA_FILE);
    disk.overwrite(&path, b"version: 0\ntopic_id: Qy2ElJJAR4-UJvZTZh-Cdg");
    let topic_id = read_topic_id(&disk, dir).unwrap().unwrap();
    write_topic_id(&disk, dir, topic_id, Durability::Synced).unwrap();
    assert_eq!(disk.content(&path).unwrap(), b"version: 0\ntopic_id: Qy2ElJJAR4-UJvZTZh-Cdg");
}

#[test]
fn meta_properties_equal_kafkas() {
    let golden: &[u8] = b"#\n#Sun Nov 29 16:53:00 UTC 2026\nnode.id=1\n\
        directory.id=82PNt6pHec78bzwLEYzrMQ\nversion=1\ncluster.id=duologpeersAAAAAAAAAAA\n";
    let (disk, dir) = dir();
    let path = dir.join("meta.properties");
    disk.overwrite(&path, golden);
    let properties = MetaProperties::read(&disk, dir).unwrap().unwrap();
    assert_eq!(properties.node_id, NodeId(1));
    assert_eq!(properties.cluster_id, "duologpeersAAAAAAAAAAA");
    properties.write(&disk, dir, "Sun Nov 29 16:53:00 UTC 2026").unwrap();
    assert_eq!(disk.content(&path).unwrap(), golden);
}

#[test]
fn clean_shutdown_marker_equals_kafkas_and_is_taken_once() {
    let (disk, dir) = dir();
    assert_eq!(CleanShutdown::take(&disk, dir).unwrap(), None);
    CleanShutdown { broker_epoch: 12 }.write(&disk, dir).unwrap();
    assert_eq!(
        disk.content(&dir.join(".kafka_cleanshutdown")).unwrap(),
        b"{\"version\":0,\"brokerEpoch\":12}"
    );
    let disk = disk.crash(Crash::ForgetUnsynced);
    assert_eq!(CleanShutdown::take(&disk, dir).unwrap().unwrap().broker_epoch, 12);
    let disk = disk.crash(Crash::ForgetUnsynced);
    assert_eq!(CleanShutdown::take(&disk, dir).unwrap(), None);
}

#[test]
fn malformed_checkpoints_are_refused_or_count_as_torn() {
    let (disk, dir) = dir();
    for (text, entries) in [
        (&b""[..], Some(0)),
        (b"0\n0\n", Some(0)),
        (b"0\n2\na 0 1\n", None),
        (b"0\n1\na 0 1", None),
        (b"0\n1\na 0 1\n\n", None),
        (b"0\n1\na 0 1\nb 0 1\n", None),
        (b"1\n1\na 0 1\n", None),
        (b"0\n1\na 0\n", None),
        (b"0\n1\na 0 x\n", None),
        (b"0\n99999999999999999999\n", None),
        (b"0\n18446744073709551615\na 0 1\n", None),
        (b"\0\0\0\0", None),
        (b"0", None),
    ] {
        disk.overwrite(&dir.join(REPLICATION_FILE), text);
        let read = read_offsets(&disk, dir, REPLICATION_FILE).ok().map(|offsets| offsets.len());
        assert_eq!(read, entries, "{:?}", String::from_utf8_lossy(text));
        disk.overwrite(&dir.join(LEADER_EPOCH_FILE), text);
        let epochs = read_leader_epochs(&disk, dir).unwrap();
        assert_eq!(epochs.is_some(), text == b"0\n0\n");
        disk.overwrite(&dir.join(PARTITION_METADATA_FILE), text);
        assert_eq!(read_topic_id(&disk, dir).unwrap(), None);
        disk.overwrite(&dir.join("meta.properties"), text);
        assert!(MetaProperties::read(&disk, dir).is_err());
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_old_content_or_the_new() {
    let old = Offsets::from([(TopicPartition::new("t", 0), 1)]);
    let new = Offsets::from([(TopicPartition::new("t", 0), 2)]);
    for step in 0..8 {
        for seed in 0..32 {
            let (disk, dir) = dir();
            write_offsets(&disk, dir, REPLICATION_FILE, &old).unwrap();
            disk.fail_operation(disk.operations() + step, crate::testing::mem_disk::Fault::Halt);
            let written = write_offsets(&disk, dir, REPLICATION_FILE, &new).is_ok();
            let disk = disk.crash(Crash::Seeded(seed));
            let found = read_offsets(&disk, dir, REPLICATION_FILE).unwrap();
            assert!(found == new || (!written && found == old), "step {step} seed {seed}");
        }
    }
}

#[test]
fn a_full_disk_leaves_the_old_content_and_no_leftover() {
    let (disk, dir) = dir();
    let old = Offsets::from([(TopicPartition::new("t", 0), 1)]);
    write_offsets(&disk, dir, REPLICATION_FILE, &old).unwrap();
    disk.set_capacity(Some(disk.used_bytes() + 3));
    assert!(write_offsets(&disk, dir, REPLICATION_FILE, &old).is_err());
    assert_eq!(read_offsets(&disk, dir, REPLICATION_FILE).unwrap(), old);
    assert_eq!(disk.list(dir).unwrap().len(), 1);
}
