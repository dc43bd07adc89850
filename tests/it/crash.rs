//! kill -9 under load from both protocols, judged by a journal that the killed process cannot touch.
//!
//! Each seed: load from idempotent Kafka producers, RocketMQ producers and two groups' commits; kill with at least
//! [`IN_FLIGHT_MIN`] requests unanswered; start again over the same data; the clients resend what was not answered, as
//! stock clients do; then the log itself is read and compared with the journal.

mod kafka_load;
mod positions;
mod rocketmq_load;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::raw_client::Connection;
use duolog_tests::raw_kafka;
use duolog_tests::seed::Seeded;
use duolog_tests::wait;

use kafka_load::KafkaProducer;
use positions::Positions;
use rocketmq_load::RocketmqProducer;

const SEEDS: u64 = 20;
const IN_FLIGHT_MIN: usize = 50;
const KAFKA_PRODUCERS: i32 = 14;
const ROCKETMQ_PRODUCERS: i32 = 4;
pub const KAFKA_TOPIC: &str = "crash-kafka";
pub const ROCKETMQ_TOPIC: &str = "crash-rocketmq";
pub const LIMIT: Duration = Duration::from_secs(120);

/// What all load shares: how much is unanswered, how much was acknowledged, and whether to go on.
#[derive(Default)]
pub struct Load {
    pub in_flight: AtomicUsize,
    pub acknowledged: AtomicUsize,
    pub stop: AtomicBool,
}

impl Load {
    pub fn sent(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    pub fn answered(&self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

struct Clients {
    kafka: Vec<KafkaProducer>,
    rocketmq: Vec<RocketmqProducer>,
    positions: Vec<Positions>,
}

/// An answer promises what it says, of records and of positions, and both protocols' groups have one store of positions.
#[test]
fn kill_nine_under_load_loses_nothing_acknowledged() {
    for seed in 0..SEEDS {
        survive(seed).with_context(|| format!("seed {seed}")).unwrap();
    }
}

fn survive(seed: u64) -> anyhow::Result<()> {
    let mut random = Seeded::new(seed);
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path())?.set("offsets.topic.num.partitions", 4);
    let node = launch.start()?;
    let mut clients = clients(&node)?;
    let kill_after = random.within(100..1500);
    load_until_killed(node, &mut clients, kill_after)?;

    let node = launch.start()?;
    for producer in &mut clients.kafka {
        producer.finish(&node)?;
    }
    for producer in &mut clients.rocketmq {
        producer.finish(&node)?;
    }
    let mut reader = Connection::open(&node.kafka(), LIMIT)?;
    for producer in &clients.kafka {
        let stored = raw_kafka::values(&mut reader, KAFKA_TOPIC, producer.partition, 0)?;
        producer.judge(&stored)?;
    }
    for producer in &clients.rocketmq {
        let stored = raw_kafka::values(&mut reader, ROCKETMQ_TOPIC, producer.queue, 0)?;
        producer.judge(&stored)?;
    }
    for positions in &clients.positions {
        positions.judge(&node)?;
    }
    ensure!(node.stop()?.success(), "a clean stop after all that");
    Ok(())
}

fn clients(node: &Node) -> anyhow::Result<Clients> {
    let mut connection = Connection::open(&node.kafka(), LIMIT)?;
    raw_kafka::create_topic(&mut connection, KAFKA_TOPIC, KAFKA_PRODUCERS)?;
    raw_kafka::create_topic(&mut connection, ROCKETMQ_TOPIC, ROCKETMQ_PRODUCERS)?;
    let kafka = (0..KAFKA_PRODUCERS)
        .map(|partition| {
            let (id, epoch) = raw_kafka::init_producer_id(&mut connection)?;
            Ok(KafkaProducer::new(partition, id, epoch))
        })
        .collect::<anyhow::Result<_>>()?;
    let rocketmq = (0..ROCKETMQ_PRODUCERS).map(RocketmqProducer::new).collect();
    let positions = vec![Positions::kafka("crash-kafka-group"), Positions::rocketmq("crash-rmq")];
    for positions in &positions {
        positions.commit(node, 0)?;
    }
    Ok(Clients { kafka, rocketmq, positions })
}

/// Runs all clients at once; kills the node when `kill_after` requests were answered and enough are not.
fn load_until_killed(node: Node, clients: &mut Clients, kill_after: usize) -> anyhow::Result<()> {
    let load = Arc::new(Load::default());
    let (kafka, broker) = (node.kafka(), node.broker());
    std::thread::scope(|scope| {
        for producer in &mut clients.kafka {
            let (load, address) = (load.clone(), kafka.clone());
            scope.spawn(move || producer.run(&address, &load));
        }
        for producer in &mut clients.rocketmq {
            let (load, address) = (load.clone(), broker.clone());
            scope.spawn(move || producer.run(&address, &load));
        }
        for positions in &mut clients.positions {
            let (load, kafka, broker) = (load.clone(), kafka.clone(), broker.clone());
            scope.spawn(move || positions.run(&kafka, &broker, &load));
        }
        let ready = wait::until("enough load to kill", LIMIT, || {
            let acknowledged = load.acknowledged.load(Ordering::SeqCst);
            let in_flight = load.in_flight.load(Ordering::SeqCst);
            ensure!(
                acknowledged >= kill_after && in_flight >= IN_FLIGHT_MIN,
                "{acknowledged} answered, {in_flight} in flight"
            );
            Ok(())
        });
        let killed = node.kill();
        load.stop.store(true, Ordering::SeqCst);
        ready.and(killed)
    })
}
