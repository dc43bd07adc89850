//! The node's configuration: known keys, where values come from, and the typed result.
//!
//! Values come from a TOML file, the environment and flags, in rising priority. Every key of Kafka
//! and RocketMQ is known; one that nothing acts on yet is accepted at its default only.

pub mod args;
pub mod change;
pub mod describe;
mod groups;
pub mod key;
pub mod listener;
pub mod topic;
pub mod values;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use duolog_bridge::translate::delay::DelayRules;
use duolog_coordinator::txn::rocketmq::check_back::CheckConfig;

use self::args::{Profile, ServeArgs};
pub use self::groups::{ConsumerGroupConfig, GroupConfig};
use self::listener::{Endpoint, ListenerError};
use self::values::{ConfigError, Values};
use crate::limits::REQUEST_MEMORY_DIVISOR;
use crate::system;

/// A start that the configuration forbids.
#[derive(Debug, thiserror::Error)]
pub enum StartConfigError {
    /// A key or value is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address is wrong or not allowed.
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// No log directory.
    #[error("at least one log directory must be defined via log.dirs or log.dir")]
    NoLogDir,
    /// A log directory twice.
    #[error("duplicate log directory found: {} in log.dirs", .0.display())]
    DuplicateLogDir(PathBuf),
}

/// Whether RocketMQ groups show a protocol type to Kafka tools (`rmq.group.listing`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupListing {
    /// Protocol type "", so that `kafka-consumer-groups` prints positions and lag.
    Plain,
    /// Protocol type `rocketmq`.
    Typed,
}

/// When a RocketMQ-written record is synced (`flushDiskType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushDiskType {
    /// Before the answer.
    Sync,
    /// Within `flushIntervalCommitLog`.
    Async,
}

/// The RocketMQ side.
#[derive(Clone, Debug)]
pub struct RocketmqConfig {
    /// `brokerClusterName`.
    pub cluster_name: String,
    /// `brokerName`: the one logical broker that every partition belongs to.
    pub broker_name: String,
    /// `brokerIP1`: what routes and message ids carry, so an address, not a name.
    pub broker_ip: IpAddr,
    /// Address that the RocketMQ ports bind to.
    pub bind_address: IpAddr,
    /// Broker port; 0 picks a free one.
    pub listen_port: u16,
    /// `namesrvAddr`: the cluster's name servers, for clients that ask the HTTP port; none: this node's.
    pub name_servers: Vec<String>,
    /// NameServer port; 0 picks a free one.
    pub namesrv_port: u16,
    /// Whether a send to an unknown topic creates it.
    pub auto_create_topic: bool,
    /// `traceTopicEnable`: whether the trace topic is there from the start.
    pub trace_topic: bool,
    /// `storeReplyMessageEnable`: whether replies are stored, too.
    pub store_replies: bool,
    /// `brokerPermission`: bits of what clients may do, 4 read and 2 write.
    pub broker_permission: i32,
    /// `orderMessageEnable`: whether routes tell the order configuration.
    pub order_messages: bool,
    /// `useServerSideResetOffset`.
    pub server_side_reset: bool,
    /// Whether an unknown group is created by its first heartbeat.
    pub auto_create_subscription_group: bool,
    /// Upper bound of an automatically created topic's queues.
    pub default_topic_queue_nums: i32,
    /// When records are synced.
    pub flush_disk_type: FlushDiskType,
    /// Bound of the time to an asynchronous sync.
    pub flush_interval_ms: i64,
    /// How long SYNC_FLUSH waits before FLUSH_DISK_TIMEOUT.
    pub sync_flush_timeout_ms: i64,
    /// Bytes of one message's body.
    pub max_message_size: i32,
    /// Whether a pull at the end waits.
    pub long_polling: bool,
    /// `enablePropertyFilter`.
    pub property_filter: bool,
    /// Percent of memory up to which a partition counts as "in memory" for the first offset.
    pub access_message_in_memory_max_ratio: i32,
    /// Bytes of one pull's answer.
    pub max_transfer_bytes: i32,
    /// Messages of one pull's answer.
    pub max_transfer_count: i32,
    /// Silence after which a client counts as gone.
    pub channel_expired_timeout_ms: i64,
    /// Whether members hear of a change at once (code 40).
    pub notify_consumer_ids_changed: bool,
    /// `messageDelayLevel`, `timerMaxDelaySec`, `timerWheelEnable`.
    pub delays: DelayRules,
    /// `recallMessageEnable`.
    pub recall: bool,
    /// When producers are asked about their half messages.
    pub checks: CheckConfig,
}

/// Bounds of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionConfig {
    /// A longer Kafka frame closes its connection.
    pub request_max_bytes: i32,
    /// Silence after which a Kafka connection is closed.
    pub max_idle_ms: i64,
    /// Bytes of requests that are being read or worked on, over all connections of both protocols.
    pub requests_bytes_max: u64,
}

/// How often the log keeps house. Times in ms.
#[derive(Clone, Copy, Debug)]
pub struct HousekeepingConfig {
    /// Whether logs are compacted at all.
    pub compacts: bool,
    /// Between two looks for segments to delete.
    pub retention_check_interval_ms: i64,
    /// Between two writes of the recovery points.
    pub flush_checkpoint_interval_ms: i64,
    /// Between two writes of the log start offsets.
    pub start_checkpoint_interval_ms: i64,
    /// Between two writes of the high watermarks.
    pub high_watermark_checkpoint_interval_ms: i64,
    /// Between two looks for forgotten producers.
    pub producer_id_expiration_check_interval_ms: i64,
}

/// Kafka's transactions. Times in ms.
#[derive(Clone, Copy, Debug)]
pub struct TransactionConfig {
    /// The longest timeout that a producer may ask for.
    pub timeout_max_ms: i32,
    /// Between two looks for transactions that last too long.
    pub abort_interval_ms: i64,
    /// Age at which an idle transactional id is forgotten.
    pub id_expiration_ms: i64,
    /// Between two looks for such ids.
    pub expiration_interval_ms: i64,
    /// Partitions of `__transaction_state` when it is created.
    pub topic_partitions: i32,
    /// Segment size of `__transaction_state`.
    pub topic_segment_bytes: i32,
}

/// Everything that `duolog serve` needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The values themselves, for DescribeConfigs and topic defaults.
    pub values: Values,
    /// `node.id`.
    pub node_id: i32,
    /// `log.dirs`, absolute; at least one.
    pub log_dirs: Vec<PathBuf>,
    /// Kafka listeners.
    pub listeners: Vec<Endpoint>,
    /// What Metadata answers for each listener, in their order; `None`: the bound address.
    pub advertised: Option<Vec<Endpoint>>,
    /// Metrics and control.
    pub http: (IpAddr, u16),
    /// Whether `--control` opened `/gates` and `/events`.
    pub control: bool,
    /// Bounds of connections.
    pub connections: ConnectionConfig,
    /// Kafka groups.
    pub group: GroupConfig,
    /// Kafka's transactions.
    pub transactions: TransactionConfig,
    /// RocketMQ side.
    pub rocketmq: RocketmqConfig,
    /// The log's housekeeping.
    pub housekeeping: HousekeepingConfig,
    /// Partitions of a topic created without a count.
    pub num_partitions: i32,
    /// Whether Metadata creates unknown topics.
    pub auto_create_topics: bool,
    /// Whether topics may be deleted.
    pub delete_topics: bool,
    /// Bound of one Fetch answer, whatever the client asks.
    pub fetch_max_bytes: i32,
    /// Fetch sessions at once.
    pub fetch_session_slots: usize,
    /// How RocketMQ groups show to Kafka tools.
    pub group_listing: GroupListing,
    /// Whether clients are asked for metrics, and what becomes of them.
    pub telemetry: TelemetryConfig,
}

/// What clients push (KIP-714).
#[derive(Clone, Copy, Debug)]
pub struct TelemetryConfig {
    /// `telemetry.receiver` is `metrics`: the HTTP port shows it. Else nobody is asked.
    pub received: bool,
    /// `telemetry.max.bytes`: one push, compressed.
    pub max_bytes: i32,
}

impl Config {
    /// Reads file, environment and flags.
    ///
    /// Errors when a key or value is unknown, not acted on, or not allowed on this address.
    pub fn load(
        args: &ServeArgs,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, StartConfigError> {
        let mut values = Values::default();
        if args.profile == Some(Profile::Fast) {
            values.set_fast_profile()?;
        }
        if let Some(path) = &args.config {
            values.set_from_file(path)?;
        }
        values.set_from_environment(environment)?;
        for assignment in &args.assignments {
            values.set_from_flag(assignment)?;
        }
        if let Some(path) = &args.data_dir {
            values.set_data_dir(path)?;
        }
        Self::from_values(values, args.control)
    }

    fn from_values(values: Values, control: bool) -> Result<Self, StartConfigError> {
        let log_dirs = log_dirs(&values)?;
        let config = Self {
            node_id: values.parse("node.id")?,
            log_dirs,
            listeners: listener::parse("listeners", values.text("listeners").unwrap_or_default())?,
            advertised: match values.text("advertised.listeners") {
                Some(text) => Some(listener::parse("advertised.listeners", text)?),
                None => None,
            },
            http: (listener::address(&values, "http.host")?, values.parse("http.port")?),
            control,
            connections: connections(&values)?,
            group: groups::group(&values)?,
            transactions: transactions(&values)?,
            rocketmq: rocketmq(&values)?,
            housekeeping: housekeeping(&values)?,
            num_partitions: values.parse("num.partitions")?,
            auto_create_topics: values.parse("auto.create.topics.enable")?,
            delete_topics: values.parse("delete.topic.enable")?,
            fetch_max_bytes: values.parse("fetch.max.bytes")?,
            fetch_session_slots: values.parse("max.incremental.fetch.session.cache.slots")?,
            group_listing: match values.text("rmq.group.listing") {
                Some("typed") => GroupListing::Typed,
                _ => GroupListing::Plain,
            },
            telemetry: TelemetryConfig {
                received: values.text("telemetry.receiver") == Some("metrics"),
                max_bytes: values.parse("telemetry.max.bytes")?,
            },
            values,
        };
        // Also a default topic must resolve, or every first write would fail later.
        topic::TopicConfig::resolve(&config.values, &topic::Overrides::new())?;
        listener::check_exposure(&config)?;
        listener::check_ports(&config)?;
        Ok(config)
    }

    /// The first of the log directories.
    pub fn data_dir(&self) -> &Path {
        self.log_dirs.first().map_or(Path::new(""), PathBuf::as_path)
    }
}

fn log_dirs(values: &Values) -> Result<Vec<PathBuf>, StartConfigError> {
    let text = values.set_value("log.dirs").or_else(|| values.set_value("log.dir"));
    let mut dirs: Vec<PathBuf> = Vec::new();
    for dir in key::list(text.map_or("duolog-data", |(dirs, _)| dirs)) {
        // Absolute, so that what is shown can be found from anywhere.
        let dir = std::path::absolute(dir).unwrap_or_else(|_| PathBuf::from(dir));
        if dirs.contains(&dir) {
            return Err(StartConfigError::DuplicateLogDir(dir));
        }
        dirs.push(dir);
    }
    if dirs.is_empty() { Err(StartConfigError::NoLogDir) } else { Ok(dirs) }
}

fn connections(values: &Values) -> Result<ConnectionConfig, ConfigError> {
    let request_max_bytes: i32 = values.parse("socket.request.max.bytes")?;
    Ok(ConnectionConfig {
        request_max_bytes,
        max_idle_ms: values.parse("connections.max.idle.ms")?,
        requests_bytes_max: requests_bytes_max(
            values,
            u64::from(request_max_bytes.unsigned_abs()),
        )?,
    })
}

/// `queued.max.request.bytes`; where that is not positive, which in Kafka is no bound, a part of the memory.
fn requests_bytes_max(values: &Values, request_bytes_max: u64) -> Result<u64, ConfigError> {
    const KEY: &str = "queued.max.request.bytes";
    let set: i64 = values.parse(KEY)?;
    if set <= 0 {
        let part = system::memory_bytes() / REQUEST_MEMORY_DIVISOR;
        return Ok(part.max(request_bytes_max.saturating_mul(2)));
    }
    let bytes = set.unsigned_abs();
    if bytes < request_bytes_max {
        // Source: KafkaConfig.validateValues.
        return Err(ConfigError::InvalidValue {
            key: KEY,
            value: set.to_string(),
            origin: "read at start".to_owned(),
            reason: format!("must be at least socket.request.max.bytes, {request_bytes_max}"),
        });
    }
    Ok(bytes)
}

fn transactions(values: &Values) -> Result<TransactionConfig, ConfigError> {
    Ok(TransactionConfig {
        timeout_max_ms: values.parse("transaction.max.timeout.ms")?,
        abort_interval_ms: values
            .parse("transaction.abort.timed.out.transaction.cleanup.interval.ms")?,
        id_expiration_ms: values.parse("transactional.id.expiration.ms")?,
        expiration_interval_ms: values
            .parse("transaction.remove.expired.transaction.cleanup.interval.ms")?,
        topic_partitions: values.parse("transaction.state.log.num.partitions")?,
        topic_segment_bytes: values.parse("transaction.state.log.segment.bytes")?,
    })
}

/// RocketMQ's part of `values`.
///
/// Errors when a value is none of its key.
pub fn rocketmq(values: &Values) -> Result<RocketmqConfig, StartConfigError> {
    let text = |name| values.text(name).unwrap_or_default().to_owned();
    Ok(RocketmqConfig {
        cluster_name: text("rocketmq.brokerClusterName"),
        broker_name: text("rocketmq.brokerName"),
        broker_ip: listener::address(values, "rocketmq.brokerIP1")?,
        bind_address: listener::address(values, "rocketmq.bindAddress")?,
        listen_port: values.parse("rocketmq.listenPort")?,
        name_servers: listener::name_servers(values)?,
        namesrv_port: values.parse("rocketmq.namesrvListenPort")?,
        auto_create_topic: values.parse("rocketmq.autoCreateTopicEnable")?,
        trace_topic: values.parse("rocketmq.traceTopicEnable")?,
        broker_permission: values.parse("rocketmq.brokerPermission")?,
        order_messages: values.parse("rocketmq.orderMessageEnable")?,
        server_side_reset: values.parse("rocketmq.useServerSideResetOffset")?,
        store_replies: values.parse("rocketmq.storeReplyMessageEnable")?,
        auto_create_subscription_group: values.parse("rocketmq.autoCreateSubscriptionGroup")?,
        default_topic_queue_nums: values.parse("rocketmq.defaultTopicQueueNums")?,
        flush_disk_type: match values.text("rocketmq.flushDiskType") {
            Some("SYNC_FLUSH") => FlushDiskType::Sync,
            _ => FlushDiskType::Async,
        },
        flush_interval_ms: values.parse("rocketmq.flushIntervalCommitLog")?,
        sync_flush_timeout_ms: values.parse("rocketmq.syncFlushTimeout")?,
        max_message_size: values.parse("rocketmq.maxMessageSize")?,
        long_polling: values.parse("rocketmq.longPollingEnable")?,
        property_filter: values.parse("rocketmq.enablePropertyFilter")?,
        access_message_in_memory_max_ratio: values
            .parse("rocketmq.accessMessageInMemoryMaxRatio")?,
        max_transfer_bytes: values.parse("rocketmq.maxTransferBytesOnMessageInMemory")?,
        max_transfer_count: values.parse("rocketmq.maxTransferCountOnMessageInMemory")?,
        channel_expired_timeout_ms: values.parse("rocketmq.channelExpiredTimeout")?,
        notify_consumer_ids_changed: values.parse("rocketmq.notifyConsumerIdsChangedEnable")?,
        delays: delays(values)?,
        recall: values.parse("rocketmq.recallMessageEnable")?,
        checks: CheckConfig {
            timeout_ms: values.parse("rocketmq.transactionTimeOut")?,
            interval_ms: values.parse("rocketmq.transactionCheckInterval")?,
            times_max: values.parse("rocketmq.transactionCheckMax")?,
            age_max_ms: values.parse::<i64>("rocketmq.fileReservedTime")?.saturating_mul(3_600_000),
        },
    })
}

fn delays(values: &Values) -> Result<DelayRules, ConfigError> {
    let name = "rocketmq.messageDelayLevel";
    let text = values.text(name).unwrap_or_default();
    let levels_ms = DelayRules::levels_ms(text).map_err(|error| ConfigError::InvalidValue {
        key: name,
        value: text.to_owned(),
        origin: "read at start".to_owned(),
        reason: error.to_string(),
    })?;
    let max_delay_s: i64 = values.parse("rocketmq.timerMaxDelaySec")?;
    Ok(DelayRules {
        levels_ms,
        max_delay_ms: max_delay_s.saturating_mul(1_000),
        timers: values.parse("rocketmq.timerWheelEnable")?,
    })
}

fn housekeeping(values: &Values) -> Result<HousekeepingConfig, ConfigError> {
    Ok(HousekeepingConfig {
        compacts: values.parse("log.cleaner.enable")?,
        retention_check_interval_ms: values.parse("log.retention.check.interval.ms")?,
        flush_checkpoint_interval_ms: values.parse("log.flush.offset.checkpoint.interval.ms")?,
        start_checkpoint_interval_ms: values
            .parse("log.flush.start.offset.checkpoint.interval.ms")?,
        high_watermark_checkpoint_interval_ms: values
            .parse("replica.high.watermark.checkpoint.interval.ms")?,
        producer_id_expiration_check_interval_ms: values
            .parse("producer.id.expiration.check.interval.ms")?,
    })
}

#[cfg(test)]
mod tests;
