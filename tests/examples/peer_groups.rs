//! Holds the group drivers against a real peer before they judge Duolog.
//!
//! `peer_groups kafka 127.0.0.1:9092` or `peer_groups rocketmq NAMESRV BROKER`

use std::time::Instant;

use anyhow::{Context, bail};
use duolog_tests::groups::{PARTITIONS, Share, join_and_leave};
use duolog_tests::stock::{Client, Driver};
use duolog_tests::topics::{create_kafka_topic, create_rocketmq_topic};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let address = words.get(1).context("the peer's address")?;
    let (clients, shares) = match words.first().map(String::as_str) {
        Some("kafka") => (Client::KAFKA, vec![Share::Range]),
        Some("rocketmq") => (Client::ROCKETMQ, vec![Share::Average, Share::Circle]),
        _ => bail!("which peer: kafka or rocketmq?"),
    };
    let mut drivers = Vec::new();
    for client in clients {
        drivers.push(Driver::start(client, address)?);
    }
    for share in shares {
        let start = Instant::now();
        let topic = format!("members_{share:?}");
        match words.get(2) {
            None => create_kafka_topic(address, &topic, PARTITIONS)?,
            Some(broker) => create_rocketmq_topic(broker, address, &topic, PARTITIONS)?,
        }
        join_and_leave(&mut drivers, &format!("group_{share:?}"), &topic, share)?;
        println!("{share:?}: joined and left as expected in {:?}", start.elapsed());
    }
    Ok(())
}
