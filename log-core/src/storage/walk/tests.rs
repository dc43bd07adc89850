use std::io::IoSlice;
use std::path::Path;

use super::*;
use crate::record::{BatchBuilder, BatchParams, NewRecord};
use crate::storage::disk::{Disk, OpenMode};
use crate::testing::mem_disk::MemDisk;

fn batch(base_offset: i64, value_bytes: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchParams { base_offset, ..BatchParams::default() });
    let value = vec![7; value_bytes];
    builder
        .append(&NewRecord { timestamp: 1, value: Some(&value), ..NewRecord::default() })
        .unwrap();
    builder.finish_uncompressed().unwrap().to_vec()
}

fn file_of(content: &[u8]) -> Arc<dyn DiskFile> {
    let disk = MemDisk::new();
    disk.create_dir_all(Path::new("/d")).unwrap();
    let file = disk.open(Path::new("/d/f"), OpenMode::CreateEmpty).unwrap();
    file.write_at(0, &[IoSlice::new(content)]).unwrap();
    file
}

/// Base offsets, and where the walk broke off.
fn walked<T>(
    walk: &mut Walk,
    mut next: impl FnMut(&mut Walk) -> DiskResult<Step<T>>,
) -> (Vec<i64>, Option<u64>) {
    let mut offsets = Vec::new();
    loop {
        match next(walk).unwrap() {
            Step::Batch(found) => offsets.push(found.header.base_offset),
            Step::End => return (offsets, None),
            Step::Broken { .. } => return (offsets, Some(walk.position())),
        }
    }
}

#[test]
fn small_and_large_batches_are_found_by_header_and_whole() {
    let sizes = [10, 3 << 20, 0, 70_000, 500, 1 << 20, 1, 2];
    let batches: Vec<_> = sizes.iter().zip(0..).map(|(size, i)| batch(i, *size)).collect();
    let content = batches.concat();
    let file = file_of(&content);
    let end = content.len() as u64;
    let expected: Vec<i64> = (0..8).collect();
    let mut walk = Walk::new(Arc::clone(&file), 0, end);
    assert_eq!(walked(&mut walk, Walk::next_header), (expected.clone(), None));
    let mut walk = Walk::new(Arc::clone(&file), 0, end);
    let mut index = 0;
    while let Step::Batch(found) = walk.next_batch().unwrap() {
        assert_eq!(found.content, batches[index]);
        index += 1;
    }
    assert_eq!((index, walk.position()), (8, end));
    let second = batches[0].len() as u64;
    let mut walk = Walk::new(file, second, end - 1);
    assert_eq!(walked(&mut walk, Walk::next_header).0, (1..7).collect::<Vec<_>>());
}

#[test]
fn every_torn_end_is_found_where_the_whole_batches_end() {
    let batches = [batch(0, 40), batch(1, 50), batch(2, 60)];
    let content = batches.concat();
    let whole = batches[0].len() + batches[1].len();
    for cut in whole + 1..content.len() {
        let file = file_of(&content[..cut]);
        let mut walk = Walk::new(Arc::clone(&file), 0, cut as u64);
        assert_eq!(walked(&mut walk, Walk::next_header), (vec![0, 1], Some(whole as u64)), "{cut}");
        let mut walk = Walk::new(file, 0, cut as u64);
        assert_eq!(walked(&mut walk, Walk::next_batch), (vec![0, 1], Some(whole as u64)), "{cut}");
    }
}

#[test]
fn a_spoilt_length_reserves_nothing_and_zeros_are_no_batch() {
    let mut content = batch(0, 40);
    content[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    for content in [content, vec![0; 5000], vec![0xFF; 5000]] {
        let file = file_of(&content);
        let mut walk = Walk::new(Arc::clone(&file), 0, content.len() as u64);
        assert_eq!(walked(&mut walk, Walk::next_batch), (vec![], Some(0)));
        let mut walk = Walk::new(file, 0, content.len() as u64);
        assert_eq!(walked(&mut walk, Walk::next_header), (vec![], Some(0)));
    }
}
