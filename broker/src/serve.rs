//! `duolog serve`: bind everything, say where, serve until a signal, stop cleanly.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::config::listener::Endpoint;
use crate::kafka::codec::Str;
use crate::node::{Node, StartError};
use crate::server::listener::{BindError, ConnectionLimits, accept, bind};
use crate::server::{connection, shutdown};

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
    /// Signals, or the standard output.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Every listening socket of a node.
struct Doors {
    kafka: Vec<TcpListener>,
}

/// Serves until SIGINT or SIGTERM.
pub async fn run(config: Config) -> Result<(), ServeError> {
    let config = Arc::new(config);
    // Ports first: a node that cannot be reached must not touch its data.
    let doors = Doors::bind(&config).await?;
    let events = Events::silent(NodeId(config.node_id));
    let node = Node::start(config.clone(), events).await?;
    node.set_advertised(doors.advertised(&config)?);
    announce(&node, &doors)?;
    let tasks = TaskTracker::new();
    doors.open(&node, &tasks);
    let signal = shutdown::signalled().await?;
    tracing::info!(signal, "stopping");
    node.stopping.cancel();
    tasks.close();
    if tokio::time::timeout(DRAIN_LIMIT, tasks.wait()).await.is_err() {
        tracing::warn!(open = tasks.len(), "connections did not end in time");
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
        Ok(Self { kafka })
    }

    /// What clients of each Kafka listener are told.
    fn advertised(&self, config: &Config) -> std::io::Result<Vec<(Str, i32)>> {
        let shown = config.advertised.as_ref().unwrap_or(&config.listeners);
        let addresses = self.kafka.iter().zip(shown);
        addresses
            .map(|(listener, endpoint)| Ok(shown_address(endpoint, listener.local_addr()?)))
            .collect()
    }

    fn open(self, node: &Arc<Node>, tasks: &TaskTracker) {
        let bounds = &node.config.connections;
        let limits = ConnectionLimits::new(bounds.max_connections, bounds.max_connections_per_ip);
        for (index, listener) in self.kafka.into_iter().enumerate() {
            let node = node.clone();
            let (limits, stopping) = (limits.clone(), node.stopping.clone());
            let accepted =
                accept(listener, limits, stopping, tasks.clone(), move |socket, peer| {
                    let node = node.clone();
                    async move {
                        let open = Open::new(&node.metrics.kafka_connections);
                        connection::serve(node.clone(), socket, peer, index).await;
                        drop(open);
                    }
                });
            tasks.spawn(accepted);
        }
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

/// Says in six lines where everything is.
fn announce(node: &Node, doors: &Doors) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let kafka: std::io::Result<Vec<String>> =
        doors.kafka.iter().map(|listener| Ok(listener.local_addr()?.to_string())).collect();
    writeln!(out, "duolog {} node {}", env!("CARGO_PKG_VERSION"), node.id())?;
    writeln!(out, "  kafka       {}", kafka?.join(", "))?;
    writeln!(out, "  data        {}", node.config.data_dir.display())?;
    out.flush()
}

#[expect(dead_code, reason = "the RocketMQ doors follow")]
fn socket_address(host: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(host, port)
}
