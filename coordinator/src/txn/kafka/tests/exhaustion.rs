//! Producer ids whose epochs are used up.

use super::*;

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
