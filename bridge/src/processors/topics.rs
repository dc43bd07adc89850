//! Topics under the names that RocketMQ clients use.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::Refusal;
use super::rules::{self, REPLY_TOPIC_SUFFIX, TEMPLATE_TOPIC, TRACE_TOPIC};
use crate::backend::{Backend, PERM_INHERIT, PERM_READ, PERM_WRITE, Topic, TopicSpec};
use crate::dispatch::Shared;
use crate::response_code::ResponseCode;
use crate::translate::keys::KeyIndex;
use crate::translate::names;
use crate::translate::send::{KeySource, TimestampBounds, Tombstones};

impl<B: Backend> Shared<B> {
    /// The topic that clients call `name`; none of the node's own.
    pub(crate) fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        let topic = self.backend.topic(&names::stored_topic(name).ok()?)?;
        (!is_own(&topic)).then_some(topic)
    }

    /// As [`Self::topic`]; the template for new topics and what else is built in show even before
    /// anybody sent to them.
    pub(crate) fn topic_or_template(&self, name: &str) -> Option<Arc<Topic>> {
        self.topic(name).or_else(|| {
            if name == TEMPLATE_TOPIC {
                return self.template();
            }
            self.built_in(name).map(|spec| Arc::new(of_spec(&spec)))
        })
    }

    /// Is it a topic that clients must not create or delete?
    pub(crate) fn is_system_topic(&self, name: &str) -> bool {
        rules::is_system_topic(name) || self.is_reply_topic(name)
    }

    fn is_reply_topic(&self, name: &str) -> bool {
        let cluster = name.strip_suffix(REPLY_TOPIC_SUFFIX);
        cluster.is_some_and(|cluster| cluster == self.backend.config().cluster_name)
    }

    /// What a built-in topic is that comes into being by the first send to it: the one for replies,
    /// and that for traces where `traceTopicEnable` says so (else it is made as any other).
    pub(crate) fn built_in(&self, name: &str) -> Option<TopicSpec> {
        let is_trace_topic = name == TRACE_TOPIC && self.backend.config().trace_topic;
        (is_trace_topic || self.is_reply_topic(name))
            .then(|| plain_topic(Arc::from(name), 1, PERM_READ | PERM_WRITE, 0))
    }

    /// `None` when topics are not created by themselves.
    fn template(&self) -> Option<Arc<Topic>> {
        let config = self.backend.config();
        let queues = config.default_topic_queues;
        config.auto_create_topic.then(|| {
            Arc::new(Topic {
                name: Arc::from(TEMPLATE_TOPIC),
                id: TopicId::ZERO,
                partitions: queues,
                read_queues: queues,
                write_queues: queues,
                perm: PERM_INHERIT | PERM_READ | PERM_WRITE,
                sys_flag: 0,
                order: false,
                internal: false,
                key_source: KeySource::default(),
                key_index: KeyIndex::default(),
                tombstones: Tombstones::default(),
                timestamps: TimestampBounds::default(),
                attributes: BTreeMap::new(),
            })
        })
    }
}

/// Is it a topic of the node itself (`__consumer_offsets`)? Retry topics are internal towards Kafka
/// alone.
pub(crate) fn is_own(topic: &Topic) -> bool {
    topic.internal && !names::is_bridge_topic(&topic.name)
}

/// The name under which a topic called `name` is stored.
pub(crate) fn stored_name(name: &str) -> Result<Arc<str>, Refusal> {
    match names::stored_topic(name) {
        Ok(stored) => Ok(Arc::from(&*stored)),
        Err(error) => Err(Refusal::new(ResponseCode::MESSAGE_ILLEGAL, error.to_string())),
    }
}

/// A topic as clients make them.
pub(crate) fn plain_topic(name: Arc<str>, queues: i32, perm: i32, sys_flag: i32) -> TopicSpec {
    TopicSpec {
        name,
        read_queues: queues,
        write_queues: queues,
        perm,
        sys_flag,
        order: false,
        attributes: BTreeMap::new(),
    }
}

/// The topic that `spec` will make.
pub(crate) fn of_spec(spec: &TopicSpec) -> Topic {
    Topic {
        name: Arc::clone(&spec.name),
        id: TopicId::ZERO,
        partitions: spec.partitions(),
        read_queues: spec.read_queues,
        write_queues: spec.write_queues,
        perm: spec.perm,
        sys_flag: spec.sys_flag,
        order: spec.order,
        internal: false,
        key_source: KeySource::default(),
        key_index: KeyIndex::default(),
        tombstones: Tombstones::default(),
        timestamps: TimestampBounds::default(),
        attributes: spec.attributes.clone(),
    }
}
