//! Holds the drivers against a real peer before they judge Duolog: the cells of one protocol,
//! written and read.
//!
//! `peer_matrix kafka 127.0.0.1:9092` or `peer_matrix rocketmq NAMESRV BROKER`

use anyhow::{Context, bail};
use duolog_tests::matrix::{Cell, PARTITIONS, Table};
use duolog_tests::stock::Client;
use duolog_tests::topics::{create_kafka_topic, create_rocketmq_topic};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let address = words.get(1).context("the peer's address")?;
    let clients = match words.first().map(String::as_str) {
        Some("kafka") => Client::KAFKA,
        Some("rocketmq") => Client::ROCKETMQ,
        _ => bail!("which peer: kafka or rocketmq?"),
    };
    let start = std::time::Instant::now();
    for cell in Cell::all(&clients) {
        match words.get(2) {
            None => create_kafka_topic(address, &cell.topic(), PARTITIONS)?,
            Some(broker) => create_rocketmq_topic(broker, address, &cell.topic(), PARTITIONS)?,
        }
    }
    println!("topics after {:?}", start.elapsed());
    let table = Table::fill(&clients.map(|client| (client, address.clone())))?;
    println!("{}\nafter {:?}", table.text(), start.elapsed());
    // RocketMQ hands on what the producer compressed, and clients before 4.9 know zlib only.
    table.complete(&clients, |cell, reader| {
        reader.client == Client::Rocketmq440 && ["lz4", "zstd"].contains(&cell.compression)
    })
}
