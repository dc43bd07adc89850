use std::collections::BTreeMap;

use super::*;
use crate::testing::Bench;

fn spec(read: i32, write: i32) -> TopicSpec {
    TopicSpec {
        name: "t".into(),
        read_queues: read,
        write_queues: write,
        perm: 6,
        sys_flag: 0,
        order: false,
        attributes: BTreeMap::from([("message.type".to_owned(), "FIFO".to_owned())]),
    }
}

#[test]
fn only_what_differs_from_the_defaults_is_set() {
    assert_eq!(overrides(&spec(8, 8), 8).into_keys().collect::<Vec<_>>(), ["message.type"]);
    let shrunk = overrides(&spec(8, 4), 8);
    assert_eq!(shrunk.get("rmq.write.queues").map(String::as_str), Some("4"));
    assert_eq!(shrunk.get("rmq.read.queues"), None);
}

/// As an operator drains queues: readers keep those that writers gave up. The route after each
/// step is the peer's.
#[test]
fn queues_shrink_step_by_step_while_partitions_stay() {
    let bench = Bench::with(&[]);
    for (read, write) in [(8, 8), (8, 4), (4, 4), (2, 2), (4, 2), (8, 8), (12, 12)] {
        let topic = bench.run(put(&bench.node, &spec(read, write))).expect("changed");
        assert_eq!((topic.read_queues, topic.write_queues), (read, write));
        assert_eq!(topic.partitions, read.max(8), "after {read}/{write}");
    }
}

#[test]
fn a_change_leaves_kafkas_settings_alone() {
    let held = Overrides::from([
        ("retention.ms".to_owned(), "1".to_owned()),
        ("rmq.perm".to_owned(), "4".to_owned()),
    ]);
    let changes = changes(&held, overrides(&spec(1, 1), 1));
    assert_eq!(
        changes,
        [
            ("rmq.perm".to_owned(), Change::Delete),
            ("message.type".to_owned(), Change::Set("FIFO".to_owned())),
        ]
    );
}
