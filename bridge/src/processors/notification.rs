//! NOTIFICATION: code 200054. Is there something to pop for a group? If not, held until there is, for
//! the time the client asks. Nothing is taken. Source: NotificationProcessor.

use super::pop::gather::queue_view;
use super::pop::wait::{self, Ended, Look, TooLate, Wait, poll_time};
use super::pop::{self, Asked, Target};
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, PopOrder, PopQueue};
use crate::dispatch::Shared;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let Call { shared, session, reply, request } = call;
    let asked = Asked::decode(&request)?;
    let time = match poll_time(&request, &shared) {
        Ok(time) => time,
        Err(TooLate::Unread(refusal)) => return Err(refusal),
        Err(TooLate::Passed) => None,
    };
    let order = pop::order(&request)?;
    let target = pop::admit(&shared, session.peer(), &asked, "peeking").await?;
    drop(request);
    let mut seeing =
        Seeing { shared: &shared, asked: &asked, target: &target, order, has_message: false };
    let ended = wait::look(&shared, &asked, &target, time, &mut seeing).await?;
    let answer = reply.ok().with_field("hasMsg", ended == Ended::Found);
    Ok(answer.with_field("pollingFull", ended == Ended::Full))
}

struct Seeing<'a, B> {
    shared: &'a Shared<B>,
    asked: &'a Asked,
    target: &'a Target,
    order: Option<PopOrder>,
    has_message: bool,
}

impl<B: Backend> Look for Seeing<'_, B> {
    async fn queue(&mut self, queue_id: i32) -> Result<Wait, Refusal> {
        let view = queue_view(self.shared, self.target, queue_id).await?;
        let (group, topic) = (&self.asked.group, &self.target.topic);
        let queue = PopQueue { group, topic, partition: queue_id };
        let plan = self.shared.backend.pop_plan(queue, 1, self.order.clone()).await?;
        let (next, has_again, may_wait) = match &plan {
            Some(plan) if plan.is_blocked => return Ok(Wait::Ready),
            Some(plan) => (plan.next, !plan.again.is_empty(), plan.room > 0),
            None => (view.log_start_offset, false, true),
        };
        self.has_message |= has_again || (may_wait && view.last_stable_offset > next);
        Ok(if may_wait { Wait::Log(next) } else { Wait::Ready })
    }

    fn is_done(&self) -> bool {
        self.has_message
    }

    fn has_found(&self) -> bool {
        self.has_message
    }
}

#[cfg(test)]
mod tests;
