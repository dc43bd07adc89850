use proptest::prelude::*;

use super::*;
use crate::record::Batch;

fn parse(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<Option<EndTransactionMarker>, RecordError> {
    let mut builder =
        BatchBuilder::new(BatchParams { kind: BatchKind::Control, ..BatchParams::default() });
    builder.append(&NewRecord { timestamp: 1, key, value, headers: &[] }).unwrap();
    let bytes = builder.finish_uncompressed().unwrap();
    let record = Batch::parse(&bytes).unwrap().records().unwrap().next().unwrap().unwrap();
    EndTransactionMarker::parse(&record)
}

#[test]
fn types_have_their_numbers() {
    for id in -1..10 {
        assert_eq!(ControlType::from_id(id).id(), id);
    }
    assert_eq!(ControlType::from_id(1), ControlType::Commit);
    assert_eq!(ControlType::from_id(7), ControlType::Unknown(7));
}

#[test]
fn a_later_version_with_more_fields_is_read() {
    let marker = EndTransactionMarker { outcome: TransactionOutcome::Abort, coordinator_epoch: 3 };
    let value = [0, 1, 0, 0, 0, 3, 9, 9];
    assert_eq!(parse(Some(&[0, 5, 0, 0, 7]), Some(&value)), Ok(Some(marker)));
}

#[test]
fn other_control_records_are_no_markers() {
    for id in [2_u8, 3, 4, 5, 6, 99] {
        assert_eq!(parse(Some(&[0, 0, 0, id]), None), Ok(None));
    }
}

#[test]
fn broken_markers_are_refused() {
    let value = [0, 0, 0, 0, 0, 3];
    for (key, value) in [
        (None, Some(value.as_slice())),
        (Some([0, 0, 0].as_slice()), Some(value.as_slice())),
        (Some(&[0xFF, 0xFF, 0, 0]), Some(&value)),
        (Some(&[0, 0, 0, 1]), None),
        (Some(&[0, 0, 0, 1]), Some(&value[..5])),
        (Some(&[0, 0, 0, 1]), Some(&[0x80, 0, 0, 0, 0, 3])),
    ] {
        let result = parse(key, value);
        assert!(matches!(result, Err(RecordError::InvalidControlRecord(_))), "{result:?}");
    }
}

proptest! {
    #[test]
    fn every_marker_survives(commit: bool, coordinator_epoch: i32, id in 0_i64.., epoch in 0_i16..) {
        let outcome = if commit { TransactionOutcome::Commit } else { TransactionOutcome::Abort };
        let marker = EndTransactionMarker { outcome, coordinator_epoch };
        let bytes = marker.batch(ProducerId(id), ProducerEpoch(epoch), 77).unwrap();
        let batch = Batch::parse(&bytes).unwrap();
        prop_assert_eq!(batch.verify_crc(), Ok(()));
        prop_assert!(batch.header().is_control() && batch.header().is_transactional());
        prop_assert_eq!(batch.header().producer_id, ProducerId(id));
        let record = batch.records().unwrap().next().unwrap().unwrap();
        prop_assert_eq!(EndTransactionMarker::parse(&record), Ok(Some(marker)));
    }

    #[test]
    fn no_key_or_value_panics(
        key in prop::option::of(prop::collection::vec(any::<u8>(), 0..8)),
        value in prop::option::of(prop::collection::vec(any::<u8>(), 0..10)),
    ) {
        let _ = parse(key.as_deref(), value.as_deref());
    }
}
