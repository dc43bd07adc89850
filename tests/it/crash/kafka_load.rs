//! An idempotent producer with its journal: what it sent, what was acknowledged where.

use std::collections::VecDeque;

use anyhow::{Context, ensure};
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::ProducerSequence;
use duolog_tests::cluster::Node;
use duolog_tests::raw_client::Connection;
use duolog_tests::raw_kafka;
use kafka_protocol::messages::ProduceRequest;

use super::{KAFKA_TOPIC, LIMIT, Load};

/// `max.in.flight.requests.per.connection` of an idempotent producer.
const WINDOW: usize = 5;
const AFTER_RESTART: usize = 10;
const ACKS_ALL: i16 = -1;

pub struct KafkaProducer {
    pub partition: i32,
    id: ProducerId,
    epoch: ProducerEpoch,
    /// Offset acknowledged for each record sent, in order of sequence.
    journal: Vec<Option<i64>>,
}

impl KafkaProducer {
    pub fn new(partition: i32, id: ProducerId, epoch: ProducerEpoch) -> Self {
        Self { partition, id, epoch, journal: Vec::new() }
    }

    fn text(&self, sequence: usize) -> String {
        format!("kafka {} {sequence}", self.partition)
    }

    /// Sends until the connection breaks.
    pub fn run(&mut self, address: &str, load: &Load) {
        // Every error here is the kill; the journal holds what is to be judged.
        let _ = self.send_until_broken(address, load);
    }

    fn send_until_broken(&mut self, address: &str, load: &Load) -> anyhow::Result<()> {
        let mut connection = Connection::open(address, LIMIT)?;
        let mut unanswered = VecDeque::new();
        while !load.stopped() {
            while unanswered.len() < WINDOW {
                let sequence = self.journal.len();
                self.journal.push(None);
                load.sent();
                unanswered.push_back(self.send(&mut connection, sequence)?);
            }
            self.receive(&mut connection, &mut unanswered)?;
            load.answered();
        }
        Ok(())
    }

    fn send(&self, connection: &mut Connection, sequence: usize) -> anyhow::Result<(i32, usize)> {
        let producer = ProducerSequence {
            id: self.id,
            epoch: self.epoch,
            base_sequence: i32::try_from(sequence)?,
        };
        let records = raw_kafka::batch(&[self.text(sequence).as_bytes()], Some(producer));
        let request = raw_kafka::produce(KAFKA_TOPIC, self.partition, ACKS_ALL, records);
        Ok((connection.send_kafka(raw_kafka::PRODUCE_VERSION, &request)?, sequence))
    }

    fn receive(
        &mut self,
        connection: &mut Connection,
        unanswered: &mut VecDeque<(i32, usize)>,
    ) -> anyhow::Result<()> {
        let (id, response) =
            connection.receive_kafka::<ProduceRequest>(raw_kafka::PRODUCE_VERSION)?;
        let (expected, sequence) = unanswered.pop_front().context("an unasked answer")?;
        ensure!(id == expected, "answers in another order");
        let answer = raw_kafka::produced(response)?;
        ensure!(answer.error_code == 0, "sequence {sequence}: error {}", answer.error_code);
        *self.journal.get_mut(sequence).context("a sequence of ours")? = Some(answer.base_offset);
        Ok(())
    }

    /// Sends again what was not answered, under the same sequences, and a few more.
    pub fn finish(&mut self, node: &Node) -> anyhow::Result<()> {
        let mut connection = Connection::open(&node.kafka(), LIMIT)?;
        let first = self.journal.iter().position(Option::is_none).unwrap_or(self.journal.len());
        self.journal.resize(self.journal.len() + AFTER_RESTART, None);
        let mut unanswered = VecDeque::new();
        for sequence in first..self.journal.len() {
            unanswered.push_back(self.send(&mut connection, sequence)?);
            if unanswered.len() == WINDOW {
                self.receive(&mut connection, &mut unanswered)?;
            }
        }
        while !unanswered.is_empty() {
            self.receive(&mut connection, &mut unanswered)?;
        }
        Ok(())
    }

    /// Exactly once: the partition holds each record once, in order, where it was acknowledged.
    pub fn judge(&self, stored: &[(i64, Vec<u8>)]) -> anyhow::Result<()> {
        ensure!(
            stored.len() == self.journal.len(),
            "partition {}: {} records stored, {} sent",
            self.partition,
            stored.len(),
            self.journal.len()
        );
        for (sequence, ((offset, value), acknowledged)) in
            stored.iter().zip(&self.journal).enumerate()
        {
            let text = self.text(sequence);
            ensure!(value == text.as_bytes(), "{text} is not at offset {offset}");
            ensure!(
                *acknowledged == Some(*offset),
                "{text} acknowledged at {acknowledged:?}, stored at {offset}"
            );
        }
        Ok(())
    }
}
