//! VIEW_BROKER_STATS_DATA: code 315. How much was stored in a topic (TOPIC_PUT_NUMS) and handed to a
//! group of a topic (GROUP_GET_NUMS, key `topic@group`), in the last minute, hour and day.
//! What was stored is found by append times, so it counts both protocols' records, those only that
//! are still there, and from before the node's start as well.
//! Leaves out: the other figures of the original; averages of a call are 0.
//! Source: AdminBrokerProcessor.viewBrokerStatsData, StatsItem.

use super::store_time::if_readable;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Boundary, Topic};
use crate::bodies::{BrokerStatsData, BrokerStatsItem};
use crate::dispatch::Shared;
use crate::response_code::ResponseCode;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let name: &str = call.request.field("statsName")?;
    let key: &str = call.request.field("statsKey")?;
    let shared = &call.shared;
    let now_ms = call.backend().now_ms();
    let found = match name {
        "TOPIC_PUT_NUMS" => match shared.topic(key) {
            Some(topic) => Some(stored(shared, &topic, now_ms).await?),
            None => None,
        },
        "GROUP_GET_NUMS" => key.rsplit_once('@').and_then(|(topic, group)| {
            let topic = shared.topic(topic)?;
            let sums = shared.deliveries.sums(group, topic.id, now_ms)?;
            Some(data(sums.map(|sum| i64::try_from(sum).unwrap_or(i64::MAX))))
        }),
        _ => None,
    };
    match found {
        Some(body) => Ok(call.reply.ok().with_body(body.encode())),
        None => Err(Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!("The stats <{name}> <{key}> not exist"),
        )),
    }
}

async fn stored<B: Backend>(
    shared: &Shared<B>,
    topic: &Topic,
    now_ms: i64,
) -> Result<BrokerStatsData, Refusal> {
    let mut sums = [0_i64; 3];
    for queue_id in 0..topic.partitions {
        let view = shared.backend.partition(topic, queue_id).await.unwrap_or_default();
        let end = view.last_stable_offset;
        if end == view.log_start_offset {
            continue;
        }
        for (sum, span_ms) in sums.iter_mut().zip([MINUTE_MS, HOUR_MS, DAY_MS]) {
            let since_ms = now_ms.saturating_sub(span_ms);
            let first =
                shared.backend.search_append_time(topic, queue_id, since_ms, Boundary::Lower);
            let first = if_readable(first.await)?.flatten();
            *sum += first.map_or(0, |first| end.saturating_sub(first).max(0));
        }
    }
    Ok(data(sums))
}

fn data(sums: [i64; 3]) -> BrokerStatsData {
    let item = |sum: i64, span_ms: i64| BrokerStatsItem {
        sum,
        tps: sum as f64 * 1000.0 / span_ms as f64,
        average: 0.0,
    };
    let [minute, hour, day] = sums;
    BrokerStatsData {
        minute: item(minute, MINUTE_MS),
        hour: item(hour, HOUR_MS),
        day: item(day, DAY_MS),
    }
}

#[cfg(test)]
mod tests;
