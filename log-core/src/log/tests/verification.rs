//! Late and early batches of transactions, and the guard between question and answer (case B44).

use super::*;

fn of(producer: (i64, i16), base_sequence: i32, epochs: TxnEpochs) -> Verification {
    let (producer_id, producer_epoch) = producer;
    Verification { producer_id, producer_epoch, base_sequence, epochs }
}

fn txn(producer: (i64, i16), base_sequence: i32, verified: Verified) -> AppendBatch {
    let batch = of_producer(producer, base_sequence, BatchKind::Transactional, &["v"]);
    AppendBatch { origin: AppendOrigin::ClientInTransaction(verified), ..batch }
}

fn raising(producer: (i64, i16), outcome: TransactionOutcome) -> AppendBatch {
    let origin = AppendOrigin::CoordinatorRaisingEpoch;
    AppendBatch { origin, ..marker(producer, outcome) }
}

fn is_unverified(answer: &Result<Appended, LogError>) -> bool {
    matches!(answer, Err(LogError::UnverifiedTxn { .. }))
}

#[test]
fn b44_a_late_batch_opens_no_transaction() {
    let mut log = open(&data_disk(), small(4096));
    let ask = of((1, 0), 0, TxnEpochs::Stay);
    assert!(is_unverified(&append(&mut log, txn((1, 0), 0, Verified::Open))), "never begun");
    let guard = log.begin_verification(&ask, 0).unwrap().expect("nothing is open");
    // Between the coordinator's yes and the append the transaction was aborted.
    append(&mut log, marker((1, 0), TransactionOutcome::Abort)).unwrap();
    assert!(is_unverified(&append(&mut log, txn((1, 0), 0, Verified::Guard(guard)))));
    assert_eq!(log.first_unstable_offset(), None);

    let guard = log.begin_verification(&ask, 0).unwrap().expect("nothing is open");
    append(&mut log, txn((1, 0), 0, Verified::Guard(guard))).unwrap();
    assert_eq!(log.begin_verification(&ask, 0).unwrap(), None, "open now");
    append(&mut log, txn((1, 0), 1, Verified::Open)).unwrap();
    append(&mut log, marker((1, 0), TransactionOutcome::Commit)).unwrap();
    assert!(is_unverified(&append(&mut log, txn((1, 0), 2, Verified::Guard(guard)))), "used");
    assert!(is_unverified(&append(&mut log, txn((1, 0), 2, Verified::Open))));
    append(&mut log, txn((1, 0), 2, Verified::Unasked)).expect("nobody wants to know");
}

#[test]
fn two_questions_of_a_producer_share_a_guard_and_keep_their_order() {
    let mut log = open(&data_disk(), small(4096));
    let first =
        log.begin_verification(&of((1, 0), 3, TxnEpochs::Stay), 0).unwrap().expect("a guard");
    let second =
        log.begin_verification(&of((1, 0), 4, TxnEpochs::Stay), 0).unwrap().expect("a guard");
    assert_eq!(first, second);
    let overtaking = append(&mut log, txn((1, 0), 4, Verified::Guard(second)));
    assert!(matches!(overtaking, Err(LogError::OutOfOrderSequence { expected: 3, .. })));
    append(&mut log, txn((1, 0), 3, Verified::Guard(first))).unwrap();
    append(&mut log, txn((1, 0), 4, Verified::Guard(second))).unwrap();
}

#[test]
fn under_rising_epochs_a_producer_begins_at_zero() {
    let mut log = open(&data_disk(), small(4096));
    let guard =
        log.begin_verification(&of((1, 0), 5, TxnEpochs::Rise), 0).unwrap().expect("a guard");
    let answer = append(&mut log, txn((1, 0), 5, Verified::Guard(guard)));
    assert!(matches!(answer, Err(LogError::OutOfOrderSequence { expected: 0, .. })));
    append(&mut log, txn((1, 0), 0, Verified::Guard(guard))).unwrap();
    let late = append(&mut log, raising((1, 0), TransactionOutcome::Commit));
    assert!(matches!(late, Err(LogError::InvalidProducerEpoch { incoming: 0, current: 0, .. })));
    append(&mut log, raising((1, 1), TransactionOutcome::Commit)).unwrap();
    append(&mut log, raising((1, 1), TransactionOutcome::Commit)).expect("written again");
    let old = append(&mut log, txn((1, 0), 1, Verified::Open));
    assert!(is_unverified(&old), "{old:?}");
    let guard =
        log.begin_verification(&of((1, 1), 0, TxnEpochs::Rise), 0).unwrap().expect("a guard");
    append(&mut log, txn((1, 1), 0, Verified::Guard(guard))).unwrap();
}

#[test]
fn the_request_that_asked_first_says_whether_epochs_rise() {
    let mut log = open(&data_disk(), small(4096));
    let ask = |log: &mut Log, producer, sequence, epochs| {
        log.begin_verification(&of(producer, sequence, epochs), 0).unwrap().expect("a guard")
    };
    ask(&mut log, (1, 0), 5, TxnEpochs::Stay);
    let guard = ask(&mut log, (1, 0), 5, TxnEpochs::Rise);
    append(&mut log, txn((1, 0), 5, Verified::Guard(guard))).expect("as under transactions v1");
    ask(&mut log, (2, 0), 5, TxnEpochs::Rise);
    let guard = ask(&mut log, (2, 0), 5, TxnEpochs::Stay);
    let answer = append(&mut log, txn((2, 0), 5, Verified::Guard(guard)));
    assert!(matches!(answer, Err(LogError::OutOfOrderSequence { expected: 0, .. })), "{answer:?}");
}

#[test]
fn positions_of_a_group_coordinator_have_no_sequence_but_an_epoch_and_a_guard() {
    let mut log = open(&data_disk(), small(4096));
    let positions = |epoch, verified| {
        let batch = of_producer((1, epoch), NO_SEQUENCE, BatchKind::Transactional, &["v"]);
        AppendBatch { origin: AppendOrigin::CoordinatorInTransaction(verified), ..batch }
    };
    assert!(is_unverified(&append(&mut log, positions(1, Verified::Open))));
    let ask = of((1, 1), NO_SEQUENCE, TxnEpochs::Stay);
    let guard = log.begin_verification(&ask, 0).unwrap().expect("a guard");
    append(&mut log, positions(1, Verified::Guard(guard))).unwrap();
    append(&mut log, positions(1, Verified::Open)).unwrap();
    let zombie = append(&mut log, positions(0, Verified::Unasked));
    assert!(matches!(zombie, Err(LogError::InvalidProducerEpoch { incoming: 0, current: 1, .. })));
    assert_eq!(log.first_unstable_offset(), Some(0));
}

#[test]
fn a_question_that_nobody_came_back_with_expires() {
    let config = LogConfig { producer_id_expiration_ms: 100, ..small(4096) };
    let mut log = open(&data_disk(), config);
    let guard =
        log.begin_verification(&of((1, 0), 0, TxnEpochs::Stay), 0).unwrap().expect("a guard");
    log.expire_producers(99);
    assert_eq!(log.begin_verification(&of((1, 0), 0, TxnEpochs::Stay), 99).unwrap(), Some(guard));
    log.expire_producers(100);
    assert_ne!(log.begin_verification(&of((1, 0), 0, TxnEpochs::Stay), 100).unwrap(), Some(guard));
}

#[test]
fn a_replaced_producer_is_refused_before_anybody_is_asked() {
    let mut log = open(&data_disk(), small(4096));
    append(&mut log, sequenced((1, 3), 0, &["a"])).unwrap();
    let refused = log.begin_verification(&of((1, 2), 0, TxnEpochs::Stay), 0);
    assert!(
        matches!(refused, Err(LogError::InvalidProducerEpoch { current: 3, .. })),
        "{refused:?}"
    );
    assert!(log.begin_verification(&of((1, 3), 0, TxnEpochs::Stay), 0).unwrap().is_some());
}
