//! GET_BROKER_HA_STATUS: code 907. A master without slaves: replicas are another protocol's here.
//! Source: AdminBrokerProcessor.getBrokerHaStatus.

use super::{Call, Outcome};
use crate::backend::Backend;
use crate::bodies::HARuntimeInfo;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let counters = call.backend().counters().await;
    let bytes = i64::try_from(counters.bytes_in).unwrap_or(i64::MAX);
    Ok(call.reply.ok().with_body(HARuntimeInfo { bytes }.encode()))
}

#[cfg(test)]
mod tests;
