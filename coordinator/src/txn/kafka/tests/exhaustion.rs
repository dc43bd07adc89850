//! Producer ids whose epochs are used up.

use super::*;
use crate::record::transaction::Record;

/// Drives an id to the last epoch that a producer may have.
fn exhausted(bench: &mut Bench) -> ProducerIdAndEpoch {
    let mut last = bench.init("a");
    while last.epoch < i16::MAX - 1 {
        last = bench.init("a");
    }
    last
}

/// Case B43.
#[test]
fn b43_when_the_epochs_are_used_up_there_is_another_producer_id() {
    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    bench.add("a", last, 0, V2).expect("added");
    assert_eq!(bench.init_as("a", None), Err(TxnError::ConcurrentTransactions));
    assert_eq!(bench.markers()[0].producer, producer(100, i16::MAX), "kept for this");
    bench.write_markers();
    assert_eq!(bench.init_as("a", None), Ok(producer(101, 0)));

    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    bench.add("a", last, 0, V2).expect("added");
    let next = bench.end("a", last, Commit, V2);
    assert_eq!(next, Ok(producer(101, 0)), "told before the markers are written");
    assert_eq!(bench.markers()[0].producer, producer(100, i16::MAX));
    bench.write_markers();
    assert_eq!(bench.end("a", last, Commit, V2), Ok(producer(101, 0)), "a retry");
    assert_eq!(bench.init_as("a", Some(last)), Ok(producer(101, 0)), "nor did it hear of this");
    assert_eq!(bench.add("a", producer(101, 0), 0, V2), Ok(Response::Added));

    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    assert_eq!(bench.init_as("a", Some(last)), Ok(producer(101, 0)));
    assert_eq!(bench.init_as("a", Some(last)), Ok(producer(101, 0)), "the answer was lost");
}

/// KIP-890: the next transaction begins while the markers of the last one are being written.
#[test]
fn the_next_producer_id_is_asked_to_wait_while_the_markers_are_written() {
    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    bench.add("a", last, 0, V2).expect("added");
    let next = bench.end("a", last, Commit, V2).expect("ended");
    assert_eq!(next, producer(101, 0));
    let concurrent = TxnError::ConcurrentTransactions;
    assert_eq!(bench.add("a", next, 0, V2), Err(concurrent));
    let verify = Event::VerifyPartitions(adding("a", next, 0, V2));
    assert_eq!(bench.request(verify), Err(concurrent));
    for (outcome, version) in [(Commit, V2), (Abort, V2), (Commit, V1), (Abort, V1)] {
        assert_eq!(bench.end("a", next, outcome, version), Err(concurrent));
    }
    assert_eq!(bench.init_as("a", Some(next)), Err(concurrent));
    let other = producer(102, 0);
    let mapping = TxnError::InvalidProducerIdMapping;
    assert_eq!(bench.add("a", other, 0, V2), Err(mapping), "which is nobody's");
    assert_eq!(bench.end("a", other, Commit, V2), Err(mapping));
    assert_eq!(bench.init_as("a", Some(other)), Err(TxnError::ProducerFenced));
    bench.write_markers();
    assert_eq!(bench.add("a", next, 0, V2), Ok(Response::Added));
    assert_eq!(bench.end("a", next, Commit, V2), Ok(producer(101, 1)));
}

#[test]
fn the_last_epoch_is_given_to_no_producer() {
    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    assert_eq!(last, producer(100, i16::MAX - 1));
    bench.add("a", last, 0, V2).expect("added");
    bench.pass_timers(70_000);
    assert_eq!(bench.state("a"), TxnState::PrepareAbort, "timed out");
    assert_eq!(bench.markers()[0].producer, producer(100, i16::MAX));
    let concurrent = Err(TxnError::ConcurrentTransactions);
    assert_eq!(bench.end("a", last, Abort, V2), concurrent);
    assert_eq!(bench.init_as("a", Some(last)), concurrent);
    bench.write_markers();
    assert_eq!(bench.state("a"), TxnState::CompleteAbort);
    let fenced = TxnError::ProducerFenced;
    for outcome in [Abort, Commit] {
        assert_eq!(bench.end("a", last, outcome, V2), Err(fenced));
        assert_eq!(bench.end("a", last, outcome, V1), Err(fenced));
    }
    assert_eq!(bench.init_as("a", Some(last)), Err(fenced));
    assert_eq!(bench.add("a", last, 0, V2), Err(fenced));
    assert_eq!(bench.init_as("a", None), Ok(producer(101, 0)), "whoever begins anew");
}

/// What was stored when the last epoch could still reach a producer.
#[test]
fn a_producer_that_has_the_last_epoch_gets_another_id_and_its_transaction_ends() {
    let mut bench = Bench::new();
    let last = exhausted(&mut bench);
    bench.add("a", last, 0, V2).expect("added");
    let beyond = producer(100, i16::MAX);
    let value = TxnValue { producer: beyond, ..bench.value("a") };
    let record = Record { id: "a".into(), value: Some(value) };
    let mut log = bench.log.clone();
    log.push(record.encode().expect("short"));
    let mut bench = Bench::on(log, bench.now);
    let fenced = TxnError::ProducerFenced;
    assert_eq!(bench.add("a", beyond, 1, V2), Err(fenced));
    assert_eq!(bench.end("a", beyond, Commit, V2), Err(fenced));
    bench.pass_timers(70_000);
    let markers = bench.markers();
    assert_eq!((markers[0].producer, markers[0].version), (beyond, V1), "which may be equal");
    bench.write_markers();
    assert_eq!(bench.state("a"), TxnState::CompleteAbort);
    assert_eq!(bench.init_as("a", Some(beyond)).map(|it| it.epoch), Ok(0));
}
