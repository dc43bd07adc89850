//! A request that waits until something can be taken.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::{Asked, Target, find_topic};
use crate::backend::{Backend, BackendError, Wake};
use crate::dispatch::Shared;
use crate::limits::HOLD_MS_MAX;
use crate::processors::Refusal;
use crate::remoting::RemotingCommand;
use crate::response_code::ResponseCode;

/// When a queue that gave nothing is to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Once something lies behind this offset.
    Log(i64),
    /// Once the group gives something back.
    Ready,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Found,
    TimeUp,
    /// It would have been one too many.
    Full,
}

/// Looks into queues.
pub(crate) trait Look: Send {
    /// Looks into one.
    fn queue(&mut self, queue_id: i32) -> impl Future<Output = Result<Wait, Refusal>> + Send;

    /// Nothing more is needed.
    fn is_done(&self) -> bool;

    /// There is something to answer.
    fn has_found(&self) -> bool;
}

/// How long a request waits, by its own words; `None` if not at all.
/// Errors: its time was up before it came.
pub(crate) fn poll_time<B: Backend>(
    request: &RemotingCommand,
    shared: &Shared<B>,
) -> Result<Option<Duration>, TooLate> {
    let poll_ms: i64 = request.field("pollTime").map_err(|error| TooLate::Unread(error.into()))?;
    let born_ms: i64 = request.field("bornTime").map_err(|error| TooLate::Unread(error.into()))?;
    let now_ms = shared.backend.now_ms();
    let born_ms = if born_ms == 0 { now_ms } else { born_ms };
    let late_ms = now_ms.saturating_sub(born_ms).saturating_sub(poll_ms);
    if late_ms > TOO_LATE_MS {
        return Err(TooLate::Passed);
    }
    // By the client's clock or by ours, whichever ends sooner.
    let left_ms = poll_ms.min(late_ms.saturating_neg());
    let left_ms = u64::try_from(left_ms).unwrap_or(0).min(HOLD_MS_MAX);
    Ok((poll_ms > 0 && left_ms > 0).then_some(Duration::from_millis(left_ms)))
}

/// Source: PopMessageRequestHeader.isTimeoutTooMuch.
const TOO_LATE_MS: i64 = 500;

/// As clients ask again after an error. Source: `pullTimeDelayMillsWhenException`.
const FAILED_DELAY: Duration = Duration::from_secs(3);

/// Why a request is not worth a look.
#[derive(Debug)]
pub(crate) enum TooLate {
    /// Whoever asked has gone on by now.
    Passed,
    /// It does not say when.
    Unread(Refusal),
}

/// A queue that gave nothing.
enum Waiting<F> {
    /// For its log.
    Log(Pin<Box<F>>),
    /// For the group's word.
    Ready,
    /// It could not be looked at, and is tried again.
    Failed(Pin<Box<Sleep>>),
}

/// Looks into all queues meant, then again into each that there may be something in, until something is
/// found or `time` is up. One that cannot be looked at is passed over, and tried again as long as there
/// are others to wait for.
/// Errors: of the first of these queues, if nothing was found and there is no other.
pub(crate) async fn look<B: Backend>(
    shared: &Shared<B>,
    asked: &Asked,
    target: &Target,
    time: Option<Duration>,
    look: &mut impl Look,
) -> Result<Ended, Refusal> {
    let topic = &target.topic;
    let queues = target.queues(asked, shared);
    // Before the first look, so that no word falls between.
    let mut hold =
        time.and_then(|_| shared.pops.hold(&asked.group, topic.id, asked.queue_id, queues.len()));
    let mut time_up = pin!(tokio::time::sleep(time.unwrap_or_default()));
    let mut due = queues.clone();
    let mut waits = BTreeMap::new();
    let mut fault = None;
    loop {
        for queue_id in due.drain(..) {
            let waiting = match look.queue(queue_id).await {
                Ok(Wait::Log(offset)) => {
                    Waiting::Log(Box::pin(shared.backend.wait_beyond(topic, queue_id, offset)))
                }
                Ok(Wait::Ready) => Waiting::Ready,
                Err(refusal) => pass_over(asked, queue_id, refusal, &mut fault),
            };
            waits.insert(queue_id, waiting);
            if look.has_found() && look.is_done() {
                break;
            }
        }
        if look.has_found() {
            return Ok(Ended::Found);
        }
        let has_others = waits.values().any(|waiting| !matches!(waiting, Waiting::Failed(_)));
        let fault_now = fault.take_if(|_| !has_others || hold.is_none());
        let hold = match (&mut hold, fault_now) {
            (_, Some(fault)) => return Err(fault),
            (Some(hold), None) => hold,
            (None, None) => return Ok(if time.is_some() { Ended::Full } else { Ended::TimeUp }),
        };
        let ended = tokio::select! {
            biased;
            () = &mut time_up => return Ok(Ended::TimeUp),
            ended = any(&mut waits) => ended,
            () = hold.ready() => Vec::new(),
        };
        // A log that always has something new may not let the runtime look at the clock.
        if Instant::now() >= time_up.deadline() {
            return Ok(Ended::TimeUp);
        }
        for (queue_id, wake) in ended {
            match wake {
                Wake::Advanced => due.push(queue_id),
                Wake::Stopping => return Ok(Ended::TimeUp),
                Wake::Gone => {
                    let is_same = find_topic(shared, &asked.name)?.id == topic.id;
                    let (topic, partition) = (topic.name.to_string(), queue_id);
                    let refusal = BackendError::NotLeader { topic, partition }.into();
                    if !is_same {
                        return Err(refusal);
                    }
                    waits.insert(queue_id, pass_over(asked, queue_id, refusal, &mut fault));
                }
            }
        }
        for queue_id in hold.hear() {
            if queues.contains(&queue_id) && !due.contains(&queue_id) {
                due.push(queue_id);
            }
        }
    }
}

fn pass_over<F>(
    asked: &Asked,
    queue_id: i32,
    refusal: Refusal,
    fault: &mut Option<Refusal>,
) -> Waiting<F> {
    let Asked { group, name, .. } = asked;
    tracing::debug!(%group, topic = %name, queue_id, %refusal, "a queue is passed over");
    fault.get_or_insert(refusal);
    Waiting::Failed(Box::pin(tokio::time::sleep(FAILED_DELAY)))
}

/// Those whose wait has ended, as soon as there is one.
async fn any<F: Future<Output = Wake>>(waits: &mut BTreeMap<i32, Waiting<F>>) -> Vec<(i32, Wake)> {
    poll_fn(|context| {
        let mut ended = Vec::new();
        for (queue_id, waiting) in &mut *waits {
            let wake = match waiting {
                Waiting::Log(log) => log.as_mut().poll(context),
                Waiting::Ready => Poll::Pending,
                Waiting::Failed(delay) => delay.as_mut().poll(context).map(|()| Wake::Advanced),
            };
            if let Poll::Ready(wake) = wake {
                ended.push((*queue_id, wake));
            }
        }
        if ended.is_empty() { Poll::Pending } else { Poll::Ready(ended) }
    })
    .await
}

impl Ended {
    /// What the answer to a pop says.
    pub(crate) fn code(self) -> ResponseCode {
        match self {
            Self::Found => ResponseCode::SUCCESS,
            Self::TimeUp => ResponseCode::POLLING_TIMEOUT,
            Self::Full => ResponseCode::POLLING_FULL,
        }
    }

    /// Its remark. Source: GetMessageStatus.
    pub(crate) fn remark(self) -> &'static str {
        match self {
            Self::Found => "FOUND",
            Self::TimeUp | Self::Full => "NO_MESSAGE_IN_QUEUE",
        }
    }
}

#[cfg(test)]
mod tests;
