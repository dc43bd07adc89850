//! Which topic names there may be.

/// Longest name whose folder `name-partition` every file system takes (Kafka's `Topic.MAX_NAME_LENGTH`).
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Names with this prefix belong to RocketMQ: retry topics and escaped names.
pub const ROCKETMQ_PREFIX: &str = "__rmq.";

/// The log of metadata itself; no topic may be called so.
pub const METADATA_TOPIC: &str = "__duolog_metadata";

/// The log of group positions and members.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// The log of transactions.
pub const TRANSACTIONS_TOPIC: &str = "__transaction_state";

/// The log of messages that wait for their time.
pub const TIMER_TOPIC: &str = "rmq_sys_timer";

/// The log of half messages.
pub const HALF_TOPIC: &str = "__rmq.half";

/// The log of messages that groups have in hand.
pub const SHARE_TOPIC: &str = "__share_group_state";

/// Whether clients may not write to the topic of this name, whoever creates it.
pub fn is_internal(name: &str) -> bool {
    is_coordinators(name) || name.starts_with(ROCKETMQ_PREFIX)
}

/// Whether groups, transactions or timers find their coordinator by the partitions of this topic,
/// which then stay what they are.
pub fn is_coordinators(name: &str) -> bool {
    [OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TIMER_TOPIC, HALF_TOPIC, SHARE_TOPIC].contains(&name)
}

/// Whether the node writes there for itself: metadata, positions, transactions, timers. Its records are no
/// client's, so the figures of what clients write leave them out.
pub fn is_own(name: &str) -> bool {
    name == METADATA_TOPIC || is_coordinators(name)
}

/// Checks a name for any topic. Errors with Kafka's words (`Topic.validate`).
pub fn check(name: &str) -> Result<(), String> {
    let refuse = |reason: &str| Err(format!("Topic name is invalid: {reason}"));
    if name.is_empty() {
        return refuse("the empty string is not allowed");
    }
    if name == "." || name == ".." {
        return refuse(&format!("'{name}' is not allowed"));
    }
    if name.len() > TOPIC_NAME_BYTES_MAX {
        return refuse(&format!(
            "the length of '{name}' is longer than the max allowed length {TOPIC_NAME_BYTES_MAX}"
        ));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return refuse(&format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        ));
    }
    if name == METADATA_TOPIC {
        return refuse(&format!("'{name}' is reserved for the node's own metadata"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
