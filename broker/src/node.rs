//! One node, put together: everything that a request may need, and the order of start and stop.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{DeleteGroup, DeletedTopic};
use duolog_log_core::event::Events;
use duolog_log_core::ids::{NodeId, TopicId};
use duolog_log_core::storage::disk::{Disk, DiskError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::controller::image::Image;
use crate::controller::{Controller, ControllerError, MetadataLogError};
use crate::coordinators::halves::Halves;
use crate::coordinators::inflight::Inflight;
use crate::coordinators::timers::Timers;
use crate::coordinators::transactions::Transactions;
use crate::coordinators::{Coordinators, Parts};
use crate::data_dir::{DataDir, DataDirError};
use crate::heavy::BatchReading;
use crate::instruments::Instruments;
use crate::kafka::codec::Str;
use crate::kafka::errors::ErrorCode;
use crate::kafka::fetch_sessions::FetchSessions;
use crate::log_dirs::{FreshIds, LogDirs};
use crate::metrics::Metrics;
use crate::partitions::{Partitions, PlacementError, Shared, deletion, housekeeping, offline};
use crate::random;
use crate::server::memory::{AnswerMemory, RequestMemory};
use crate::telemetry::Telemetry;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The metadata log.
    #[error("metadata log: {0}")]
    Metadata(MetadataLogError),
    /// The folders of partitions.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Random bytes.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl From<MetadataLogError> for StartError {
    fn from(error: MetadataLogError) -> Self {
        match error {
            MetadataLogError::Placement(error) => Self::Placement(error),
            error => Self::Metadata(error),
        }
    }
}

/// Everything that serves requests.
#[derive(Debug)]
pub struct Node {
    /// The static configuration.
    pub config: Arc<Config>,
    /// Metadata.
    pub controller: Arc<Controller>,
    /// Logs.
    pub partitions: Arc<Partitions>,
    /// Groups.
    pub coordinators: Arc<Coordinators>,
    /// Kafka's transactions.
    pub transactions: Arc<Transactions>,
    /// RocketMQ's messages that wait for their time.
    pub timers: Arc<Timers>,
    /// RocketMQ's half messages.
    pub halves: Arc<Halves>,
    /// What groups have taken of partitions and not settled.
    pub inflight: Arc<Inflight>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Events and gates.
    pub instruments: Arc<Instruments>,
    /// What Kafka consumers are told the news of.
    pub fetch_sessions: FetchSessions,
    /// What clients push of their metrics.
    pub telemetry: Telemetry,
    /// Room for what clients send.
    pub requests: RequestMemory,
    /// What clients have not taken yet.
    pub answers: AnswerMemory,
    /// How batches are decompressed and checked.
    pub batches: BatchReading,
    /// Set once no new work is to be begun.
    pub stopping: CancellationToken,
    /// Set once log directories have failed without which the node cannot go on: see
    /// [`crate::log_dirs::LogDirs::loss`].
    pub lost: CancellationToken,
    /// What is done now and then, until the node stops.
    pub background: TaskTracker,
    /// What Metadata tells the clients of each listener; set when the listeners are bound.
    advertised: OnceLock<Vec<(Str, i32)>>,
    /// This node's name server, as clients reach it; set when the listeners are bound.
    name_server: OnceLock<SocketAddr>,
}

impl Node {
    /// Opens the node ([`Self::open`]) and starts its coordinators.
    ///
    /// Errors: also, before anything is touched, an import that has not come to its end.
    pub async fn start(
        config: Arc<Config>,
        disk: Arc<dyn Disk>,
        events: Events,
    ) -> Result<Arc<Self>, StartError> {
        config.log_dirs.iter().try_for_each(|dir| DataDir::check_imported(&*disk, dir))?;
        let node = Self::open(config, disk, events).await?;
        node.coordinators.start();
        node.transactions.start();
        node.timers.start();
        node.halves.start();
        Ok(node)
    }

    /// Takes the log directories on `disk`, replays the metadata, and starts the background work of
    /// partitions. No coordinator reads its log: it would have positions on topics forgotten that an
    /// import has yet to make.
    pub async fn open(
        config: Arc<Config>,
        disk: Arc<dyn Disk>,
        events: Events,
    ) -> Result<Arc<Self>, StartError> {
        let fresh = fresh_ids(config.log_dirs.len())?;
        let log_dirs = LogDirs::open(disk, &config.log_dirs, config.node_id, &fresh)?;
        let stopping = CancellationToken::new();
        let instruments = Arc::new(Instruments::new(events));
        let metrics = Arc::new(Metrics::default());
        let shared = Arc::new(Shared::new(
            log_dirs,
            NodeId(config.node_id),
            instruments.clone(),
            metrics.clone(),
            stopping.clone(),
        )?);
        let partitions = Arc::new(Partitions::new(shared));
        let (background, lost) = (TaskTracker::new(), CancellationToken::new());
        let (watched, told) = (partitions.clone(), instruments.clone());
        background.spawn(offline::watch(watched, told, stopping.clone(), lost.clone()));
        let image = Image::empty(config.values.clone());
        let controller =
            Arc::new(Controller::open(image, partitions.clone(), instruments.clone()).await?);
        let parts = Parts {
            config: config.clone(),
            controller: controller.clone(),
            partitions: partitions.clone(),
            instruments: instruments.clone(),
            stopping: stopping.clone(),
        };
        let coordinators = Coordinators::new(parts.clone());
        let transactions = Transactions::new(parts.clone(), coordinators.clone());
        let (timers, halves) = (Timers::new(parts.clone()), Halves::new(parts.clone()));
        let inflight = Inflight::new(parts);
        let node = Arc::new(Self {
            fetch_sessions: FetchSessions::new(config.fetch_session_slots),
            telemetry: Telemetry::new(config.telemetry.max_bytes),
            requests: RequestMemory::new(config.connections.requests_bytes_max),
            answers: AnswerMemory::default(),
            config,
            controller,
            partitions,
            coordinators,
            transactions,
            timers,
            halves,
            inflight,
            metrics,
            instruments,
            batches: BatchReading::default(),
            stopping,
            lost,
            background,
            advertised: OnceLock::new(),
            name_server: OnceLock::new(),
        });
        let gone = deletion::sweep(&node.partitions, &node.controller.image())?;
        if let Err(error) = node.controller.forget_deleted(gone).await {
            tracing::warn!(%error, "finished deletions stay noted until the next start");
        }
        housekeeping::start(&node);
        Ok(node)
    }

    /// `node.id`.
    pub fn id(&self) -> i32 {
        self.config.node_id
    }

    /// The cluster's id, as Kafka prints it.
    pub fn cluster_id(&self) -> Str {
        self.controller.image().cluster_id().to_string().into()
    }

    /// The epoch in which this node leads every partition.
    pub fn leader_epoch(&self) -> i32 {
        self.partitions.shared().leader_epoch().0
    }

    /// Tells, once, the addresses by which clients reach each listener.
    pub fn set_advertised(&self, addresses: Vec<(Str, i32)>) {
        // The listeners are bound once.
        let _ = self.advertised.set(addresses);
    }

    /// Host and port that the clients of a listener are told.
    pub fn advertised(&self, listener: usize) -> (Str, i32) {
        let addresses = self.advertised.get();
        let address = addresses.and_then(|all| all.get(listener).or_else(|| all.first()));
        address.cloned().unwrap_or_else(|| ("127.0.0.1".into(), 9092))
    }

    /// Tells, once, where clients reach this node's name server.
    pub fn set_name_server(&self, address: SocketAddr) {
        // The listeners are bound once.
        let _ = self.name_server.set(address);
    }

    /// The cluster's name servers, as RocketMQ clients are given them: `host:port;host:port`.
    pub fn name_servers(&self) -> String {
        let config = &self.config.rocketmq;
        if !config.name_servers.is_empty() {
            return config.name_servers.join(";");
        }
        let default = || SocketAddr::new(config.broker_ip, config.namesrv_port);
        self.name_server.get().copied().unwrap_or_else(default).to_string()
    }

    /// Sees to it that there are coordinators, creating their topic on first need.
    pub async fn open_coordinators(&self) -> Result<(), ErrorCode> {
        let topic = self.coordinators.offsets_topic().await;
        topic.map(drop).map_err(|error| ErrorCode::from(&error))
    }

    /// Deletes a topic with its logs and the positions committed on it. Once begun this comes to its
    /// end, also when the caller no longer waits.
    pub async fn delete_topic(&self, topic: TopicId) -> Result<(), ControllerError> {
        let coordinators = self.coordinators.clone();
        let (transactions, timers) = (self.transactions.clone(), self.timers.clone());
        let (halves, inflight) = (self.halves.clone(), self.inflight.clone());
        let gone = move |name| {
            transactions.topic_deleted(topic);
            timers.topic_deleted(topic);
            halves.topic_deleted(topic);
            inflight.topic_deleted(topic);
            coordinators.topic_deleted(&DeletedTopic { name, id: topic });
        };
        self.controller.delete_topic_and(topic, gone).await
    }

    /// Deletes a group without members: its positions, and what it has popped.
    ///
    /// Errors: as [`Coordinators::delete_group`].
    pub async fn delete_group(&self, delete: DeleteGroup) -> Result<(), GroupError> {
        let group = delete.group.clone();
        let answer = self.coordinators.delete_group(delete).await;
        if matches!(answer, Ok(()) | Err(GroupError::GroupIdNotFound)) {
            self.inflight.group_deleted(&group);
        }
        answer
    }

    /// Stops the background work, closes every log and notes that the stop was clean.
    pub async fn stop(&self) {
        self.stopping.cancel();
        housekeeping::stop(self).await;
    }
}

/// What a first start writes into so many log directories.
fn fresh_ids(directories: usize) -> std::io::Result<FreshIds> {
    let directories = (0..directories).map(|_| random::uuid()).collect::<Result<_, _>>()?;
    Ok(FreshIds { cluster: random::uuid()?, directories })
}
