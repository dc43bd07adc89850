//! What only administrators ask for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::Shown;
use super::{ConsumeStats, MessageQueue, SubscriptionData, TopicConfig, encode};
use crate::backend::SubscriptionGroup;
use crate::json::{JsonOut, ToJson};

/// Body of the answers to QUERY_TOPICS_BY_CONSUMER (343) and GET_SYSTEM_TOPIC_LIST_FROM_NS (304).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicsOfBroker {
    /// `ip:port`.
    pub broker_address: Option<String>,
    /// RocketMQ's names.
    pub topics: Vec<String>,
}

impl ToJson for TopicsOfBroker {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        if let Some(address) = &self.broker_address {
            object.field("brokerAddr", address);
        }
        object.field("topicList", &self.topics).end();
    }
}

/// Body of the answer to QUERY_SUBSCRIPTION_BY_CONSUMER (345).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySubscriptionResponseBody {
    /// The group.
    pub group: String,
    /// RocketMQ's name of the topic.
    pub topic: String,
    /// What its live members subscribe to there.
    pub subscription: Option<SubscriptionData>,
}

impl ToJson for QuerySubscriptionResponseBody {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        object.field("group", &self.group);
        if let Some(subscription) = &self.subscription {
            object.field("subscriptionData", subscription);
        }
        object.field("topic", &self.topic).end();
    }
}

/// When the messages of one queue were stored; milliseconds since 1970, -1 for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueTimeSpan {
    /// The queue.
    pub queue: MessageQueue,
    /// The first message that is left.
    pub min_ms: i64,
    /// The last message.
    pub max_ms: i64,
    /// The last message consumed.
    pub consumed_ms: i64,
    /// For how long the next message to consume has waited, in milliseconds.
    pub delay_ms: i64,
}

impl ToJson for QueueTimeSpan {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("consumeTimeStamp", &self.consumed_ms)
            .field("consumeTimeStampStr", &human_time(self.consumed_ms))
            .field("delayTime", &self.delay_ms)
            .field("maxTimeStamp", &self.max_ms)
            .field("maxTimeStampStr", &human_time(self.max_ms))
            .field("messageQueue", &self.queue)
            .field("minTimeStamp", &self.min_ms)
            .field("minTimeStampStr", &human_time(self.min_ms))
            .end();
    }
}

/// Body of the answer to QUERY_CONSUME_TIME_SPAN (303).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryConsumeTimeSpanBody {
    /// By queue.
    pub spans: Vec<QueueTimeSpan>,
}

impl ToJson for QueryConsumeTimeSpanBody {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("consumeTimeSpanSet", &self.spans).end();
    }
}

/// `2026-11-29#20:01:17:207`, in UTC. Source: UtilAll.timeMillisToHumanString2.
fn human_time(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (seconds, ms) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}#{hour:02}:{minute:02}:{second:02}:{ms:03}")
}

/// Year, month and day of a day counted from 1970, by counting in years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // Days from March of the year 0 to January of 1970.
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, of_month)
}

/// Body of the answer to GET_BROKER_CONSUME_STATS (317).
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumeStatsList {
    /// `ip:port`.
    pub broker_address: String,
    /// By group: one for each topic.
    pub groups: Vec<(String, Vec<ConsumeStats>)>,
}

impl ToJson for ConsumeStatsList {
    fn write(&self, out: &mut JsonOut) {
        let all = || self.groups.iter().flat_map(|(_, stats)| stats);
        let offsets = || all().flat_map(|stats| &stats.offsets).map(|(_, offsets)| offsets);
        let lag: i64 = offsets().map(|one| one.broker_offset - one.consumer_offset).sum();
        let in_flight: i64 = offsets().map(|one| one.pull_offset - one.consumer_offset).sum();
        let lists: Vec<BTreeMap<&str, &Vec<ConsumeStats>>> =
            self.groups.iter().map(|(name, stats)| BTreeMap::from([(&**name, stats)])).collect();
        out.object()
            .field("brokerAddr", &self.broker_address)
            .field("consumeStatsList", &lists)
            .field("totalDiff", &lag)
            .field("totalInflightDiff", &in_flight)
            .end();
    }
}

/// Body of the answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionGroupWrapper<'a> {
    /// All of them.
    pub groups: &'a [Arc<SubscriptionGroup>],
    /// What the tables are as of, milliseconds since 1970.
    pub timestamp_ms: i64,
}

impl ToJson for SubscriptionGroupWrapper<'_> {
    fn write(&self, out: &mut JsonOut) {
        let table: BTreeMap<&str, Shown<'_>> =
            self.groups.iter().map(|group| (&*group.name, Shown(group))).collect();
        out.object()
            .field("dataVersion", &DataVersion { timestamp_ms: self.timestamp_ms })
            .field("forbiddenTable", &BTreeMap::<String, i32>::new())
            .field("subscriptionGroupTable", &table)
            .end();
    }
}

impl SubscriptionGroupWrapper<'_> {
    /// As a body.
    #[must_use]
    pub fn encode(&self) -> bytes::Bytes {
        JsonOut::text_of(self, crate::json::JsonStyle::Fastjson)
    }
}

/// Body of the answer to GET_ALL_TOPIC_CONFIG (21): TopicConfigAndMappingSerializeWrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfigSerializeWrapper {
    /// All of them.
    pub topics: Vec<TopicConfig>,
    /// What the table is as of, milliseconds since 1970.
    pub timestamp_ms: i64,
}

impl ToJson for TopicConfigSerializeWrapper {
    fn write(&self, out: &mut JsonOut) {
        let table: BTreeMap<&str, &TopicConfig> =
            self.topics.iter().map(|topic| (&*topic.topic_name, topic)).collect();
        let version = DataVersion { timestamp_ms: self.timestamp_ms };
        let none = BTreeMap::<String, i32>::new();
        out.object()
            .field("dataVersion", &version)
            .field("mappingDataVersion", &version)
            .field("topicConfigTable", &table)
            .field("topicQueueMappingDetailMap", &none)
            .field("topicQueueMappingInfoMap", &none)
            .end();
    }
}

/// One of the spans of [`BrokerStatsData`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BrokerStatsItem {
    /// How many.
    pub sum: i64,
    /// How many a second.
    pub tps: f64,
    /// How many a call.
    pub average: f64,
}

impl ToJson for BrokerStatsItem {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("avgpt", &self.average)
            .field("sum", &self.sum)
            .field("tps", &self.tps)
            .end();
    }
}

/// Body of the answer to VIEW_BROKER_STATS_DATA (315).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BrokerStatsData {
    /// The last minute.
    pub minute: BrokerStatsItem,
    /// The last hour.
    pub hour: BrokerStatsItem,
    /// The last day.
    pub day: BrokerStatsItem,
}

impl ToJson for BrokerStatsData {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("statsDay", &self.day)
            .field("statsHour", &self.hour)
            .field("statsMinute", &self.minute)
            .end();
    }
}

/// Body of the answer to GET_BROKER_HA_STATUS (907): a master without slaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HARuntimeInfo {
    /// What stands in for the end of the commit log: bytes of all logs.
    pub bytes: i64,
}

impl ToJson for HARuntimeInfo {
    fn write(&self, out: &mut JsonOut) {
        struct Client;
        impl ToJson for Client {
            fn write(&self, out: &mut JsonOut) {
                out.object()
                    .field("activated", &false)
                    .field("lastReadTimestamp", &0)
                    .field("lastWriteTimestamp", &0)
                    .field("masterFlushOffset", &0)
                    .field("maxOffset", &0)
                    .field("transferredByteInSecond", &0)
                    .end();
            }
        }
        out.object()
            .field("haClientRuntimeInfo", &Client)
            .field("haConnectionInfo", &Vec::<i32>::new())
            .field("inSyncSlaveNums", &0)
            .field("master", &true)
            .field("masterCommitLogMaxOffset", &self.bytes)
            .end();
    }
}

/// Body of the answer to UPDATE_AND_GET_GROUP_FORBIDDEN (353).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupForbidden {
    /// The group.
    pub group: String,
    /// RocketMQ's name of the topic.
    pub topic: String,
    /// May the group read it?
    pub readable: bool,
}

impl ToJson for GroupForbidden {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("group", &self.group)
            .field("readable", &self.readable)
            .field("topic", &self.topic)
            .end();
    }
}

/// An entry of a consume queue, made of the message it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumeQueueData {
    /// Where the message is.
    pub physical_offset: i64,
    /// Its bytes as a message.
    pub bytes: i32,
    /// The Java hash of its tag.
    pub tags_code: i64,
}

impl ToJson for ConsumeQueueData {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("eval", &false)
            .field("physicOffset", &self.physical_offset)
            .field("physicSize", &self.bytes)
            .field("tagsCode", &self.tags_code)
            .end();
    }
}

/// Body of the answer to QUERY_CONSUME_QUEUE (321).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryConsumeQueueResponseBody {
    /// What a live group subscribes to, if one was named.
    pub subscription: Option<SubscriptionData>,
    /// Why there is none.
    pub filter_data: Option<String>,
    /// The entries.
    pub entries: Vec<ConsumeQueueData>,
    /// End; exclusive.
    pub max_index: i64,
    /// Earliest; inclusive.
    pub min_index: i64,
}

impl ToJson for QueryConsumeQueueResponseBody {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        if let Some(text) = &self.filter_data {
            object.field("filterData", text);
        }
        object
            .field("maxQueueIndex", &self.max_index)
            .field("minQueueIndex", &self.min_index)
            .field("queueData", &self.entries);
        if let Some(subscription) = &self.subscription {
            object.field("subscriptionData", subscription);
        }
        object.end();
    }
}

/// Nothing here is versioned by counting: a table is as of the moment it was asked for.
struct DataVersion {
    timestamp_ms: i64,
}

impl ToJson for DataVersion {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("counter", &0)
            .field("stateVersion", &0)
            .field("timestamp", &self.timestamp_ms)
            .end();
    }
}

encode! {
    TopicsOfBroker QuerySubscriptionResponseBody QueryConsumeTimeSpanBody ConsumeStatsList
    TopicConfigSerializeWrapper BrokerStatsData HARuntimeInfo GroupForbidden
    QueryConsumeQueueResponseBody
}

#[cfg(test)]
mod tests;
