//! The rules for names, with the words in which the original refuses. Source: TopicValidator,
//! FAQUrl.

use super::Refusal;
use crate::backend::{PERM_INHERIT, PERM_READ, PERM_WRITE, Topic};
use crate::limits::{DERIVED_TOPIC_CHARS_MAX, GROUP_CHARS_MAX, TOPIC_CHARS_MAX};
use crate::response_code::ResponseCode;

/// What many remarks of the original end with.
pub(crate) const SEE_FAQ: &str =
    "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

/// The topic whose route is the template for topics that do not exist yet.
pub(crate) const TEMPLATE_TOPIC: &str = "TBW102";

/// Where clients write what they saw of messages.
pub(crate) const TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";

/// The topic of replies is the cluster's name and this. Source: MixAll.getReplyTopic.
pub(crate) const REPLY_TOPIC_SUFFIX: &str = "_REPLY_TOPIC";

/// Retry topics are this and the group.
pub(crate) const RETRY_PREFIX: &str = "%RETRY%";

/// Dead-letter topics are this and the group.
pub(crate) const DLQ_PREFIX: &str = "%DLQ%";

const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";

/// Topics that clients must not create or delete, and whether they must not send to them either.
const SYSTEM_TOPICS: [(&str, bool); 12] = [
    (TEMPLATE_TOPIC, false),
    ("SCHEDULE_TOPIC_XXXX", true),
    ("BenchmarkTest", false),
    ("RMQ_SYS_TRANS_HALF_TOPIC", true),
    (TRACE_TOPIC, false),
    ("RMQ_SYS_TRANS_OP_HALF_TOPIC", true),
    ("TRANS_CHECK_MAX_TIME_TOPIC", true),
    ("SELF_TEST_TOPIC", true),
    ("OFFSET_MOVED_EVENT", true),
    ("CHECKPOINT_TOPIC", false),
    ("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", true),
    ("RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC", true),
];

/// Is it a topic that clients must not create or delete?
pub(crate) fn is_system_topic(topic: &str) -> bool {
    topic.starts_with(SYSTEM_TOPIC_PREFIX) || SYSTEM_TOPICS.iter().any(|(name, _)| *name == topic)
}

/// The names of the system's topics that are fixed.
pub(crate) fn system_topics() -> impl Iterator<Item = &'static str> {
    SYSTEM_TOPICS.iter().map(|(name, _)| *name)
}

/// Is it a topic that clients must not send to?
pub(crate) fn is_send_forbidden(topic: &str) -> bool {
    SYSTEM_TOPICS.iter().any(|(name, forbidden)| *forbidden && *name == topic)
}

fn is_legal(name: &str) -> bool {
    let legal =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'|' | b'_' | b'-');
    name.bytes().all(legal)
}

fn is_blank(name: &str) -> bool {
    name.chars().all(char::is_whitespace)
}

fn invalid(remark: String) -> Refusal {
    Refusal::new(ResponseCode::INVALID_PARAMETER, remark)
}

/// May a topic have this name?
pub(crate) fn validate_topic(topic: &str) -> Result<(), Refusal> {
    if is_blank(topic) {
        return Err(invalid("The specified topic is blank.".into()));
    }
    if !is_legal(topic) {
        return Err(invalid(format!(
            "The specified topic: {topic}, contains illegal characters, allowing only \
             ^[%|a-zA-Z0-9_-]+$"
        )));
    }
    if topic.starts_with(RETRY_PREFIX) || topic.starts_with(DLQ_PREFIX) {
        if topic.len() > DERIVED_TOPIC_CHARS_MAX {
            return Err(invalid(format!(
                "The specified topic is DLQ or Retry topic: {topic}, and it's longer than topic \
                 max length: {DERIVED_TOPIC_CHARS_MAX}"
            )));
        }
    } else if topic.len() > TOPIC_CHARS_MAX {
        return Err(invalid(format!(
            "The specified topic: {topic}, is longer than topic max length: {TOPIC_CHARS_MAX}"
        )));
    }
    Ok(())
}

/// May a group have this name?
pub(crate) fn validate_group(group: &str) -> Result<(), Refusal> {
    if is_blank(group) {
        return Err(invalid("The specified group is blank.".into()));
    }
    if !is_legal(group) {
        return Err(invalid(format!(
            "The specified group: {group}, contains illegal characters, allowing only \
             ^[%|a-zA-Z0-9_-]+$"
        )));
    }
    if group.len() > GROUP_CHARS_MAX {
        return Err(invalid(format!(
            "The specified group: {group}, is longer than group max length: {GROUP_CHARS_MAX}"
        )));
    }
    Ok(())
}

/// A permission as the original prints it, such as `RW-`. Source: PermName.perm2String.
pub(crate) fn permission_text(perm: i32) -> String {
    let letter = |bit, letter| if perm & bit == 0 { '-' } else { letter };
    [letter(PERM_READ, 'R'), letter(PERM_WRITE, 'W'), letter(PERM_INHERIT, 'X')].iter().collect()
}

/// A topic's configuration as remarks show it. Source: TopicConfig.toString.
pub(crate) fn topic_text(name: &str, topic: &Topic) -> String {
    let attributes: Vec<String> =
        topic.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!(
        "TopicConfig [topicName={name}, readQueueNums={}, writeQueueNums={}, perm={}, \
         topicFilterType=SINGLE_TAG, topicSysFlag={}, order={}, attributes={{{}}}]",
        topic.read_queues,
        topic.write_queues,
        permission_text(topic.perm),
        topic.sys_flag,
        topic.order,
        attributes.join(", "),
    )
}

#[cfg(test)]
mod tests;
