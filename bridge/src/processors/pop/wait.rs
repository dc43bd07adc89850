//! A request that waits until something can be taken.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

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

/// Why a request is not worth a look.
#[derive(Debug)]
pub(crate) enum TooLate {
    /// Whoever asked has gone on by now.
    Passed,
    /// It does not say when.
    Unread(Refusal),
}

/// Looks into all queues meant, again and again until something is found or `time` is up.
pub(crate) async fn look<B: Backend>(
    shared: &Shared<B>,
    asked: &Asked,
    target: &Target,
    time: Option<Duration>,
    look: &mut impl Look,
) -> Result<Ended, Refusal> {
    let topic = &target.topic;
    let queues = target.queues(asked, shared);
    let hold =
        time.and_then(|_| shared.pops.hold(&asked.group, topic.id, asked.queue_id, queues.len()));
    let mut time_up = pin!(tokio::time::sleep(time.unwrap_or_default()));
    loop {
        // Asked for before the look, so that no word falls between.
        let ready = hold.as_ref().map(|hold| hold.ready());
        let mut waits = Vec::with_capacity(queues.len());
        for queue_id in &queues {
            waits.push((*queue_id, look.queue(*queue_id).await?));
            if look.is_done() {
                break;
            }
        }
        if look.has_found() {
            return Ok(Ended::Found);
        }
        let Some(ready) = ready else {
            return Ok(if time.is_some() { Ended::Full } else { Ended::TimeUp });
        };
        let logs = waits.into_iter().filter_map(|(queue_id, wait)| match wait {
            Wait::Log(offset) => {
                Some(Box::pin(shared.backend.wait_beyond(topic, queue_id, offset)))
            }
            Wait::Ready => None,
        });
        let mut logs: Vec<_> = logs.collect();
        let wake = tokio::select! {
            biased;
            wake = any(&mut logs) => wake,
            () = ready => Wake::Advanced,
            () = &mut time_up => return Ok(Ended::TimeUp),
        };
        match wake {
            Wake::Advanced => {}
            Wake::Stopping => return Ok(Ended::TimeUp),
            Wake::Gone => {
                find_topic(shared, &asked.name)?;
                let (topic, partition) = (topic.name.to_string(), asked.queue_id);
                return Err(BackendError::NotLeader { topic, partition }.into());
            }
        }
    }
}

/// The first of them to end.
async fn any<F: Future<Output = Wake>>(logs: &mut [Pin<Box<F>>]) -> Wake {
    poll_fn(|context| {
        for log in &mut *logs {
            if let Poll::Ready(wake) = log.as_mut().poll(context) {
                return Poll::Ready(wake);
            }
        }
        Poll::Pending
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
