use super::*;

#[test]
fn it_is_a_map() {
    let mut map: SharedMap<String, u32> = SharedMap::default();
    for number in 0..1000 {
        map.insert(number.to_string(), number);
    }
    map.insert("7".to_owned(), 70);
    assert_eq!(map.remove("8"), Some(8));
    assert_eq!(map.remove("8"), None);
    assert_eq!((map.get("7"), map.get("8"), map.get("999")), (Some(&70), None, Some(&999)));
    assert_eq!(map.values().count(), 999);
}

fn shared_shards(one: &SharedMap<u32, u32>, other: &SharedMap<u32, u32>) -> usize {
    let both = one.shards.iter().zip(&other.shards);
    both.filter(|(left, right)| Arc::ptr_eq(left, right)).count()
}

#[test]
fn a_change_copies_one_shard_and_leaves_older_copies_as_they_were() {
    let mut map = SharedMap::default();
    (0..10_000).for_each(|number| map.insert(number, number));
    let before = map.clone();
    map.insert(10_000, 0);
    assert_eq!((shared_shards(&map, &before), before.get(&10_000)), (SHARDS - 1, None));
    let before = map.clone();
    assert_eq!(map.remove(&5), Some(5));
    assert_eq!((shared_shards(&map, &before), before.get(&5)), (SHARDS - 1, Some(&5)));
    let before = map.clone();
    assert_eq!(map.remove(&5), None);
    assert_eq!(shared_shards(&map, &before), SHARDS, "nothing changed");
}
