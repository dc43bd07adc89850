use super::*;

fn target(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

fn note(partition: i32, offsets: &[i64]) -> DeliveryRecord {
    let messages = offsets.iter().map(|offset| Noted { offset: Offset(*offset), tag: -offset });
    DeliveryRecord::Note(Note { target: target(partition), messages: messages.collect() })
}

fn done(partition: i32, through: i64) -> DeliveryRecord {
    DeliveryRecord::Done { target: target(partition), through: Offset(through) }
}

fn open_at(deliveries: &Deliveries, partition: i32) -> Vec<i64> {
    deliveries.open(&target(partition), Offset(-1), 100).iter().map(|note| note.at.0).collect()
}

#[test]
fn notes_stay_open_until_they_are_done_target_by_target() {
    let mut deliveries = Deliveries::default();
    for (at, record) in
        [(10, note(0, &[3, 1])), (11, note(1, &[2])), (12, note(0, &[4])), (13, note(0, &[5]))]
    {
        deliveries.replay(record, Offset(at));
    }
    assert_eq!(open_at(&deliveries, 0), [10, 12, 13]);
    assert_eq!(deliveries.open(&target(0), Offset(10), 2).len(), 2);
    let offsets: Vec<_> = deliveries.open(&target(0), Offset(-1), 1)[0]
        .messages
        .iter()
        .map(|noted| noted.offset.0)
        .collect();
    assert_eq!(offsets, [3, 1], "the order of a note is the order in the target");
    assert_eq!(deliveries.first_needed(), Some(Offset(1)));
    assert_eq!(deliveries.message_count(), 5);
    let counts = [0, 1, 2].map(|partition| deliveries.message_count_for(&target(partition)));
    assert_eq!(counts, [4, 1, 0]);
    deliveries.replay(done(0, 12), Offset(14));
    assert_eq!((open_at(&deliveries, 0), open_at(&deliveries, 1)), (vec![13], vec![11]));
    assert_eq!(deliveries.first_needed(), Some(Offset(2)));
    deliveries.replay(done(1, 11), Offset(15));
    assert_eq!(deliveries.targets().collect::<Vec<_>>(), [&target(0)]);
    deliveries.replay(done(0, 13), Offset(16));
    assert_eq!(deliveries, Deliveries::default());
    assert_eq!(deliveries.first_needed(), None);
}

#[test]
fn what_was_said_to_be_done_is_not_said_again() {
    let mut deliveries = Deliveries::default();
    deliveries.replay(note(0, &[1]), Offset(5));
    assert_eq!(deliveries.done(&target(0), Offset(4)), None);
    assert_eq!(deliveries.done(&target(1), Offset(5)), None);
    let record = deliveries.done(&target(0), Offset(5)).expect("it is new");
    assert_eq!(record, done(0, 5));
    deliveries.replay(record, Offset(6));
    assert_eq!(deliveries.done(&target(0), Offset(5)), None);
}

#[test]
fn records_are_read_as_they_were_written_and_damaged_ones_are_refused() {
    for record in [note(7, &[1, 2, i64::MAX]), done(-1, 9)] {
        let bytes = record.encode().unwrap();
        let value = bytes.value.as_ref().map(|value| &value[..]);
        assert_eq!(DeliveryRecord::decode(&bytes.key, value), Ok(Some(record)));
        let value = value.expect("a value");
        for end in 0..value.len() {
            assert!(DeliveryRecord::decode(&bytes.key, Some(&value[..end])).is_err());
        }
        assert!(DeliveryRecord::decode(&bytes.key, None).is_err());
        let unknown = [&[0, 9], &value[2..]].concat();
        assert!(DeliveryRecord::decode(&bytes.key, Some(&unknown)).is_err(), "another version");
    }
    assert_eq!(DeliveryRecord::decode(&[0, 1], Some(&[])), Ok(None), "another kind");
    let bytes = note(0, &[1]).encode().unwrap();
    let mut value = bytes.value.expect("a value").to_vec();
    value[2..6].copy_from_slice(&2000_i32.to_be_bytes());
    assert!(DeliveryRecord::decode(&bytes.key, Some(&value)).is_err(), "more than fits a note");
}
