//! Transactions that are open in the source.

use std::collections::{BTreeMap, BTreeSet};

use duolog_coordinator::record::transaction::{
    ProducerIdAndEpoch, Record, TxnState, TxnValue, TxnVersion,
};
use duolog_log_core::record::{BatchBuilder, NewRecord};

use super::*;
use crate::testing::rocketmq::{plant, transactional_batch};

/// A source whose partition 0 has one record of producer 4711 and two open transactions, of producers
/// 4712 and 4713.
async fn source(dir: &Path) -> TopicId {
    let node = start(dir).await;
    let topic = create(&node, "orders", &[]).await;
    append(&node, topic, 0).await;
    let partition = node.partitions.find(topic, 0).expect("it");
    for producer in [4712, 4713] {
        plant(&partition, transactional_batch(producer, 0, &["unsettled"])).await;
    }
    assert_eq!(partition.offsets().last_stable, 1);
    node.stop().await;
    topic
}

/// What the source's coordinators have stored of the transaction of a producer, oldest first.
fn write_decisions(dir: &Path, producer: i64, states: &[TxnState]) {
    let mut builder = BatchBuilder::new(BatchParams::default());
    for state in states {
        let partitions = BTreeMap::from([("orders".into(), BTreeSet::from([0]))]);
        let value = TxnValue {
            producer: ProducerIdAndEpoch { id: producer, epoch: 0 },
            previous_producer_id: -1,
            next_producer_id: -1,
            timeout_ms: 60_000,
            state: *state,
            partitions,
            updated_ms: 1,
            started_ms: 1,
            version: TxnVersion::V1,
        };
        let record = Record { id: "t".into(), value: Some(value) }.encode().expect("short");
        let (key, value) = (Some(&*record.key), record.value.as_deref());
        builder.append(&NewRecord { timestamp: 1, key, value, headers: &[] }).expect("small");
    }
    let folder = dir.join("__transaction_state-3");
    fs::create_dir(&folder).expect("made");
    let bytes = builder.finish_uncompressed().expect("records");
    fs::write(folder.join("00000000000000000000.log"), bytes).expect("written");
}

/// Imports and serves: how each transaction was ended, and which values a reader of what is committed
/// does not get.
fn check(to: &Path, from: &Path, topic: TopicId, outcomes: [Outcome; 2]) {
    let report = imported(to, from).expect("imported");
    let ended = |(producer_id, outcome)| {
        let (partition, producer_epoch) = (0, 0);
        Ended { partition, producer_id, producer_epoch, outcome }
    };
    let expected = [(4712, outcomes[0]), (4713, outcomes[1])].map(ended);
    assert_eq!(report.topics[0].ended, expected);
    alone(async {
        let node = start(to).await;
        let partition = node.partitions.find(topic, 0).expect("it");
        let reader = partition.reader().await.expect("a log");
        let offsets = partition.offsets();
        assert_eq!((offsets.log_start, offsets.last_stable, offsets.log_end), (0, 5, 5));
        let read = reader.read(0, 1 << 20, 5, ReadMinimum::OneBatch).expect("readable");
        assert_eq!(read.next_offset, 5);
        let aborted = reader.aborted_transactions(0, 5).expect("readable");
        let aborted: Vec<_> = aborted.iter().map(|aborted| aborted.producer_id).collect();
        let expected: Vec<_> =
            expected.iter().filter(|one| one.outcome == Outcome::Aborted).collect();
        assert_eq!(aborted, expected.iter().map(|one| one.producer_id).collect::<Vec<_>>());
        assert_eq!(append(&node, topic, 1).await, 5, "other producers are known");
        plant(&partition, transactional_batch(4712, 1, &["of a later transaction"])).await;
        node.stop().await;
    });
    let again = imported(to, from).expect("nothing to do");
    assert!(again.topics[0].ended.is_empty(), "what is open by now is left to its coordinator");
}

#[test]
fn open_transactions_are_aborted_and_told() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    check(&to, &from, topic, [Outcome::Aborted, Outcome::Aborted]);
}

#[test]
fn those_of_a_broker_that_was_killed_are_aborted_too() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    fs::remove_file(from.join(CLEAN_SHUTDOWN_FILE)).expect("removed");
    fs::remove_file(from.join("orders-0/00000000000000000003.snapshot")).expect("removed");
    check(&to, &from, topic, [Outcome::Aborted, Outcome::Aborted]);
}

/// Its other partitions may have the marker already.
#[test]
fn what_its_coordinator_had_decided_to_commit_is_committed() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    write_decisions(&from, 4713, &[TxnState::Ongoing, TxnState::PrepareCommit]);
    check(&to, &from, topic, [Outcome::Aborted, Outcome::Committed]);
}

#[test]
fn what_was_decided_of_an_earlier_transaction_ends_no_later_one() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    let states = [TxnState::PrepareCommit, TxnState::CompleteCommit, TxnState::Ongoing];
    write_decisions(&from, 4713, &states);
    check(&to, &from, topic, [Outcome::Aborted, Outcome::Aborted]);
}
