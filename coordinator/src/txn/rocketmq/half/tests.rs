use std::collections::BTreeMap;

use bytes::Bytes;
use duolog_log_core::ids::TopicPartition;
use proptest::prelude::*;

use super::*;
use crate::delivery::StoredMessage;

fn message() -> HalfMessage {
    HalfMessage {
        target: TopicPartition::new("t", 0),
        group: "p".into(),
        client: "c".into(),
        immunity: Immunity::Seconds(5),
        born_ms: 7,
        message: StoredMessage { timestamp_ms: 7, payload: Bytes::new() },
    }
}

proptest! {
    /// As a sorted map would.
    #[test]
    fn they_come_in_order_and_go_in_any(acts in prop::collection::vec((0..4_u8, 0..40_i64), 1..200)) {
        let mut halves = OpenHalves::default();
        let mut model = BTreeMap::new();
        let mut next = 0;
        for (act, number) in acts {
            let offset = Offset(number);
            match act {
                0 | 1 => {
                    next += 1 + number % 3;
                    halves.insert(&message(), Offset(next));
                    model.insert(Offset(next), 0);
                }
                2 => {
                    halves.remove(offset);
                    model.remove(&offset);
                }
                _ => {
                    halves.set_times(offset, 3);
                    model.entry(offset).and_modify(|times| *times = 3);
                }
            }
            let open: BTreeMap<_, _> =
                halves.behind(Offset(-1)).map(|half| (half.offset, half.times)).collect();
            prop_assert_eq!(&open, &model);
            prop_assert_eq!(halves.len(), model.len());
            prop_assert_eq!(halves.is_empty(), model.is_empty());
            prop_assert_eq!(halves.first(), model.keys().next().copied());
            prop_assert_eq!(halves.get(offset).map(|half| half.times), model.get(&offset).copied());
            let behind = halves.behind(offset).map(|half| half.offset);
            let expected = model.range(offset.plus(1)..).map(|(offset, _)| *offset);
            prop_assert!(behind.eq(expected));
            prop_assert!(halves.halves.len() <= 2 * halves.len().max(1));
        }
    }
}

/// A million open ones are to stay below 50 MiB.
#[test]
fn an_open_half_message_takes_few_bytes() {
    assert!(size_of::<Half>() <= 40, "{}", size_of::<Half>());
}
