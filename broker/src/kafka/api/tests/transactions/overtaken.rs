//! A transaction begins while the markers of the last one are being written: where one comes between the question whether
//! it may begin and the coordinator's answer, the question is put again.

use duolog_log_core::gate::GateId;

use super::positions::{commit, group, position};
use super::*;
use crate::controller::names;

/// Holds the markers in `topic` and, once one is caught, what a new transaction asks of its coordinator.
struct Race {
    marker: GateId,
    add: GateId,
}

impl Race {
    async fn begin(
        node: &TestNode,
        client: &mut Client,
        producer: Producer,
        topic: &str,
    ) -> (Self, Producer) {
        let marker = node.arm(GatePoint::TxnMarkerBefore, topic, GateAction::Hold);
        let (code, next) = end(client, 5, "a", producer, true).await;
        assert_eq!(code, NONE);
        node.caught(marker).await;
        let add = node.arm(GatePoint::TxnAdd, topic, GateAction::Hold);
        (Self { marker, add }, next)
    }

    /// The question waits; the last transaction is completed before it is answered.
    async fn overtake(self, node: &TestNode, other: &mut Client) {
        node.caught(self.add).await;
        node.node.instruments.release(self.marker);
        completed(other, "a").await;
        node.node.instruments.release(self.add);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_question_is_overtaken_by_the_last_marker_is_written() {
    let (node, mut client) = node().await;
    let mut other = node.connect().await;
    let producer = started(&mut client, "a").await;
    assert_eq!(write(&mut client, 12, Some("a"), records(producer, 0, &["x"])).await, (NONE, 0));
    let (race, next) = Race::begin(&node, &mut client, producer, "t").await;
    let mut request = produce_request("t", -1, records(next, 0, &["y"]));
    request.transactional_id = Some("a".into());
    client.send(12, &request).await;
    race.overtake(&node, &mut other).await;
    let (_, answer): (_, ProduceResponse) = client.receive(12).await;
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!((partition.error_code, partition.base_offset), (NONE, 2));
    assert_eq!(end(&mut client, 5, "a", next, true).await.0, NONE);
    stable(&node, 4).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_whose_question_is_overtaken_by_the_last_marker_are_committed() {
    let (node, mut client) = node().await;
    let mut other = node.connect().await;
    group(&mut client).await;
    let producer = started(&mut client, "a").await;
    assert_eq!(commit(&mut client, 5, producer, vec![position(0, 1)]).await, [NONE]);
    let (race, next) = Race::begin(&node, &mut client, producer, names::OFFSETS_TOPIC).await;
    let committing =
        tokio::spawn(async move { commit(&mut client, 5, next, vec![position(0, 2)]).await });
    race.overtake(&node, &mut other).await;
    assert_eq!(committing.await.expect("no panic"), [NONE]);
    node.stop().await;
}
