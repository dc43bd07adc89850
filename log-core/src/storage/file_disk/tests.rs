use std::io::IoSlice;

use super::*;

fn write(file: &Arc<dyn DiskFile>, position: u64, bytes: &[u8]) {
    file.write_at(position, &[IoSlice::new(bytes)]).unwrap();
}

#[test]
fn reads_what_was_written_in_pieces_and_stops_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(4, 2);
    let file = disk.open(&dir.path().join("a"), OpenMode::CreateEmpty).unwrap();
    let many: Vec<Vec<u8>> = (0..3000_u32).map(|i| i.to_be_bytes().to_vec()).collect();
    let pieces: Vec<IoSlice<'_>> = many.iter().map(|piece| IoSlice::new(piece)).collect();
    file.write_at(5, &pieces).unwrap();
    assert_eq!(file.len().unwrap(), 5 + 12_000);
    assert_eq!(file.read_at(0, 5).unwrap(), &[0; 5][..]);
    assert_eq!(file.read_at(5, 12_000).unwrap(), many.concat());
    assert_eq!(file.read_at(12_001, 100).unwrap(), &2999_u32.to_be_bytes()[..]);
    assert!(file.read_at(99_999, 10).unwrap().is_empty());
    file.truncate(6).unwrap();
    assert_eq!(file.read_at(0, 100).unwrap().len(), 6);
    file.sync().unwrap();
    disk.sync_dir(dir.path()).unwrap();
}

#[test]
fn more_handles_than_descriptors_all_keep_working() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(3, 2);
    let path = |i: usize| dir.path().join(format!("f{i}"));
    let files: Vec<_> =
        (0..20).map(|i| disk.open(&path(i), OpenMode::CreateEmpty).unwrap()).collect();
    for round in 0..3_u8 {
        for (i, file) in files.iter().enumerate() {
            write(file, u64::from(round), &[i as u8]);
        }
    }
    for (i, file) in files.iter().enumerate() {
        assert_eq!(file.read_at(0, 9).unwrap(), vec![i as u8; 3]);
    }
    assert!(disk.descriptors.len() <= 3, "{} descriptors stay open", disk.descriptors.len());
}

#[test]
fn a_renamed_file_is_read_on_after_its_descriptor_was_closed() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(1, 2);
    let file = disk.open(&dir.path().join("a"), OpenMode::CreateEmpty).unwrap();
    write(&file, 0, b"kept");
    file.rename(&dir.path().join("a.deleted")).unwrap();
    let _other = disk.open(&dir.path().join("b"), OpenMode::CreateEmpty).unwrap();
    let _another = disk.open(&dir.path().join("c"), OpenMode::CreateEmpty).unwrap();
    assert_eq!(file.read_at(0, 9).unwrap(), &b"kept"[..]);
    let names: Vec<_> = disk.list(dir.path()).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["a.deleted", "b", "c"]);
}

#[test]
fn a_second_lock_is_refused_until_the_first_goes() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(4, 2);
    let path = dir.path().join(".lock");
    let held = disk.lock(&path).unwrap();
    assert_eq!(disk.lock(&path).unwrap_err().kind, DiskErrorKind::Locked);
    drop(held);
    assert!(disk.lock(&path).is_ok());
}

#[test]
fn a_missing_file_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(4, 2);
    let path = dir.path().join("none");
    assert!(disk.open(&path, OpenMode::Existing).unwrap_err().is_not_found());
    assert!(disk.stat(&path).unwrap_err().is_not_found());
    assert!(disk.remove(&path).unwrap_err().is_not_found());
    assert!(disk.map(&path).unwrap_err().is_not_found());
}

#[test]
fn a_mapping_outlives_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(4, 2);
    let path = dir.path().join("i");
    write(&disk.open(&path, OpenMode::CreateIfMissing).unwrap(), 0, b"index");
    let content = disk.map(&path).unwrap().content().unwrap();
    disk.remove(&path).unwrap();
    assert_eq!(content, &b"index"[..]);
    disk.open(&path, OpenMode::CreateEmpty).unwrap();
    assert!(disk.map(&path).unwrap().content().unwrap().is_empty());
}

#[test]
fn a_mapped_file_that_is_cut_behind_our_back_is_read_as_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(4, 2);
    let path = dir.path().join("i");
    std::fs::write(&path, vec![7; 100_000]).unwrap();
    let mapped = disk.map(&path).unwrap();
    assert_eq!(mapped.content().unwrap().len(), 100_000);
    for len in [50_000, 10, 0] {
        std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        let content = mapped.content().unwrap();
        assert!(content.iter().all(|byte| *byte == 7));
        assert_eq!(content.len() as u64, len);
    }
}

#[test]
fn more_mapped_files_than_mappings_all_keep_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(4, 2);
    let maps: Vec<_> = (0..9_u8)
        .map(|i| {
            let path = dir.path().join(format!("m{i}"));
            write(&disk.open(&path, OpenMode::CreateEmpty).unwrap(), 0, &[i; 40]);
            disk.map(&path).unwrap()
        })
        .collect();
    for _ in 0..3 {
        for (i, map) in maps.iter().enumerate() {
            assert_eq!(map.content().unwrap(), vec![i as u8; 40]);
        }
    }
    assert!(disk.mappings.len() <= 2, "{} mappings stay", disk.mappings.len());
}

#[test]
fn files_that_rest_give_way_when_the_system_has_no_descriptor_left() {
    const EMFILE: i32 = 24;
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(100, 2);
    let path = |i: usize| dir.path().join(format!("f{i}"));
    let files: Vec<_> =
        (0..20).map(|i| disk.open(&path(i), OpenMode::CreateEmpty).unwrap()).collect();
    files.iter().for_each(|file| write(file, 0, b"kept"));
    let failures = std::cell::Cell::new(2);
    let opened = disk.descriptors.with_room(|| {
        let left = failures.replace(failures.get().max(1) - 1);
        if left == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(EMFILE)) }
    });
    assert!(opened.is_ok());
    assert!(disk.descriptors.len() < 10, "{} are still open", disk.descriptors.len());
    for file in &files {
        assert_eq!(file.read_at(0, 9).unwrap(), &b"kept"[..]);
    }
    // When nothing is left to close, the caller hears what to do about it.
    let refused = disk.descriptors.with_room(|| Err::<(), _>(io::Error::from_raw_os_error(EMFILE)));
    let refused = DiskError::new("open", &path(0), refused.unwrap_err());
    assert_eq!(refused.kind, DiskErrorKind::OutOfFiles);
    assert_eq!(disk.descriptors.len(), 0);
    write(&files[0], 0, b"still");
    assert_eq!(files[0].read_at(0, 9).unwrap(), &b"still"[..]);
}

#[test]
fn a_renamed_mapping_finds_its_file_again() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(8, 1);
    let path = |name: &str| dir.path().join(name);
    for (name, content) in [("a", "first"), ("other", "other")] {
        std::fs::write(path(name), content).unwrap();
    }
    let mapped = disk.map(&path("a")).unwrap();
    mapped.rename(&path("a.deleted")).unwrap();
    std::fs::write(path("a"), "second").unwrap();
    // Another mapping takes its place.
    let other = disk.map(&path("other")).unwrap();
    assert_eq!(other.content().unwrap(), "other");
    assert_eq!(mapped.content().unwrap(), "first");
}
