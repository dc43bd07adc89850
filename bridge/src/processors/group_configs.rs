//! GET_ALL_SUBSCRIPTIONGROUP_CONFIG and DELETE_SUBSCRIPTIONGROUP: codes 201 and 207. The
//! configurations of all groups; the removal of one with, if asked for, its positions. A group that
//! is not there is deleted already. Unlike the original, which takes positions from under live
//! members, `cleanOffset` is refused while the group has some.
//! Leaves out: the groups that the original makes for its own tools; paging (`groupSeq`), which is
//! off in the original; a version of the tables (`dataVersion` counts nothing).
//! Source: AdminBrokerProcessor.getAllSubscriptionGroup, deleteSubscriptionGroup.

use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::bodies::SubscriptionGroupWrapper;
use crate::response_code::ResponseCode;

pub(crate) fn all<B: Backend>(call: &Call<B>) -> Outcome {
    let groups = call.backend().subscription_groups();
    let timestamp_ms = call.backend().now_ms();
    let body = SubscriptionGroupWrapper { groups: &groups, timestamp_ms }.encode();
    Ok(call.reply.ok().with_field("totalGroupNum", groups.len()).with_body(body))
}

pub(crate) async fn delete<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("groupName")?;
    let cleans_positions: bool = call.request.optional_field("cleanOffset")?.unwrap_or(false);
    if cleans_positions {
        if call.backend().group(group).is_some() {
            let remark = format!(
                "the consumer group[{group}] is online: stop its members, or delete it without its \
                 offsets"
            );
            return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
        }
        call.backend().delete_positions(group).await?;
    }
    call.shared.resets.retain(|of, _| of != group);
    call.backend().delete_subscription_group(group).await?;
    Ok(call.reply.ok())
}

#[cfg(test)]
mod tests;
