//! What name servers and brokers tell of themselves.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::encode;
use crate::json::{BodyError, JsonOut, JsonStyle, ToJson, Value};

/// A broker name and the addresses behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerData {
    /// The cluster's name.
    pub cluster: String,
    /// The broker's name.
    pub broker_name: String,
    /// Broker id and `ip:port`; id 0 is written to.
    pub addresses: Vec<(i64, String)>,
}

struct Addresses<'a>(&'a [(i64, String)]);

impl ToJson for Addresses<'_> {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        for (id, address) in self.0 {
            object.entry(id, address);
        }
        object.end();
    }
}

impl ToJson for BrokerData {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("brokerAddrs", &Addresses(&self.addresses))
            .field("brokerName", &self.broker_name)
            .field("cluster", &self.cluster)
            .field("enableActingMaster", &false)
            .end();
    }
}

/// A topic's queues behind one broker name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueData {
    /// The broker's name.
    pub broker_name: String,
    /// Queues 0.. to read.
    pub read_queue_nums: i32,
    /// Queues 0.. to write.
    pub write_queue_nums: i32,
    /// Permission bits.
    pub perm: i32,
    /// TopicSysFlag.
    pub topic_sys_flag: i32,
}

impl QueueData {
    /// Reads the queues of a route: body of REGISTER_TOPIC_IN_NAMESRV (217).
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode_of_route(body: &[u8]) -> Result<Vec<Self>, BodyError> {
        if body.is_empty() {
            return Ok(Vec::new());
        }
        let value = Value::parse(body)?;
        let queues = value.elements("queueDatas")?.iter().map(|value| {
            Ok(Self {
                broker_name: value.text("brokerName")?.unwrap_or_default(),
                read_queue_nums: value.number("readQueueNums")?.unwrap_or_default(),
                write_queue_nums: value.number("writeQueueNums")?.unwrap_or_default(),
                perm: value.number("perm")?.unwrap_or_default(),
                topic_sys_flag: value.number("topicSysFlag")?.unwrap_or_default(),
            })
        });
        queues.collect()
    }
}

impl ToJson for QueueData {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("brokerName", &self.broker_name)
            .field("perm", &self.perm)
            .field("readQueueNums", &self.read_queue_nums)
            .field("topicSysFlag", &self.topic_sys_flag)
            .field("writeQueueNums", &self.write_queue_nums)
            .end();
    }
}

/// Body of the answer to GET_ROUTEINFO_BY_TOPIC (105).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRouteData {
    /// Queues by broker name.
    pub queues: Vec<QueueData>,
    /// The brokers.
    pub brokers: Vec<BrokerData>,
    /// How queues are ordered: `broker:count;...`.
    pub order_conf: Option<String>,
}

impl ToJson for TopicRouteData {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        object
            .field("brokerDatas", &self.brokers)
            .field("filterServerTable", &BTreeMap::<String, Vec<String>>::new());
        if let Some(conf) = &self.order_conf {
            object.field("orderTopicConf", conf);
        }
        object.field("queueDatas", &self.queues).end();
    }
}

impl TopicRouteData {
    /// As a body.
    #[must_use]
    pub fn encode(&self, style: JsonStyle) -> Bytes {
        JsonOut::text_of(self, style)
    }
}

/// Body of the answer to GET_BROKER_CLUSTER_INFO (106).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterInfo {
    /// All brokers.
    pub brokers: Vec<BrokerData>,
}

impl ToJson for ClusterInfo {
    fn write(&self, out: &mut JsonOut) {
        let brokers: BTreeMap<&str, &BrokerData> =
            self.brokers.iter().map(|broker| (broker.broker_name.as_str(), broker)).collect();
        let mut clusters: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for broker in &self.brokers {
            clusters.entry(&broker.cluster).or_default().insert(&broker.broker_name);
        }
        let clusters: BTreeMap<&str, Vec<&str>> = clusters
            .into_iter()
            .map(|(cluster, names)| (cluster, names.into_iter().collect()))
            .collect();
        out.object().field("brokerAddrTable", &brokers).field("clusterAddrTable", &clusters).end();
    }
}

/// Body of the answer to GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicList {
    /// RocketMQ's names.
    pub topics: Vec<String>,
}

impl ToJson for TopicList {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("topicList", &self.topics).end();
    }
}

/// Body of the answer to GET_BROKER_RUNTIME_INFO (28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KVTable {
    /// Names and values.
    pub table: BTreeMap<String, String>,
}

impl ToJson for KVTable {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("table", &self.table).end();
    }
}

encode! { ClusterInfo TopicList KVTable }
