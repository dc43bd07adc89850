use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const MEMORY: MapMemory = MapMemory { bytes: 1 << 16, load_factor: 0.9, seed: 7 };

#[test]
fn a_full_map_takes_known_keys_only() {
    let memory = MapMemory { bytes: 10 * ENTRY_BYTES, load_factor: 0.5, seed: 1 };
    let mut map = OffsetMap::new(memory, u64::MAX, -1);
    for offset in 0..5_i64 {
        assert_eq!(map.put(&offset.to_be_bytes(), offset), Put::Kept);
    }
    assert_eq!(map.put(b"another", 5), Put::Full);
    assert_eq!((map.latest(), map.len()), (4, 5));
    assert_eq!(map.put(&2_i64.to_be_bytes(), 6), Put::Kept);
    assert_eq!((map.newest(&2_i64.to_be_bytes()), map.newest(b"another")), (Some(6), None));
    assert_eq!(map.latest(), 6);
}

#[test]
fn memory_is_taken_for_the_keys_that_there_may_be() {
    assert!(OffsetMap::new(MapMemory { bytes: 1 << 30, ..MEMORY }, 10, -1).entries.len() < 20);
    assert_eq!(OffsetMap::new(MEMORY, u64::MAX, -1).entries.len(), (1 << 16) / ENTRY_BYTES);
    let mut least = OffsetMap::new(MapMemory { bytes: 0, ..MEMORY }, 0, -1);
    assert_eq!(least.put(b"a", 0), Put::Kept);
    assert_eq!(least.put(b"b", 1), Put::Full);
}

proptest! {
    #[test]
    fn it_holds_what_a_plain_map_holds(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3), 0..300),
    ) {
        let mut map = OffsetMap::new(MEMORY, keys.len() as u64, -1);
        let mut plain = HashMap::new();
        for (offset, key) in keys.iter().enumerate() {
            prop_assert_eq!(map.put(key, offset as i64), Put::Kept);
            plain.insert(key.clone(), offset as i64);
        }
        for (key, offset) in &plain {
            prop_assert_eq!(map.newest(key), Some(*offset));
        }
        prop_assert_eq!(map.len(), plain.len());
        prop_assert_eq!(map.newest(b"none of them"), None);
    }
}
