//! A pull that waits at the end of its queue.

use std::pin::pin;
use std::time::Duration;

use duolog_log_core::ids::TopicId;
use tokio::time::Instant;

use super::admit::{self, Target};
use super::look::{self, Seen};
use super::{FLAG_SUBSCRIPTION, Pull};
use crate::backend::{Backend, BackendError, Wake};
use crate::dispatch::Shared;
use crate::processors::Refusal;
use crate::response_code::ResponseCode;

enum Event {
    Log(Wake),
    SubscriptionChanged,
    TimeUp,
}

/// Waits at most `time` for something to answer. Records that do not match move the place it waits
/// at, so that they are looked at once.
pub(super) async fn hold<B: Backend>(
    shared: &Shared<B>,
    pull: &Pull,
    target: &mut Target,
    time: Duration,
) -> Result<Seen, Refusal> {
    let Some(hold) = shared.holds.hold(&pull.group) else {
        let remark = "too many pulls are waiting";
        return Err(Refusal::new(ResponseCode::SYSTEM_BUSY, remark));
    };
    let mut time_up = pin!(tokio::time::sleep(time));
    let mut position = pull.offset;
    loop {
        // Asked for before the filter is read, so that no change falls between.
        let changed = hold.changed();
        if let Some(seen) = look::reset(shared, pull, target).await? {
            return Ok(seen);
        }
        if refresh_filter(shared, pull, target)? {
            position = pull.offset;
        }
        // A log that always has something new, though nothing that matches, may never let the time be looked at.
        let event = if Instant::now() >= time_up.deadline() {
            Event::TimeUp
        } else {
            let topic = &target.topic;
            let log = shared.backend.wait_beyond(topic, pull.queue_id, position);
            tokio::select! {
                biased;
                wake = log => Event::Log(wake),
                () = changed => Event::SubscriptionChanged,
                () = &mut time_up => Event::TimeUp,
            }
        };
        match event {
            Event::SubscriptionChanged => {}
            Event::Log(Wake::Advanced) => {
                let seen = look::look(shared, pull, target, position).await?;
                if !seen.is_scanned() || seen.next_offset <= position {
                    return Ok(seen);
                }
                position = seen.next_offset;
            }
            Event::Log(Wake::Gone) => {
                let topic = admit::find_topic(shared, &pull.topic)?;
                if topic.id == target.topic.id && topic.id == TopicId::ZERO {
                    // Nobody has sent to it yet.
                    continue;
                }
                if topic.id == target.topic.id {
                    let (topic, partition) = (topic.name.to_string(), pull.queue_id);
                    return Err(BackendError::NotLeader { topic, partition }.into());
                }
                target.topic = topic;
                return look::look(shared, pull, target, pull.offset).await;
            }
            Event::Log(Wake::Stopping) | Event::TimeUp => {
                let view = look::queue(shared, pull, target).await?;
                return Ok(match Seen::without_reading(position, view) {
                    Some(seen) if position == pull.offset => seen,
                    _ => Seen::nothing_matched(position, view),
                });
            }
        }
    }
}

/// Takes the group's present subscription, where the pull goes by it; is it another?
fn refresh_filter<B: Backend>(
    shared: &Shared<B>,
    pull: &Pull,
    target: &mut Target,
) -> Result<bool, Refusal> {
    if pull.has(FLAG_SUBSCRIPTION) {
        return Ok(false);
    }
    let Some(config) = shared.backend.subscription_group(&pull.group) else { return Ok(false) };
    let filter = admit::registered_filter(shared, pull, &config)?;
    let is_other = filter != target.filter;
    target.filter = filter;
    Ok(is_other)
}
