//! `duolog serve`: bind everything, say where, serve until a signal, stop cleanly.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use duolog_bridge::session::Door;
use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::storage::file_disk::FileDisk;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bridge_backend::BridgeBackend;
use crate::config::Config;
use crate::config::listener::Endpoint;
use crate::kafka::codec::Str;
use crate::limits::{MAPPED_FILES_MAX, REMOTING_CONNECTIONS_MAX};
use crate::node::{Node, StartError};
use crate::server::http::{self, EventFeed, Patience, Sink};
use crate::server::listener::{BindError, Bounds, ConnectionLimits, Stop, accept, bind};
use crate::server::remoting::{self, Entrance};
use crate::server::{connection, shutdown};
use crate::system::Descriptors;

/// Connections have this long to send what they owe after a signal.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// Why serving did not begin, or failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The node.
    #[error(transparent)]
    Start(#[from] StartError),
    /// What it serves is lost.
    #[error(
        "{0}; the node has stopped: mend that disk, or take the directory out of log.dirs, and start it \
         again"
    )]
    LogDirs(String),
    /// Signals, or the standard output.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Every listening socket of a node.
struct Doors {
    kafka: Vec<TcpListener>,
    namesrv: TcpListener,
    broker: TcpListener,
    /// Where clients of the VIP channel go: the broker's port less two.
    broker_vip: TcpListener,
    http: TcpListener,
}

/// Serves until SIGINT or SIGTERM.
pub async fn run(config: Config) -> Result<(), ServeError> {
    let config = Arc::new(config);
    // Signals first: one that comes while the node starts must not kill it half way.
    let mut signals = shutdown::Signals::listen()?;
    // Ports next: a node that cannot be reached must not touch its data.
    let doors = Doors::bind(&config).await?;
    let feed = Arc::new(EventFeed::default());
    let events = Events::new(NodeId(config.node_id), Box::new(Sink(feed.clone())));
    let descriptors = Descriptors::of_this_process();
    let disk = Arc::new(FileDisk::new(descriptors.logs, MAPPED_FILES_MAX));
    let node = Node::start(config.clone(), disk, events).await?;
    node.set_advertised(doors.advertised(&config)?);
    match doors.announce(&node) {
        // Who started it does not want to know: it serves anyway.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        announced => announced?,
    }
    let tasks = TaskTracker::new();
    let stop = Stop { begun: node.stopping.clone(), over: CancellationToken::new() };
    doors.open(&node, &stop, &tasks, feed, descriptors.connections)?;
    let dirs = &node.partitions.shared().log_dirs;
    let signal = tokio::select! {
        signal = signals.next() => signal,
        // As after a kill: what is on disk is recovered by the next start.
        () = node.lost.cancelled() => {
            return Err(ServeError::LogDirs(dirs.loss().unwrap_or_default()));
        }
    };
    tracing::info!(signal, "stopping");
    stop.begun.cancel();
    tasks.close();
    if tokio::time::timeout(DRAIN_LIMIT, tasks.wait()).await.is_err() {
        tracing::warn!(open = tasks.len(), "connections did not end in time: cut off");
        stop.over.cancel();
        tasks.wait().await;
    }
    node.stop().await;
    Ok(())
}

impl Doors {
    async fn bind(config: &Config) -> Result<Self, BindError> {
        let mut kafka = Vec::with_capacity(config.listeners.len());
        for endpoint in &config.listeners {
            let option = "--set listeners=PLAINTEXT://HOST:PORT";
            kafka.push(bind("Kafka", endpoint.bind_host(), endpoint.port, option).await?);
        }
        let rocketmq = &config.rocketmq;
        let host = rocketmq.bind_address.to_string();
        let option = "--set rocketmq.namesrvListenPort=PORT";
        let namesrv = bind("RocketMQ name server", &host, rocketmq.namesrv_port, option).await?;
        let option = "--set rocketmq.listenPort=PORT";
        let broker = bind("RocketMQ broker", &host, rocketmq.listen_port, option).await?;
        let option = "--set rocketmq.listenPort=PORT (it is that port less 2)";
        let vip = rocketmq.listen_port.saturating_sub(2);
        let broker_vip = bind("RocketMQ broker's VIP channel", &host, vip, option).await?;
        let (host, option) = (config.http.0.to_string(), "--set http.port=PORT");
        let http = bind("HTTP", &host, config.http.1, option).await?;
        Ok(Self { kafka, namesrv, broker, broker_vip, http })
    }

    /// What clients of each Kafka listener are told.
    fn advertised(&self, config: &Config) -> std::io::Result<Vec<(Str, i32)>> {
        let shown = config.advertised.as_ref().unwrap_or(&config.listeners);
        let pairs = self.kafka.iter().zip(shown);
        pairs.map(|(listener, shown)| Ok(shown_address(shown, listener.local_addr()?))).collect()
    }

    /// Says in six lines where everything is.
    fn announce(&self, node: &Node) -> std::io::Result<()> {
        let kafka: std::io::Result<Vec<String>> =
            self.kafka.iter().map(|listener| Ok(listener.local_addr()?.to_string())).collect();
        let (version, id, cluster) = (env!("CARGO_PKG_VERSION"), node.id(), node.cluster_id());
        let vip = self.broker_vip.local_addr()?.port();
        let control = if node.config.control { ", /gates, /events" } else { "" };
        let mut out = std::io::stdout().lock();
        writeln!(out, "duolog {version}, node {id} of cluster {cluster}")?;
        writeln!(out, "  Kafka                 {}", kafka?.join(", "))?;
        writeln!(out, "  RocketMQ name server  {}", self.namesrv.local_addr()?)?;
        writeln!(out, "  RocketMQ broker       {} (VIP {vip})", self.broker.local_addr()?)?;
        writeln!(out, "  HTTP                  {} (/metrics{control})", self.http.local_addr()?)?;
        let dirs = node.config.log_dirs.iter().map(|dir| dir.display().to_string());
        writeln!(out, "  data                  {}", dirs.collect::<Vec<_>>().join(", "))?;
        out.flush()
    }

    /// Lets clients in.
    fn open(
        self,
        node: &Arc<Node>,
        stop: &Stop,
        tasks: &TaskTracker,
        feed: Arc<EventFeed>,
        connections_max: usize,
    ) -> std::io::Result<()> {
        let broker_port = self.broker.local_addr()?.port();
        let ip = node.config.rocketmq.broker_ip;
        node.set_name_server(SocketAddr::new(ip, self.namesrv.local_addr()?.port()));
        let broker_address = SocketAddr::new(ip, broker_port);
        let dispatcher = BridgeBackend::dispatcher(node.clone(), broker_address);
        let limits = ConnectionLimits::of_kafka(node.clone(), connections_max);
        for (index, listener) in self.kafka.into_iter().enumerate() {
            let (limits, node) = (limits.clone(), node.clone());
            let accepted =
                accept(listener, limits, stop.clone(), tasks.clone(), move |socket, peer| {
                    let node = node.clone();
                    async move {
                        let _open = Open::new(&node.metrics.kafka_connections);
                        connection::serve(node.clone(), socket, peer, index).await;
                    }
                });
            tasks.spawn(accepted);
        }
        let max = REMOTING_CONNECTIONS_MAX.min(connections_max);
        let limits = ConnectionLimits::new(move || Bounds::new(max, usize::MAX));
        let idle_ms = node.config.rocketmq.channel_expired_timeout_ms.max(1).unsigned_abs();
        for (door, listener) in [
            (Door::NameServer, self.namesrv),
            (Door::Broker, self.broker),
            (Door::BrokerVip, self.broker_vip),
        ] {
            let entrance = Arc::new(Entrance {
                door,
                dispatcher: dispatcher.clone(),
                metrics: node.metrics.clone(),
                instruments: node.instruments.clone(),
                requests: node.requests.clone(),
                idle: Duration::from_millis(idle_ms),
                stopping: node.stopping.clone(),
            });
            let limits = limits.clone();
            let accepted =
                accept(listener, limits, stop.clone(), tasks.clone(), move |socket, peer| {
                    let entrance = entrance.clone();
                    async move {
                        let _open = Open::new(&entrance.metrics.rocketmq_connections);
                        remoting::serve(&entrance, socket, peer).await;
                    }
                });
            tasks.spawn(accepted);
        }
        let (http, patience) = (self.http, Patience::default());
        let served = http::serve(node.clone(), feed, http, stop.clone(), tasks.clone(), patience);
        tasks.spawn(served);
        Ok(())
    }
}

/// Counts an open connection.
struct Open<'a>(&'a AtomicI64);

impl<'a> Open<'a> {
    fn new(count: &'a AtomicI64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A listener's address for clients: port 0 stands for the one that was bound.
fn shown_address(endpoint: &Endpoint, bound: SocketAddr) -> (Str, i32) {
    let port = if endpoint.port == 0 { bound.port() } else { endpoint.port };
    (endpoint.host.as_str().into(), i32::from(port))
}
