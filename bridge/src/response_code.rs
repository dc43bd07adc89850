//! The only map to RocketMQ's response codes.

use std::fmt;

use crate::backend::BackendError;

/// A response code. Source: ResponseCode, RemotingSysResponseCode, ControllerResponseCode of 5.5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseCode(pub i32);

macro_rules! response_codes {
    ($($(#[$meta:meta])* $name:ident = $code:literal;)*) => {
        impl ResponseCode {
            $($(#[$meta])* pub const $name: Self = Self($code);)*

            /// The code's name; `None` for one that is not known.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

response_codes! {
    /// Ok.
    SUCCESS = 0;
    /// Unexpected failure; remark holds text.
    SYSTEM_ERROR = 1;
    /// Queue full or fast-fail flow control.
    SYSTEM_BUSY = 2;
    /// No processor for this code.
    REQUEST_CODE_NOT_SUPPORTED = 3;
    /// Unused.
    TRANSACTION_FAILED = 4;
    /// Stored, sync flush timed out.
    FLUSH_DISK_TIMEOUT = 10;
    /// Stored, no usable slave.
    SLAVE_NOT_AVAILABLE = 11;
    /// Stored, slave ack timed out.
    FLUSH_SLAVE_TIMEOUT = 12;
    /// Bad body, properties or topic.
    MESSAGE_ILLEGAL = 13;
    /// Store not writable (slave, shutdown, disk full).
    SERVICE_NOT_AVAILABLE = 14;
    /// Version not supported.
    VERSION_NOT_SUPPORTED = 15;
    /// Topic, broker or group permission missing.
    NO_PERMISSION = 16;
    /// No such topic or route.
    TOPIC_NOT_EXIST = 17;
    /// Topic exists.
    TOPIC_EXIST_ALREADY = 18;
    /// No new message, long poll ended.
    PULL_NOT_FOUND = 19;
    /// All filtered or flow control; pull again from nextBeginOffset.
    PULL_RETRY_IMMEDIATELY = 20;
    /// Offset outside min..max; use nextBeginOffset.
    PULL_OFFSET_MOVED = 21;
    /// Nothing found.
    QUERY_NOT_FOUND = 22;
    /// Bad subscription expression.
    SUBSCRIPTION_PARSE_FAILED = 23;
    /// Topic not in subscription of group.
    SUBSCRIPTION_NOT_EXIST = 24;
    /// SubVersion older than broker has.
    SUBSCRIPTION_NOT_LATEST = 25;
    /// Group config missing and auto-create off.
    SUBSCRIPTION_GROUP_NOT_EXIST = 26;
    /// SQL filter data missing.
    FILTER_DATA_NOT_EXIST = 27;
    /// SQL filter data older.
    FILTER_DATA_NOT_LATEST = 28;
    /// Parameter out of range.
    INVALID_PARAMETER = 29;
    /// Legacy transaction check.
    TRANSACTION_SHOULD_COMMIT = 200;
    /// Legacy transaction check.
    TRANSACTION_SHOULD_ROLLBACK = 201;
    /// Legacy transaction check.
    TRANSACTION_STATE_UNKNOW = 202;
    /// Legacy transaction check.
    TRANSACTION_STATE_GROUP_WRONG = 203;
    /// Legacy.
    NO_BUYER_ID = 204;
    /// Unit mode.
    NOT_IN_CURRENT_UNIT = 205;
    /// Group or client has no connection.
    CONSUMER_NOT_ONLINE = 206;
    /// Direct consume or client call timed out.
    CONSUME_MSG_TIMEOUT = 207;
    /// Ack or change-invisible: offset outside the queue; client: query found nothing.
    NO_MESSAGE = 208;
    /// Too many waiting pops.
    POLLING_FULL = 209;
    /// Pop long poll ended.
    POLLING_TIMEOUT = 210;
    /// Broker name unknown.
    BROKER_NOT_EXIST = 211;
    /// Index building behind.
    BROKER_DISPATCH_NOT_COMPLETE = 212;
    /// Broadcast group: no broker offsets.
    BROADCAST_CONSUMPTION = 213;
    /// Flow control.
    FLOW_CONTROL = 215;
    /// Static topic: other broker leads.
    NOT_LEADER_FOR_QUEUE = 501;
    /// Recall handle invalid or feature off.
    ILLEGAL_OPERATION = 604;
    /// Server is closing; client should reconnect.
    GO_AWAY = 1500;
    /// Too many LMQ.
    LMQ_QUOTA_EXCEEDED = 2017;
    /// Too many lite subscriptions.
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 2018;
    /// Auth user missing.
    USER_NOT_EXIST = 3001;
    /// Auth policy missing.
    POLICY_NOT_EXIST = 3002;
}

impl fmt::Display for ResponseCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "{} {name}", self.0),
            None => self.0.fmt(formatter),
        }
    }
}

impl From<&BackendError> for ResponseCode {
    /// What a client is told of a node's refusal.
    fn from(error: &BackendError) -> Self {
        match error {
            BackendError::UnknownTopic { .. } => Self::TOPIC_NOT_EXIST,
            BackendError::UnknownPartition { .. }
            | BackendError::InvalidTopic { .. }
            | BackendError::InvalidSetting { .. } => Self::INVALID_PARAMETER,
            // Producers try another queue on this one, consumers pull again.
            BackendError::NotLeader { .. } | BackendError::NotWritable { .. } => {
                Self::SERVICE_NOT_AVAILABLE
            }
            BackendError::OffsetOutOfRange { .. } => Self::PULL_OFFSET_MOVED,
            BackendError::RecordTooLarge { .. } => Self::MESSAGE_ILLEGAL,
            BackendError::Busy => Self::SYSTEM_BUSY,
            BackendError::GroupKindConflict { .. } => Self::SUBSCRIPTION_GROUP_NOT_EXIST,
            BackendError::CorruptBatch { .. }
            | BackendError::NotEnoughReplicas
            | BackendError::CoordinatorNotReady { .. }
            | BackendError::LimitReached { .. } => Self::SYSTEM_ERROR,
        }
    }
}

#[cfg(test)]
mod tests;
