//! Records as they lie in `__share_group_state`.

use super::*;

fn sample_records() -> Vec<ShareRecord> {
    let batches = vec![
        StateBatch {
            first: 3,
            last: 9,
            state: DeliveryState::Available,
            deliveries: 2,
            lease: Some(Lease { until_ms: 77, popped_ms: -3 }),
        },
        StateBatch {
            first: 10,
            last: 1 << 40,
            state: DeliveryState::Archived,
            deliveries: 0,
            lease: None,
        },
    ];
    let (share, deliveries_max) = (share("g"), 17);
    vec![
        ShareRecord::Update {
            share: share.clone(),
            epoch: 4,
            batches: batches.clone(),
            deliveries_max,
            committed: Some(-1),
        },
        ShareRecord::Snapshot {
            share: share.clone(),
            epoch: 5,
            start: 3,
            created_ms: 11,
            written_ms: 12,
            batches,
            deliveries_max,
            committed: None,
        },
        ShareRecord::Dead { share, offset: 1 << 40, message: message(4) },
    ]
}

#[test]
fn records_are_read_as_they_were_written_and_damaged_ones_are_refused() {
    for record in sample_records() {
        let bytes = record.encode().unwrap();
        let value = bytes.value.expect("a value");
        assert_eq!(ShareRecord::decode(&bytes.key, Some(&value)), Ok(Some(record)));
        for end in 0..value.len() {
            assert!(ShareRecord::decode(&bytes.key, Some(&value[..end])).is_err(), "{end}");
        }
        assert!(ShareRecord::decode(&bytes.key[..5], Some(&value)).is_err());
    }
    let forgotten = ShareRecord::Forgotten(share("g"));
    let bytes = forgotten.encode().unwrap();
    assert_eq!(ShareRecord::decode(&bytes.key, bytes.value.as_deref()), Ok(Some(forgotten)));
    assert_eq!(ShareRecord::decode(&[0, 3], Some(&[])), Ok(None));
    let wide = StateBatch {
        first: 0,
        last: i64::MAX - 1,
        state: DeliveryState::Available,
        deliveries: 1,
        lease: None,
    };
    for batch in [wide, StateBatch { first: 4, last: 3, ..wide }, StateBatch { first: -1, ..wide }]
    {
        let update = ShareRecord::Update {
            share: share("g"),
            epoch: 0,
            batches: vec![batch],
            deliveries_max: 1,
            committed: None,
        };
        let bytes = update.encode().unwrap();
        assert!(ShareRecord::decode(&bytes.key, bytes.value.as_deref()).is_err(), "{batch:?}");
    }
}

/// What earlier builds wrote has no committed start; they pass over what they do not know.
#[test]
fn the_committed_start_is_a_tagged_field_of_its_own() {
    for record in sample_records() {
        let (mut with, mut without) = (record.clone(), record);
        match (&mut with, &mut without) {
            (
                ShareRecord::Snapshot { committed: with, .. },
                ShareRecord::Snapshot { committed: without, .. },
            )
            | (
                ShareRecord::Update { committed: with, .. },
                ShareRecord::Update { committed: without, .. },
            ) => (*with, *without) = (Some(1 << 40), None),
            _ => continue,
        }
        let value =
            |record: &ShareRecord| record.encode().unwrap().value.expect("a value").to_vec();
        let (with, old) = (value(&with), value(&without));
        let (field, count) = (&[0xCD, 0x88, 0x01, 8], old.len() - 7);
        assert_eq!((&old[..count], old[count]), (&with[..count], 1), "of the same fields");
        assert_eq!((with[count], &with[count + 1..old.len()]), (2, &old[count + 1..]));
        assert_eq!(with[old.len()..], [&field[..], &(1_i64 << 40).to_be_bytes()[..]].concat());
        let key = without.encode().unwrap().key;
        assert_eq!(ShareRecord::decode(&key, Some(&old)), Ok(Some(without)));
    }
}
