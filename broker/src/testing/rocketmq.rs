//! RocketMQ clients of a test node, and record batches that no client can write yet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use duolog_bridge::backend::Backend;
use duolog_bridge::dispatch::{Answer, BoxFuture, Dispatched, Dispatcher};
use duolog_bridge::remoting::message::Message;
use duolog_bridge::remoting::{RemotingCommand, SegmentedOut, SerializeType};
use duolog_bridge::session::{Door, Session};
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::log::AppendOrigin;
use duolog_log_core::record::batch::{SharedBatches, TimestampType};
use duolog_log_core::record::builder::{BatchKind, ProducerSequence};
use duolog_log_core::record::compression::Compressor;
use duolog_log_core::record::{
    BatchBuilder, BatchParams, EndTransactionMarker, Header, NewRecord, TransactionOutcome,
};
use duolog_log_core::replication::partition::Acks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::served::{LIMIT, TestNode, eventually};
use crate::bridge_backend::BridgeBackend;
use crate::partitions::Partition;
use crate::partitions::append::{Flush, Payload};
use crate::server::listener::{Bounds, ConnectionLimits, Stop, accept};
use crate::server::remoting::{self, Entrance};

/// Where the test node's broker claims to be.
const BROKER: &str = "127.0.0.1:10911";

impl TestNode {
    /// The RocketMQ side of the node.
    pub fn rocketmq(&self) -> Dispatcher<BridgeBackend> {
        BridgeBackend::dispatcher(self.node.clone(), BROKER.parse().expect("an address"))
    }

    /// Opens a RocketMQ port whose connections may be idle for `idle`.
    pub async fn open_broker(
        &self,
        dispatcher: &Dispatcher<BridgeBackend>,
        idle: Duration,
    ) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let entrance = Arc::new(Entrance {
            door: Door::Broker,
            dispatcher: dispatcher.clone(),
            metrics: self.node.metrics.clone(),
            instruments: self.node.instruments.clone(),
            requests: self.node.requests.clone(),
            idle,
            stopping: self.node.stopping.clone(),
        });
        let tasks = self.tasks();
        let accepted = accept(
            listener,
            ConnectionLimits::new(|| Bounds::new(1000, 1000)),
            Stop { begun: self.node.stopping.clone(), ..Stop::default() },
            tasks.clone(),
            move |socket, peer| {
                let entrance = entrance.clone();
                async move { remoting::serve(&entrance, socket, peer).await }
            },
        );
        tasks.spawn(accepted);
        address
    }

    /// A partition, by the topic's stored name.
    pub fn partition(&self, topic: &str, index: i32) -> Arc<Partition> {
        let id = self.node.controller.image().topic(topic).expect("the topic").id;
        self.node.partitions.find(id, index).expect("the partition")
    }
}

/// A connection without a socket.
pub struct RemotingClient {
    dispatcher: Dispatcher<BridgeBackend>,
    pub session: Arc<Session>,
    /// Requests of the node.
    inbox: mpsc::Receiver<Box<RemotingCommand>>,
}

impl RemotingClient {
    pub fn new(dispatcher: &Dispatcher<BridgeBackend>) -> Self {
        Self::at(dispatcher, Door::Broker)
    }

    /// At another door.
    pub fn at(dispatcher: &Dispatcher<BridgeBackend>, door: Door) -> Self {
        let (outbox, inbox) = mpsc::channel(64);
        let peer = "127.0.0.1:50000".parse().expect("an address");
        let session = dispatcher.open(door, peer, outbox);
        Self { dispatcher: dispatcher.clone(), session, inbox }
    }

    /// The node's next request.
    pub async fn asked(&mut self) -> RemotingCommand {
        let request = tokio::time::timeout(LIMIT, self.inbox.recv()).await;
        *request.expect("a request in time").expect("an open connection")
    }

    /// Whether the node has asked for nothing.
    pub fn is_unasked(&mut self) -> bool {
        self.inbox.try_recv().is_err()
    }

    /// A heartbeat of a producer of this group.
    pub async fn beat_as_producer(&self, client_id: &str, group: &str) {
        let body = format!(
            "{{\"clientID\":\"{client_id}\",\"producerDataSet\":[{{\"groupName\":\"{group}\"}}]}}"
        );
        assert_eq!(self.call(34, &[], body.as_bytes()).await.code, 0);
    }

    /// Begins a request; its answer comes when the future is polled.
    pub fn begin(
        &self,
        code: i32,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> BoxFuture<Option<Answer>> {
        match self.dispatcher.dispatch(&self.session, request(code, fields, body)) {
            Dispatched::Now(answer) => Box::pin(std::future::ready(answer)),
            Dispatched::Later(answer) => answer,
        }
    }

    /// A request and its answer.
    pub async fn call(&self, code: i32, fields: &[(&str, &str)], body: &[u8]) -> RemotingCommand {
        let answer = tokio::time::timeout(LIMIT, self.begin(code, fields, body)).await;
        answer.expect("in time").expect("an answer").into_command()
    }

    /// PULL_MESSAGE of queue 0 with the usual fields, `changes` in their place.
    pub async fn pull(
        &self,
        topic: &str,
        offset: i64,
        changes: &[(&str, &str)],
    ) -> RemotingCommand {
        let offset = offset.to_string();
        self.call(11, &pull_fields(topic, &offset, changes), b"").await
    }

    /// A pull that is held at the end of the queue for `hold_ms`, and waits there already.
    pub async fn hold(
        &self,
        topic: &str,
        offset: i64,
        hold_ms: &str,
        changes: &[(&str, &str)],
    ) -> BoxFuture<Option<Answer>> {
        // The first request of a group makes it, and would wait for that instead.
        self.pull(topic, offset, changes).await;
        let wait = [("sysFlag", "6"), ("suspendTimeoutMillis", hold_ms)];
        let (from, changes) = (offset.to_string(), [&wait, changes].concat());
        let before = self.dispatcher.held_pulls();
        let mut held = self.begin(11, &pull_fields(topic, &from, &changes), b"");
        assert!(futures_util::poll!(&mut held).is_pending());
        assert_eq!(self.dispatcher.held_pulls(), before + 1);
        held
    }
}

/// A request as the Java client makes it.
pub fn request(code: i32, fields: &[(&str, &str)], body: &[u8]) -> RemotingCommand {
    let mut request = RemotingCommand::request(code, 7, SerializeType::Json);
    request.ext_fields = fields.iter().copied().collect();
    request.body = Bytes::copy_from_slice(body);
    request
}

/// The fields of a pull; of two with one name the later counts.
pub fn pull_fields<'a>(
    topic: &'a str,
    offset: &'a str,
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let usual = [
        ("consumerGroup", "g"),
        ("topic", topic),
        ("queueId", "0"),
        ("queueOffset", offset),
        ("maxMsgNums", "32"),
        ("sysFlag", "4"),
        ("commitOffset", "0"),
        ("suspendTimeoutMillis", "0"),
        ("subscription", "*"),
        ("subVersion", "0"),
        ("expressionType", "TAG"),
    ];
    with(&usual, changes)
}

/// The fields of a SendMessage to queue 0; of two with one name the later counts.
pub fn send_fields<'a>(topic: &'a str, changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let usual = [
        ("a", "producers"),
        ("b", topic),
        ("c", "TBW102"),
        ("d", "4"),
        ("e", "0"),
        ("f", "0"),
        ("g", "1600000000000"),
        ("h", "0"),
        ("i", "UNIQ_KEY\u{1}0A\u{2}"),
    ];
    with(&usual, changes)
}

fn with<'a>(
    usual: &[(&'a str, &'a str)],
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let kept = usual.iter().filter(|(name, _)| !changes.iter().any(|(change, _)| change == name));
    kept.chain(changes).copied().collect()
}

/// The offsets of the messages in a pull's answer.
pub fn offsets(answer: &RemotingCommand) -> Vec<i64> {
    let mut rest = &answer.body[..];
    let mut offsets = Vec::new();
    while !rest.is_empty() {
        offsets.push(Message::decode(&mut rest).expect("a message").queue_offset);
    }
    offsets
}

/// A number among an answer's fields.
pub fn field(answer: &RemotingCommand, name: &str) -> i64 {
    answer.ext_fields.get(name).expect("the field").parse().expect("a number")
}

/// Records as a Kafka producer batches them: tag (a `TAGS` header, none if empty) and value.
pub fn tagged_batch(params: BatchParams, records: &[(&str, &[u8])]) -> BytesMut {
    let mut builder = BatchBuilder::new(params);
    for (tag, value) in records {
        let headers = [Header { key: b"TAGS", value: Some(tag.as_bytes()) }];
        let headers = if tag.is_empty() { &[] } else { &headers[..] };
        let timestamp = crate::clock::now_ms();
        let record = NewRecord { timestamp, key: None, value: Some(*value), headers };
        builder.append(&record).expect("a small batch");
    }
    builder.finish(&mut Compressor::new()).expect("records")
}

/// Records of a transaction, untagged.
pub fn transactional_batch(producer: i64, base_sequence: i32, values: &[&str]) -> BytesMut {
    let (id, epoch) = (ProducerId(producer), ProducerEpoch(0));
    let params = BatchParams {
        producer: Some(ProducerSequence { id, epoch, base_sequence }),
        kind: BatchKind::Transactional,
        ..BatchParams::default()
    };
    let records: Vec<(&str, &[u8])> = values.iter().map(|value| ("", value.as_bytes())).collect();
    tagged_batch(params, &records)
}

/// Appends a batch past the Produce API, which takes no transactions yet; its base offset.
pub async fn plant(partition: &Arc<Partition>, bytes: BytesMut) -> i64 {
    plant_as(partition, bytes, AppendOrigin::Client).await
}

/// Ends a producer's transaction; the offset of the marker.
pub async fn plant_marker(
    partition: &Arc<Partition>,
    producer: i64,
    outcome: TransactionOutcome,
) -> i64 {
    let marker = EndTransactionMarker { outcome, coordinator_epoch: 0 };
    let now = crate::clock::now_ms();
    let bytes = marker.batch(ProducerId(producer), ProducerEpoch(0), now).expect("a marker");
    plant_as(partition, bytes, AppendOrigin::Coordinator).await
}

async fn plant_as(partition: &Arc<Partition>, bytes: BytesMut, origin: AppendOrigin) -> i64 {
    let batch = SharedBatches::new(bytes.clone().freeze()).next().expect("one").expect("a batch");
    let payload = Payload::Batch {
        record_count: batch.0.record_count,
        timestamp_type: TimestampType::CreateTime,
        max_timestamp: batch.0.max_timestamp,
        bytes,
        origin,
    };
    let answer =
        partition.try_append(payload, 1, Acks::Leader, Flush::Topic).expect("room").begin();
    let appended = tokio::time::timeout(LIMIT, answer).await.expect("in time");
    appended.expect("an answer").expect("appended").base_offset
}

/// A connection with a socket, that speaks frames.
pub struct RemotingSocket(TcpStream);

impl RemotingSocket {
    pub async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.expect("listening"))
    }

    /// Sends bytes as they are; false when the node has closed.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        let sent = tokio::time::timeout(LIMIT, self.0.write_all(bytes)).await;
        sent.expect("the node reads, or closes").is_ok()
    }

    pub async fn send(&mut self, request: RemotingCommand) -> bool {
        let mut out = SegmentedOut::default();
        request.encode(&mut out).expect("a small request");
        self.send_bytes(&out.into_bytes()).await
    }

    /// Pulls of queue 0 of topic `t` that are held there for ten minutes.
    pub async fn hold<B: Backend>(&mut self, dispatcher: &Dispatcher<B>, count: usize) {
        let before = dispatcher.held_pulls();
        let changes = [("sysFlag", "6"), ("suspendTimeoutMillis", "600000")];
        for _ in 0..count {
            assert!(self.send(request(11, &pull_fields("t", "0", &changes), b"")).await);
        }
        eventually("held", || dispatcher.held_pulls() == before + count).await;
    }

    /// The next frame without its length; `None` when the node closes.
    pub async fn receive(&mut self) -> Option<Bytes> {
        let read = async {
            let mut length = [0; 4];
            self.0.read_exact(&mut length).await.ok()?;
            let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).ok()?];
            self.0.read_exact(&mut frame).await.ok()?;
            Some(Bytes::from(frame))
        };
        tokio::time::timeout(LIMIT, read).await.expect("an answer or a close in time")
    }
}
