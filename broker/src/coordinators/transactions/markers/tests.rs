use super::*;

#[test]
fn a_marker_that_a_higher_epoch_refuses_is_done_and_one_at_an_open_transactions_epoch_is_not() {
    let refused = |incoming, current| {
        MarkError::Append(AppendError::Log(LogError::InvalidProducerEpoch {
            producer_id: 1,
            incoming,
            current,
        }))
    };
    assert!(refused(4, 5).is_final());
    assert!(!refused(5, 5).is_final());
    let fenced = LogError::CoordinatorFenced { producer_id: 1, incoming: 0, current: 1 };
    assert!(MarkError::Append(AppendError::Log(fenced)).is_final());
    assert!(MarkError::UnknownPartition.is_final());
    assert!(!MarkError::Append(AppendError::Busy).is_final());
}
