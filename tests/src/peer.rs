//! A real Kafka of 4.3.1 beside Duolog: one node, broker and controller, as `kafka-storage format --standalone` makes it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kafka_protocol::messages::ApiVersionsRequest;

use crate::cluster::Ports;
use crate::program::Program;
use crate::raw_client::Connection;
use crate::stock::{self, Client};
use crate::wait;

const LIMIT: Duration = Duration::from_secs(120);

/// A running broker. Dropping it kills it.
pub struct Peer {
    _broker: Program,
    address: String,
}

impl Peer {
    /// Starts one with its data below `folder` and these settings beside those of a test.
    pub fn start(folder: &Path, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let ports = Ports::reserve()?;
        let address = format!("127.0.0.1:{}", ports.kafka);
        let controller = format!("127.0.0.1:{}", ports.http);
        let mut lines = vec![
            "process.roles=broker,controller".to_owned(),
            "node.id=1".to_owned(),
            format!("listeners=PLAINTEXT://{address},CONTROLLER://{controller}"),
            format!("advertised.listeners=PLAINTEXT://{address}"),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("controller.quorum.bootstrap.servers={controller}"),
            format!("log.dirs={}", folder.join("data").display()),
            "offsets.topic.replication.factor=1".to_owned(),
            "offsets.topic.num.partitions=4".to_owned(),
            "transaction.state.log.replication.factor=1".to_owned(),
            "transaction.state.log.min.isr=1".to_owned(),
            "transaction.state.log.num.partitions=4".to_owned(),
            "share.coordinator.state.topic.replication.factor=1".to_owned(),
            "share.coordinator.state.topic.min.isr=1".to_owned(),
            "group.initial.rebalance.delay.ms=0".to_owned(),
        ];
        lines.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
        let properties = folder.join("server.properties");
        fs::write(&properties, lines.join("\n"))?;
        let mut format = stock::program(Client::Kafka431.name(), "kafka.tools.StorageTool");
        let cluster_id = "9U2h9IZRQtmc6yBYB7rJ3Q"; // any will do
        format.args(["format", "--standalone", "-t", cluster_id, "-c"]).arg(&properties);
        // Duolog has no eligible leader replicas; with them each topic shows a setting more.
        format.args(["--feature", "eligible.leader.replicas.version=0"]);
        stock::run(format, "", LIMIT)?.success()?;
        let mut broker = stock::program(Client::Kafka431.name(), "kafka.Kafka");
        broker.arg(&properties);
        let mut broker = Program::start(broker)?;
        wait::until("the broker answers", LIMIT, || {
            broker.lives()?;
            Connection::open(&address, LIMIT)?.kafka(0, &ApiVersionsRequest::default())
        })?;
        Ok(Self { _broker: broker, address })
    }

    /// Its bootstrap address.
    pub fn kafka(&self) -> String {
        self.address.clone()
    }
}
