//! Pop between the bridge's words and the coordinators' of messages in hand.
//!
//! A window begins at the group's committed position, and its start is committed in turn ([`news`]).
//! What somebody else commits meanwhile (a reset, a pull, a Kafka tool) the window goes by.

mod news;

use std::sync::Arc;

use duolog_bridge::backend::{
    BackendError, PopAgain, PopBackend, PopOffsets, PopOrder, PopPlan, PopQueue, PopTake, Result,
};
use duolog_coordinator::inflight::error::InflightError;
use duolog_coordinator::inflight::event::{Ask, Fresh, Order, Plan, Response, Take};
use duolog_coordinator::limits::{SHARD_WINDOWS_MAX, WINDOW_DELIVERIES_MAX};
use duolog_coordinator::record::share::{DeliveryState, Lease, SharePartition};

pub(super) use self::news::InflightNews;
use super::{BridgeBackend, positions};

impl PopBackend for BridgeBackend {
    async fn pop_plan(
        &self,
        queue: PopQueue<'_>,
        count: usize,
        order: Option<PopOrder>,
    ) -> Result<Option<PopPlan>> {
        let share = share(queue);
        let committed = self.own_position(queue, &share).await?;
        let ask = || Ask::Plan { count, order: order.clone().map(order_of) };
        if let Some(plan) = plan(self.ask(&share, ask()).await?) {
            return Ok(Some(plan));
        }
        let Some(committed) = committed else { return Ok(None) };
        self.ask(&share, Ask::Open(committed)).await?;
        Ok(plan(self.ask(&share, ask()).await?))
    }

    async fn pop_begin(&self, queue: PopQueue<'_>, offset: i64) -> Result<()> {
        positions::commit(&self.node, queue.group, queue.topic, (queue.partition, offset)).await
    }

    async fn pop_reset(&self, queue: PopQueue<'_>, offset: i64) -> Result<()> {
        self.pop_begin(queue, offset).await?;
        positions::on_disk(&self.node, queue.group, 0).await?;
        self.ask(&share(queue), Ask::Reset(offset)).await.map(drop)
    }

    async fn pop_take(&self, queue: PopQueue<'_>, take: PopTake) -> Result<bool> {
        let retries = u16::try_from(take.retries_max.max(0)).unwrap_or(u16::MAX);
        let fresh = take.fresh.map(|fresh| Fresh {
            from: fresh.from,
            next: fresh.next,
            offsets: fresh.offsets,
        });
        let take = Take {
            again: take.again,
            gone: take.gone,
            fresh,
            lease: Lease { until_ms: take.until_ms, popped_ms: take.popped_ms },
            deliveries_max: retries.saturating_add(1).min(WINDOW_DELIVERIES_MAX),
            order: take.order.map(order_of),
        };
        let answer = self.ask(&share(queue), Ask::Take(take)).await?;
        Ok(answer == Response::Taken(true))
    }

    async fn pop_settle(
        &self,
        queue: PopQueue<'_>,
        offsets: PopOffsets,
        popped_ms: i64,
    ) -> Result<usize> {
        let state = DeliveryState::Acknowledged;
        let settle = Ask::Settle { offsets, popped_ms, state };
        match self.ask(&share(queue), settle).await? {
            Response::Settled(count) => Ok(count),
            _ => Ok(0),
        }
    }

    async fn pop_delay(
        &self,
        queue: PopQueue<'_>,
        offset: i64,
        popped_ms: i64,
        again: PopAgain,
    ) -> Result<bool> {
        let lease = Lease { until_ms: again.until_ms, popped_ms: again.renamed_ms };
        let delay = Ask::Delay { offset, popped_ms, lease };
        Ok(self.ask(&share(queue), delay).await? == Response::Delayed(true))
    }
}

impl BridgeBackend {
    async fn ask(&self, share: &SharePartition, ask: Ask) -> Result<Response> {
        let answer = self.node.inflight.ask(share, ask).await;
        answer.map_err(|error| refusal(&share.group, &error))
    }

    /// The committed position, by which the window goes if another one set it.
    async fn own_position(
        &self,
        queue: PopQueue<'_>,
        share: &SharePartition,
    ) -> Result<Option<i64>> {
        let inflight = &self.node.inflight;
        loop {
            let known = inflight.positions(share);
            let PopQueue { group, topic, partition } = queue;
            let committed = positions::to_pop_from(&self.node, group, topic, partition).await?;
            let (known_now, is_own) = inflight.judge(share, committed);
            if known != known_now {
                // What was read may be what was committed just then.
                continue;
            }
            if !is_own {
                positions::on_disk(&self.node, group, 0).await?;
                self.ask(share, committed.map_or(Ask::Forget, Ask::Reset)).await?;
            }
            return Ok(committed);
        }
    }
}

fn share(queue: PopQueue<'_>) -> SharePartition {
    SharePartition {
        group: Arc::from(queue.group),
        topic: queue.topic.id,
        partition: queue.partition,
    }
}

fn order_of(order: PopOrder) -> Order {
    Order { attempt: order.attempt }
}

fn plan(answer: Response) -> Option<PopPlan> {
    let Response::Plan(Some(Plan { again, next, room, is_blocked })) = answer else { return None };
    let times_before = |deliveries: u16| i32::from(deliveries.saturating_sub(1));
    let again = again.into_iter().map(|(offset, count)| (offset, times_before(count))).collect();
    Some(PopPlan { again, next, room, is_blocked })
}

fn refusal(group: &str, error: &InflightError) -> BackendError {
    match error {
        InflightError::TooMany => BackendError::LimitReached {
            reason: format!("more than {SHARD_WINDOWS_MAX} groups and queues have messages popped"),
        },
        InflightError::NotCoordinator
        | InflightError::Loading
        | InflightError::NotAvailable
        | InflightError::TooLarge => BackendError::CoordinatorNotReady { group: group.to_owned() },
    }
}

#[cfg(test)]
mod tests;
