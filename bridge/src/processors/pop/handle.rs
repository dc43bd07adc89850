//! The handle of a popped message (`POP_CK`, `extraInfo`): by which delivery its holder has it.
//!
//! `ckQueueOffset popTime invisibleTime reviveQueueId retryFlag brokerName queueId [msgQueueOffset]`
//!
//! Queue and offset come in fields of their own beside it; of the handle itself only the delivery's time
//! and whether it was in order are needed. Source: ExtraInfoUtil.

use crate::processors::Refusal;
use crate::processors::rules::RETRY_PREFIX;
use crate::response_code::ResponseCode;

/// The revive queue of what was popped in order. Source: KeyBuilder.POP_ORDER_REVIVE_QUEUE.
pub(crate) const ORDER_REVIVE_QUEUE: i32 = 999;

/// Where the others say they are noted; there is no such queue here.
pub(crate) const REVIVE_QUEUE: i32 = 0;

/// One delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) popped_ms: i64,
    pub(crate) revive_queue: i32,
}

impl Handle {
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = text.split(' ').collect();
        let part = |place: usize, name: &str| {
            parts.get(place).copied().ok_or_else(|| {
                let remark = format!("{name} fail, extraInfoStrs length {}", parts.len());
                Refusal::new(ResponseCode::SYSTEM_ERROR, remark)
            })
        };
        Ok(Self {
            popped_ms: number(part(1, "getPopTime")?)?,
            revive_queue: number(part(3, "getReviveQid")?)?,
        })
    }

    pub(crate) fn is_ordered(self) -> bool {
        self.revive_queue == ORDER_REVIVE_QUEUE
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, Refusal> {
    text.parse().map_err(|_| {
        let remark = format!("extraInfo: {text:?} is no number");
        Refusal::new(ResponseCode::SYSTEM_ERROR, remark)
    })
}

/// How the client tells what it pops from a topic apart. Source: ExtraInfoUtil.getRetry.
pub(crate) fn retry_flag(topic: &str) -> char {
    match topic.strip_prefix(RETRY_PREFIX) {
        Some(rest) if rest.contains('+') => '2',
        Some(_) => '1',
        None => '0',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_read_as_clients_write_them() {
        let read = |text| Handle::parse(text).map_err(|refusal| refusal.to_string());
        let handle = |popped_ms, revive_queue| Ok(Handle { popped_ms, revive_queue });
        assert_eq!(read("5 1700 60000 0 0 broker-a 3 5"), handle(1700, 0));
        assert_eq!(read("5 1700 60000 999"), handle(1700, 999));
        for (text, fault) in [
            ("", "getPopTime fail, extraInfoStrs length 1"),
            ("5 1700 60000", "getReviveQid fail, extraInfoStrs length 3"),
            ("5 x 60000 0", "extraInfo: \"x\" is no number"),
        ] {
            assert!(read(text).is_err_and(|error| error.ends_with(fault)), "{text}");
        }
    }

    #[test]
    fn retry_topics_are_flagged() {
        let flags = ["t", "%RETRY%g", "%RETRY%g+t", "a+b"].map(retry_flag);
        assert_eq!(flags, ['0', '1', '2', '0']);
    }
}
