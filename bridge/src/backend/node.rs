//! What the bridge is told about the node it runs in.

use std::net::SocketAddr;

use crate::translate::delay::DelayRules;

/// The part of the configuration that RocketMQ clients can feel. Names in doc comments are
/// RocketMQ's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// `brokerClusterName`.
    pub cluster_name: String,
    /// `brokerName`.
    pub broker_name: String,
    /// `brokerIP1:listenPort`: what routes and message ids carry.
    pub broker_address: SocketAddr,
    /// `regionId`.
    pub region_id: String,
    /// `traceOn`.
    pub trace_on: bool,
    /// `traceTopicEnable`: the trace topic is there from the start, with one queue.
    pub trace_topic: bool,
    /// `storeReplyMessageEnable`.
    pub store_replies: bool,
    /// `useServerSideResetOffset`: members hear of new positions by their next pull.
    pub server_side_reset: bool,
    /// `orderMessageEnable`: routes tell the order configuration.
    pub order_messages: bool,
    /// `brokerPermission`, `PERM_` bits.
    pub broker_permission: i32,
    /// `autoCreateTopicEnable`.
    pub auto_create_topic: bool,
    /// `autoCreateSubscriptionGroup`.
    pub auto_create_subscription_group: bool,
    /// `defaultTopicQueueNums`.
    pub default_topic_queues: i32,
    /// `maxMessageSize`, bytes of a body.
    pub message_bytes_max: usize,
    /// `longPollingEnable`.
    pub long_polling: bool,
    /// `enablePropertyFilter`: SQL92 filters.
    pub property_filter: bool,
    /// `shortPollingTimeMills`: how long a pull is held when long polling is off.
    pub short_polling_ms: u64,
    /// `maxTransferBytesOnMessageInMemory`.
    pub transfer_bytes_max: usize,
    /// `maxTransferCountOnMessageInMemory`.
    pub transfer_records_max: usize,
    /// A partition of at most so many bytes counts as held in memory
    /// (`accessMessageInMemoryMaxRatio` of RAM).
    pub in_memory_bytes_max: u64,
    /// `notifyConsumerIdsChangedEnable`.
    pub notify_consumer_ids_changed: bool,
    /// `messageDelayLevel`, `timerMaxDelaySec`, `timerWheelEnable`.
    pub delays: DelayRules,
    /// `recallMessageEnable`.
    pub recall: bool,
}

/// What the node has done since it started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeCounters {
    /// Start of the node, milliseconds since 1970.
    pub started_ms: i64,
    /// Records appended, both protocols.
    pub records_in: u64,
    /// Records handed to readers, both protocols.
    pub records_out: u64,
    /// `records_in` as it was when yesterday and when today began.
    pub records_in_mornings: [u64; 2],
    /// `records_out` as it was when yesterday and when today began.
    pub records_out_mornings: [u64; 2],
    /// Bytes appended.
    pub bytes_in: u64,
    /// Bytes handed to readers.
    pub bytes_out: u64,
    /// Records appended per second, averaged over the last 10, 60 and 600 seconds.
    pub records_in_per_second: [f64; 3],
    /// Records handed out per second, over the same spans.
    pub records_out_per_second: [f64; 3],
    /// Append time of the earliest batch still kept, if there is any.
    pub earliest_append_ms: Option<i64>,
    /// Used part of the data directory's disk, 0 to 1.
    pub disk_used_ratio: f64,
    /// Bytes of that disk, all and unused.
    pub disk_bytes: [u64; 2],
    /// The data directory.
    pub data_dir: String,
}
