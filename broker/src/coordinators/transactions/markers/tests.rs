use duolog_coordinator::error::AppendError as Refused;

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

/// Or the transaction would stay prepared until the next start.
#[test]
fn a_completion_that_the_log_refused_is_said_again() {
    for refused in [Refused::Storage, Refused::NotEnoughReplicas, Refused::TooLarge] {
        assert!(is_to_be_said_again(refused.into()), "{refused:?}");
    }
    for gone in [Refused::NotLeader.into(), TxnError::CoordinatorLoadInProgress] {
        assert!(!is_to_be_said_again(gone), "{gone:?}");
    }
    assert!(!is_to_be_said_again(TxnError::InvalidTxnState), "completed before");
}
