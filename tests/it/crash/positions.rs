//! A group's position with its journal: it never goes back, whichever protocol commits it.

use anyhow::{Context, ensure};
use duolog_tests::cluster::Node;
use duolog_tests::raw_client::Connection;
use duolog_tests::raw_kafka;
use duolog_tests::wait;

use super::{KAFKA_TOPIC, LIMIT, Load, ROCKETMQ_TOPIC};

const QUERY_CONSUMER_OFFSET: i32 = 14;
const UPDATE_CONSUMER_OFFSET: i32 = 15;
const CREATE_GROUP: i32 = 200;

enum Protocol {
    Kafka,
    Rocketmq,
}

pub struct Positions {
    protocol: Protocol,
    group: &'static str,
    sent: i64,
    acknowledged: i64,
}

impl Positions {
    pub fn kafka(group: &'static str) -> Self {
        Self { protocol: Protocol::Kafka, group, sent: 0, acknowledged: 0 }
    }

    pub fn rocketmq(group: &'static str) -> Self {
        Self { protocol: Protocol::Rocketmq, group, sent: 0, acknowledged: 0 }
    }

    /// Commits ever larger positions until the connection breaks.
    pub fn run(&mut self, kafka: &str, broker: &str, load: &Load) {
        // Every error here is the kill; the journal holds what is to be judged.
        let _ = self.commit_until_broken(kafka, broker, load);
    }

    fn commit_until_broken(
        &mut self,
        kafka: &str,
        broker: &str,
        load: &Load,
    ) -> anyhow::Result<()> {
        let address = match self.protocol {
            Protocol::Kafka => kafka,
            Protocol::Rocketmq => broker,
        };
        let mut connection = Connection::open(address, LIMIT)?;
        while !load.stopped() {
            self.sent += 1;
            self.commit_on(&mut connection, self.sent)?;
            self.acknowledged = self.sent;
        }
        Ok(())
    }

    /// Commits one position over a connection of its own.
    pub fn commit(&self, node: &Node, offset: i64) -> anyhow::Result<()> {
        let address = match self.protocol {
            Protocol::Kafka => node.kafka(),
            Protocol::Rocketmq => node.broker(),
        };
        let mut connection = Connection::open(&address, LIMIT)?;
        match self.protocol {
            Protocol::Kafka => raw_kafka::find_coordinator(&mut connection, self.group)?,
            Protocol::Rocketmq => {
                let group = format!(r#"{{"groupName":"{}"}}"#, self.group);
                let answer = connection.remoting(CREATE_GROUP, &[], group.as_bytes())?;
                ensure!(answer.code()? == 0, "{}", answer.header);
            }
        }
        wait::until("the first commit", LIMIT, || self.commit_on(&mut connection, offset))
    }

    fn commit_on(&self, connection: &mut Connection, offset: i64) -> anyhow::Result<()> {
        match self.protocol {
            Protocol::Kafka => {
                raw_kafka::commit_offset(connection, self.group, KAFKA_TOPIC, offset)
            }
            Protocol::Rocketmq => {
                let offset = offset.to_string();
                let fields = [
                    ("consumerGroup", self.group),
                    ("topic", ROCKETMQ_TOPIC),
                    ("queueId", "0"),
                    ("commitOffset", offset.as_str()),
                ];
                let answer = connection.remoting(UPDATE_CONSUMER_OFFSET, &fields, &[])?;
                ensure!(answer.code()? == 0, "{}", answer.header);
                Ok(())
            }
        }
    }

    fn stored(&self, node: &Node) -> anyhow::Result<i64> {
        match self.protocol {
            Protocol::Kafka => {
                let mut connection = Connection::open(&node.kafka(), LIMIT)?;
                raw_kafka::committed_offset(&mut connection, self.group, KAFKA_TOPIC)
            }
            Protocol::Rocketmq => {
                let mut connection = Connection::open(&node.broker(), LIMIT)?;
                let fields =
                    [("consumerGroup", self.group), ("topic", ROCKETMQ_TOPIC), ("queueId", "0")];
                wait::until("the group's coordinator", LIMIT, || {
                    let answer = connection.remoting(QUERY_CONSUMER_OFFSET, &fields, &[])?;
                    ensure!(answer.code()? == 0, "{}", answer.header);
                    Ok(answer.field("offset").context("offset")?.parse()?)
                })
            }
        }
    }

    /// The stored position is the last acknowledged one, or the one that was under way.
    pub fn judge(&self, node: &Node) -> anyhow::Result<()> {
        let stored = self.stored(node)?;
        ensure!(
            (self.acknowledged..=self.sent).contains(&stored),
            "{}: {} acknowledged, {} sent, {stored} stored",
            self.group,
            self.acknowledged,
            self.sent
        );
        Ok(())
    }
}
