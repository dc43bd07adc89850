use super::*;

fn disk_with(names: &[&str]) -> MemDisk {
    let disk = MemDisk::new();
    disk.create_dir_all(Path::new("/d")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    for name in names {
        let file = disk.open(&at(name), OpenMode::CreateEmpty).unwrap();
        file.write_at(0, &[IoSlice::new(b"synced")]).unwrap();
        file.sync().unwrap();
    }
    disk.sync_dir(Path::new("/d")).unwrap();
    disk
}

fn at(name: &str) -> PathBuf {
    Path::new("/d").join(name)
}

fn names(disk: &MemDisk) -> Vec<String> {
    disk.list(Path::new("/d")).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_crash_forgets_contents_and_names_that_were_not_synced() {
    let disk = disk_with(&["a", "b", "c"]);
    let file = disk.open(&at("a"), OpenMode::Existing).unwrap();
    file.write_at(6, &[IoSlice::new(b" and lost")]).unwrap();
    disk.rename(&at("b"), &at("b2")).unwrap();
    disk.remove(&at("c")).unwrap();
    disk.open(&at("d"), OpenMode::CreateEmpty).unwrap().sync().unwrap();
    assert_eq!(names(&disk), ["a", "b2", "d"]);

    let next = disk.crash(Crash::ForgetUnsynced);
    assert_eq!(names(&next), ["a", "b", "c"]);
    assert_eq!(next.content(&at("a")).unwrap(), b"synced");
    assert!(file.read_at(0, 1).is_err(), "a handle to the stopped machine fails");
}

#[test]
fn a_kill_keeps_all() {
    let disk = disk_with(&["a"]);
    disk.open(&at("a"), OpenMode::Existing).unwrap().truncate(2).unwrap();
    disk.rename(&at("a"), &at("b")).unwrap();
    let next = disk.kill();
    assert_eq!(next.content(&at("b")).unwrap(), b"sy");
}

#[test]
fn a_seeded_crash_is_repeatable_and_varies() {
    let outcomes: Vec<_> = (0..64)
        .map(|seed| {
            let disk = disk_with(&["a"]);
            let file = disk.open(&at("a"), OpenMode::Existing).unwrap();
            file.write_at(6, &[IoSlice::new(b"12345")]).unwrap();
            file.write_at(11, &[IoSlice::new(b"67890")]).unwrap();
            let first = disk.crash(Crash::Seeded(seed)).content(&at("a")).unwrap();
            assert_eq!(first, disk.crash(Crash::Seeded(seed)).content(&at("a")).unwrap());
            assert!(first.starts_with(b"synced"));
            first
        })
        .collect();
    let lost_before_kept = [&b"synced"[..], &[0; 5], b"67890"].concat();
    assert!(outcomes.contains(&b"synced1234567890".to_vec()));
    assert!(outcomes.contains(&b"synced".to_vec()));
    assert!(outcomes.contains(&lost_before_kept));
}

#[test]
fn a_full_disk_takes_what_fits_and_recovers() {
    let disk = disk_with(&["a"]);
    disk.set_capacity(Some(8));
    let file = disk.open(&at("a"), OpenMode::Existing).unwrap();
    let error = file.write_at(6, &[IoSlice::new(b"12345")]).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::Full);
    assert_eq!(disk.content(&at("a")).unwrap(), b"synced12");
    file.truncate(6).unwrap();
    disk.set_capacity(None);
    file.write_at(6, &[IoSlice::new(b"12345")]).unwrap();
    assert_eq!(disk.used_bytes(), 11);
}

#[test]
fn planned_faults_hit_the_counted_call() {
    let disk = disk_with(&["a"]);
    let file = disk.open(&at("a"), OpenMode::Existing).unwrap();
    disk.fail_operation(disk.operations() + 1, Fault::Io);
    file.write_at(0, &[IoSlice::new(b"S")]).unwrap();
    assert!(file.write_at(6, &[IoSlice::new(b"1234")]).is_err());
    assert_eq!(disk.content(&at("a")).unwrap(), b"Synced12", "half a write stays");
    file.write_at(6, &[IoSlice::new(b"1234")]).unwrap();
    disk.fail_operation(disk.operations(), Fault::Halt);
    assert!(file.sync().is_err());
    assert!(file.read_at(0, 1).is_err());
    assert_eq!(disk.crash(Crash::ForgetUnsynced).content(&at("a")).unwrap(), b"synced");
}

#[test]
fn locks_are_exclusive_and_go_with_the_process() {
    let disk = disk_with(&[]);
    let held = disk.lock(&at(".lock")).unwrap();
    assert_eq!(disk.lock(&at(".lock")).unwrap_err().kind, DiskErrorKind::Locked);
    drop(held);
    let _held = disk.lock(&at(".lock")).unwrap();
    assert!(disk.kill().lock(&at(".lock")).is_ok());
}

#[test]
fn a_crash_forgets_folders_as_it_forgets_files() {
    let disk = disk_with(&["a"]);
    disk.create_dir_all(Path::new("/d/new/deep")).unwrap();
    let file = disk.open(Path::new("/d/new/f"), OpenMode::CreateEmpty).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/d/new")).unwrap();
    assert_eq!(names(&disk), ["a", "new"]);
    assert_eq!(names(&disk.kill().crash(Crash::ForgetUnsynced)), ["a"]);

    let disk = disk_with(&["a"]);
    disk.create_dir_all(Path::new("/d/old")).unwrap();
    disk.open(Path::new("/d/old/f"), OpenMode::CreateEmpty).unwrap();
    disk.sync_dir(Path::new("/d/old")).unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    disk.rename(Path::new("/d/old"), Path::new("/d/renamed")).unwrap();
    assert_eq!(names(&disk), ["a", "renamed"]);
    let next = disk.kill().crash(Crash::ForgetUnsynced);
    assert_eq!(names(&next), ["a", "old"]);
    assert!(next.content(Path::new("/d/old/f")).is_some());
    next.remove_dir_all(Path::new("/d/old")).unwrap();
    assert_eq!(names(&next), ["a"]);
    let outcomes: std::collections::BTreeSet<_> = (0..32)
        .map(|seed| {
            let next = next.kill().crash(Crash::Seeded(seed));
            (names(&next).len(), next.content(Path::new("/d/old/f")).is_some())
        })
        .collect();
    // The folder may stay with or without what was in it; it never goes before that.
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [(1, false), (2, false), (2, true)]);
}

#[test]
fn a_broken_device_fails_what_is_below_it() {
    let disk = MemDisk::new();
    for dir in ["/a", "/b"] {
        disk.create_dir_all(Path::new(dir)).unwrap();
    }
    let open = |path: &str| disk.open(Path::new(path), OpenMode::CreateIfMissing).unwrap();
    let (sound, broken) = (open("/a/f"), open("/b/f"));
    disk.break_below(Path::new("/b"), "write");
    let write = |file: &Arc<dyn DiskFile>| file.write_at(0, &[IoSlice::new(b"x")]);
    assert_eq!(write(&broken).unwrap_err().kind, DiskErrorKind::Io);
    assert!(write(&sound).is_ok() && broken.sync().is_ok() && broken.read_at(0, 1).is_ok());
    disk.break_below(Path::new("/b"), "sync");
    assert_eq!(broken.sync().unwrap_err().kind, DiskErrorKind::SyncFailed);
}
