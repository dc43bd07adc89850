//! PULL_MESSAGE and LITE_PULL_MESSAGE: codes 11 and 361. Messages of one queue from an offset on,
//! filtered by tag or by SQL92; nothing there yet: held for the time the client asks, until something comes.
//!
//! ```text
//! admit ── refused                        1 13 16 17 23 24 25 26 27 29
//!   │ look ── found                       0
//!   │      ── scanned, nothing matched    20, nextBeginOffset beyond it
//!   │      ── offset outside              21, nextBeginOffset inside
//!   │      ── at the end ── not to wait   19
//!   └ hold ── records: look again, go on holding if none match
//!          ── group's subscription changed: filter again
//!          ── topic gone: admit again
//!          ── time up                     19, or 20 past what was scanned
//! ```
//! A pull whose subscription is newer than the heartbeat's is served unfiltered (the client filters
//! by text anyway), where the original answers 25 until the next heartbeat. `maxMsgBytes` is not
//! looked at, as in the original; its own bounds hold (32 messages, 256 KiB).
//! A group that an administrator set elsewhere is told so (21, OFFSET_RESET) by the next pull.
//! Leaves out: cold data flow control, `suggestWhichBrokerId`.
//! Source: PullMessageProcessor, DefaultMessageStore.getMessage, PullRequestHoldService.

mod admit;
mod hold;
mod look;

use std::time::Duration;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;

use super::instruments::Spot;
use super::{Call, Refusal};
use crate::backend::{Backend, NodeConfig};
use crate::deliveries::Delivery;
use crate::dispatch::Answer;
use crate::limits::HOLD_MS_MAX;
use crate::remoting::PullHeader;
use crate::response_code::ResponseCode;
use look::Status;
pub(crate) use look::Unseeable;

/// `commitOffset` is to be committed.
const FLAG_COMMIT_OFFSET: i32 = 1;
/// Hold the pull when there is nothing.
const FLAG_SUSPEND: i32 = 2;
/// The request carries the subscription.
const FLAG_SUBSCRIPTION: i32 = 4;

/// What of the request is needed as long as the pull lasts.
#[derive(Debug)]
struct Pull {
    group: Box<str>,
    topic: Box<str>,
    queue_id: i32,
    offset: i64,
    messages_max: usize,
    flags: i32,
    commit_offset: i64,
    suspend_ms: i64,
    subscription_version: i64,
}

impl Pull {
    fn new(header: &PullHeader<'_>) -> Self {
        Self {
            group: header.consumer_group.into(),
            topic: header.topic.into(),
            queue_id: header.queue_id,
            offset: header.queue_offset,
            // The original hands out one message when none is asked for.
            messages_max: usize::try_from(header.max_msg_nums).unwrap_or(0).max(1),
            flags: header.sys_flag,
            commit_offset: header.commit_offset,
            suspend_ms: header.suspend_timeout_ms,
            subscription_version: header.sub_version,
        }
    }

    fn has(&self, flag: i32) -> bool {
        self.flags & flag != 0
    }

    /// How long to hold; `None`: not at all.
    fn hold_time(&self, config: &NodeConfig) -> Option<Duration> {
        let asked = u64::try_from(self.suspend_ms).unwrap_or(0).min(HOLD_MS_MAX);
        let time = if config.long_polling { asked } else { config.short_polling_ms };
        self.has(FLAG_SUSPEND).then_some(Duration::from_millis(time))
    }
}

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Result<Answer, Refusal> {
    let Call { shared, session, reply, request } = call;
    let header = PullHeader::decode(&request)?;
    let pull = Pull::new(&header);
    let mut target = admit::admit(&shared, session.peer(), &pull, &header).await?;
    // A held pull may last for minutes: its frame need not.
    drop(request);
    let reset = look::reset(&shared, &pull, &target).await?;
    let is_reset = reset.is_some();
    let mut seen = match reset {
        Some(seen) => seen,
        None => look::look(&shared, &pull, &target, pull.offset).await?,
    };
    if pull.has(FLAG_COMMIT_OFFSET) && pull.commit_offset >= 0 && !is_reset {
        let (group, queue_id) = (&pull.group, pull.queue_id);
        let backend = &shared.backend;
        backend.commit_offset_unanswered(group, &target.topic, queue_id, pull.commit_offset);
    }
    if seen.is_at_end(pull.offset)
        && let Some(time) = pull.hold_time(&shared.backend.config())
    {
        seen = hold::hold(&shared, &pull, &mut target, time).await?;
    }
    let mut delivered = 0;
    if let Status::Found(found) = &seen.status {
        delivered = found.count;
        let spot =
            Spot { topic: &target.topic, queue_id: pull.queue_id, offset: Some(pull.offset) };
        shared.pass(GatePoint::DeliverBefore, &session, Some(spot)).await?;
        shared.backend.count_delivered(found.count, found.record_bytes);
        shared.tell(EventKind::Deliver, &session, Some(spot), None);
    }
    let delivery = Delivery {
        group: &pull.group,
        topic: target.topic.id,
        queue_id: pull.queue_id,
        next_offset: seen.next_offset,
        messages: delivered,
    };
    shared.deliveries.count(delivery, shared.backend.now_ms());
    let next = Some(seen.next_offset);
    let code = seen.code(pull.offset);
    let spot = Spot { topic: &target.topic, queue_id: pull.queue_id, offset: next };
    if code == ResponseCode::PULL_OFFSET_MOVED {
        let (asked, min, max) = (pull.offset, seen.min_offset, seen.max_offset);
        if matches!(seen.status, Status::OffsetReset) {
            shared.tell_reset(&session, spot, &pull.group, format_args!("as it was told to"));
        } else {
            let why = format_args!("{asked} is not from {min} to {max}");
            shared.tell_reset(&session, spot, &pull.group, why);
        }
    }
    shared.tell(EventKind::RocketmqPull, &session, Some(spot), Some(seen.status.name()));
    let head = reply
        .with_room(code, 6, 160)
        .with_remark(seen.status.name())
        .with_field("suggestWhichBrokerId", 0)
        .with_field("nextBeginOffset", seen.next_offset)
        .with_field("minOffset", seen.min_offset)
        .with_field("maxOffset", seen.max_offset)
        .with_field("topicSysFlag", target.topic.sys_flag)
        .with_field("groupSysFlag", target.group_sys_flag);
    Ok(match seen.status {
        Status::Found(found) => Answer::with_messages(head, found.messages),
        _ => Answer::from(head),
    })
}

#[cfg(test)]
mod tests;
