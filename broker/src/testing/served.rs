//! A node on a disk in memory, and a client of its Kafka listener, for this crate's tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use duolog_log_core::event::{EventSink, Events};
use duolog_log_core::gate::{GateAction, GateFilter, GateId, GatePoint};
use duolog_log_core::ids::NodeId;
use duolog_log_core::record::{BatchBuilder, BatchParams, NewRecord};
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::MemDisk;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::Told;
use crate::config::Config;
use crate::config::args::ServeArgs;
use crate::config::topic::Overrides;
use crate::controller::image::Topic;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::kafka::codec::messages::{ApiVersionsRequest, ProduceRequest, ProduceResponse};
use crate::kafka::codec::{Message, Records, decode_response, encode_request};
use crate::node::Node;
use crate::server::connection;
use crate::server::listener::{ConnectionLimits, Stop, accept};

/// Nothing in these tests takes longer, however busy the machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A running node.
pub struct TestNode {
    pub node: Arc<Node>,
    pub disk: MemDisk,
    pub kafka: SocketAddr,
    /// Events since [`Self::listen`].
    pub told: Told,
    tasks: TaskTracker,
}

/// The configuration of a test node.
pub fn config(assignments: &[&str]) -> Arc<Config> {
    Arc::new(Config::load(&arguments(assignments), std::iter::empty()).expect("a configuration"))
}

/// The arguments that a test node is started with.
pub fn arguments(assignments: &[&str]) -> ServeArgs {
    let mut all = vec!["log.dirs=/data".to_owned(), "offsets.topic.num.partitions=2".to_owned()];
    all.extend(assignments.iter().map(|text| (*text).to_owned()));
    ServeArgs { assignments: all, ..ServeArgs::default() }
}

impl TestNode {
    /// A node with these settings on an empty disk.
    pub async fn start(assignments: &[&str]) -> Self {
        Self::start_on(MemDisk::new(), assignments).await
    }

    /// A node with these settings on what a disk holds.
    pub async fn start_on(disk: MemDisk, assignments: &[&str]) -> Self {
        let told = Told::default();
        let sink = Box::new(told.clone());
        Self::start_heard(disk, config(assignments), told, sink).await
    }

    /// As [`Self::start_on`], its events going to `sink`.
    pub async fn start_heard(
        disk: MemDisk,
        config: Arc<Config>,
        told: Told,
        sink: Box<dyn EventSink>,
    ) -> Self {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let events = Events::new(NodeId(config.node_id), sink);
        let node = Node::start(config, shared, events).await.expect("the node starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let kafka = listener.local_addr().expect("bound");
        node.set_advertised(vec![("127.0.0.1".into(), i32::from(kafka.port()))]);
        let limits = ConnectionLimits::of_kafka(node.clone(), usize::MAX);
        let tasks = TaskTracker::new();
        let served = node.clone();
        let stop = Stop { begun: node.stopping.clone(), ..Stop::default() };
        tasks.spawn(accept(listener, limits, stop, tasks.clone(), move |socket, peer| {
            connection::serve(served.clone(), socket, peer, 0)
        }));
        Self { node, disk, kafka, told, tasks }
    }

    /// Hears what happens from now on.
    pub fn listen(&self) -> &Told {
        self.node.instruments.events.listen();
        &self.told
    }

    /// Arms a gate that catches what concerns `topic`.
    pub fn arm(&self, point: GatePoint, topic: &str, action: GateAction) -> GateId {
        let filter = GateFilter { topic: Some(topic.to_owned()), ..GateFilter::default() };
        self.node.instruments.gates.arm(point, filter, action).expect("a gate")
    }

    /// Waits until a gate has caught something.
    pub async fn caught(&self, gate: GateId) {
        let gates = &self.node.instruments.gates;
        let hit = || gates.list().iter().any(|armed| armed.id == gate && armed.hits > 0);
        eventually("the gate catches", hit).await;
    }

    /// What ends before the node is stopped.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Stops cleanly and gives the disk.
    pub async fn stop(self) -> MemDisk {
        self.node.stopping.cancel();
        self.tasks.close();
        tokio::time::timeout(LIMIT, self.tasks.wait()).await.expect("connections end");
        self.node.stop().await;
        self.disk.kill()
    }

    /// Creates a topic.
    pub async fn create_topic(&self, name: &str, overrides: &[(&str, &str)]) -> Arc<Topic> {
        let overrides: Overrides =
            overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let topic = NewTopic { name: name.into(), partitions: 2, overrides, door: Door::Kafka };
        self.node.controller.create_topic(topic, IfExists::Refuse).await.expect("created")
    }

    /// A client's connection.
    pub async fn connect(&self) -> Client {
        let socket = TcpStream::connect(self.kafka).await.expect("listening");
        Client { socket, next_id: 0 }
    }
}

/// Speaks frames to a node.
pub struct Client {
    socket: TcpStream,
    next_id: i32,
}

impl Client {
    /// Sends a request and reads its answer.
    pub async fn call<Q: Message, R: Message>(&mut self, version: i16, request: &Q) -> R {
        let id = self.send(version, request).await;
        let (answered, response) = self.receive(version).await;
        assert_eq!(answered, id);
        response
    }

    /// Sends a request; returns its correlation id.
    pub async fn send<Q: Message>(&mut self, version: i16, request: &Q) -> i32 {
        self.next_id += 1;
        let frame = encode_request(self.next_id, Some(&"test".into()), version, request);
        self.send_bytes(&frame.expect("encodable").to_bytes()).await;
        self.next_id
    }

    /// Sends bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("the node reads");
    }

    /// Sends no more, but goes on reading.
    pub async fn end(&mut self) {
        self.socket.shutdown().await.expect("connected");
    }

    /// Reads an answer.
    pub async fn receive<R: Message>(&mut self, version: i16) -> (i32, R) {
        let frame = self.receive_frame().await.expect("an answer");
        decode_response(&frame, version).expect("an answer of this version")
    }

    /// Reads a frame; `None` when the node closes instead.
    pub async fn receive_frame(&mut self) -> Option<Bytes> {
        let read = async {
            let mut length = [0; 4];
            self.socket.read_exact(&mut length).await.ok()?;
            let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).ok()?];
            self.socket.read_exact(&mut frame).await.ok()?;
            Some(Bytes::from(frame))
        };
        tokio::time::timeout(LIMIT, read).await.expect("an answer or a close in time")
    }

    /// Asks for nothing, to see that the connection works.
    pub async fn ping(&mut self) {
        let id = self.send(0, &ApiVersionsRequest::default()).await;
        let frame = self.receive_frame().await.expect("an answer");
        assert_eq!(frame.first_chunk(), Some(&id.to_be_bytes()));
    }

    /// Produces `records` to partition 0 of `topic` in version 9.
    pub async fn produce(&mut self, topic: &str, acks: i16, records: BytesMut) -> (i16, i64) {
        let response: ProduceResponse =
            self.call(9, &produce_request(topic, acks, records.freeze())).await;
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }
}

/// A Produce of one batch to partition 0.
pub fn produce_request(topic: &str, acks: i16, records: Bytes) -> ProduceRequest {
    ProduceRequest {
        transactional_id: None,
        acks,
        timeout_ms: 120_000,
        topic_data: vec![TopicProduceData {
            name: topic.into(),
            partition_data: vec![PartitionProduceData {
                index: 0,
                records: Some(Records::from(records)),
            }],
            ..TopicProduceData::default()
        }],
    }
}

/// A batch of records with these values, of now.
pub fn batch(values: &[&str]) -> BytesMut {
    batch_of(BatchParams::default(), values)
}

/// A batch of records with these values, of now.
pub fn batch_of(params: BatchParams, values: &[&str]) -> BytesMut {
    let mut builder = BatchBuilder::new(params);
    for value in values {
        let record = NewRecord {
            timestamp: crate::clock::now_ms(),
            key: None,
            value: Some(value.as_bytes()),
            headers: &[],
        };
        builder.append(&record).expect("a small batch");
    }
    builder.finish_uncompressed().expect("records")
}

/// A question that is asked until its answer is another, with a deadline.
pub struct Attempts {
    what: &'static str,
    since: Instant,
}

impl Attempts {
    /// `what` is to come true.
    pub fn at(what: &'static str) -> Self {
        Self { what, since: Instant::now() }
    }

    /// Before the next attempt.
    pub async fn again(&self) {
        assert!(self.since.elapsed() < LIMIT, "never: {}", self.what);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until `holds`, looking again and again.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}
