use duolog_log_core::record::{BatchBuilder, BatchParams, DecodedBatch, Decompressor, NewRecord};

use super::*;

const KEY: Key = (TopicId([1; 16]), 0);

fn batch(base_offset: i64, records: usize) -> Arc<SharedBatch> {
    let mut builder = BatchBuilder::new(BatchParams { base_offset, ..BatchParams::default() });
    for _ in 0..records {
        builder.append(&NewRecord { value: Some(b"value"), ..NewRecord::default() }).expect("fits");
    }
    let bytes = builder.finish_uncompressed().expect("records").freeze();
    let decoded = DecodedBatch::decode(&bytes, &mut Decompressor::new(), 1 << 20).expect("whole");
    Arc::new(SharedBatch::new(decoded, 0))
}

fn bases(cache: &BatchCache) -> Vec<i64> {
    let cached = cache.cached.lock();
    let mut bases: Vec<i64> = cached.partitions.values().flatten().map(|(base, _)| *base).collect();
    bases.sort_unstable();
    bases
}

#[test]
fn a_batch_is_found_by_any_of_its_offsets() {
    let cache = BatchCache::new(1 << 20);
    cache.put(KEY, &batch(10, 5));
    cache.put(KEY, &batch(20, 5));
    let found = |offset| cache.find(KEY, offset).map(|batch| batch.base_offset());
    assert_eq!(found(10), Some(10));
    assert_eq!(found(14), Some(10));
    assert_eq!((found(9), found(15), found(25)), (None, None, None));
    assert!(cache.find((TopicId([1; 16]), 1), 10).is_none());
    cache.forget(TopicId([1; 16]));
    assert_eq!((found(10), cache.cached.lock().bytes), (None, 0));
}

#[test]
fn what_is_used_outlives_what_is_not() {
    let size = batch(0, 5).memory_bytes();
    let cache = BatchCache::new(3 * size);
    for base in [0, 5, 10] {
        cache.put(KEY, &batch(base, 5));
    }
    assert!(cache.find(KEY, 0).is_some());
    cache.put(KEY, &batch(15, 5));
    assert_eq!(bases(&cache), [0, 10, 15]);
    cache.put(KEY, &batch(15, 5));
    assert_eq!(cache.cached.lock().bytes, 3 * size, "the same batch again counts once");
    cache.put(KEY, &batch(100, 5000));
    assert_eq!(bases(&cache), [0, 10, 15], "one that fills the cache alone is not kept");
}
