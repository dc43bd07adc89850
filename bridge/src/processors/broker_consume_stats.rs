//! GET_BROKER_CONSUME_STATS: code 317. The positions and lags of all configured groups, with their
//! sums; mqadmin's brokerConsumeStats. `isOrder=true` keeps ordered topics
//! alone.
//! Source: AdminBrokerProcessor.fetchAllConsumeStatsInBroker.

use super::{Call, Outcome, consume_stats};
use crate::backend::Backend;
use crate::bodies::ConsumeStatsList;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let is_order: bool = call.request.optional_field("isOrder")?.unwrap_or(false);
    let mut groups = Vec::new();
    for group in call.backend().subscription_groups() {
        let stats = consume_stats::of_group(&call.shared, &group.name).await?;
        let wanted = stats.into_iter().filter(|(topic, _)| topic.order || !is_order);
        groups.push((group.name.to_string(), wanted.map(|(_, stats)| stats).collect()));
    }
    let body = ConsumeStatsList {
        broker_address: call.backend().config().broker_address.to_string(),
        groups,
    };
    Ok(call.reply.ok().with_body(body.encode()))
}

#[cfg(test)]
mod tests;
