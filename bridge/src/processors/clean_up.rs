//! CLEAN_EXPIRED_CONSUMEQUEUE (306), CLEAN_UNUSED_TOPIC (316), DELETE_EXPIRED_COMMITLOG (329): what is
//! too old goes now and not with the next look. Here a topic's files go with the topic and indexes
//! with their segments, so that the first two find nothing of their own to do.
//! Source: AdminBrokerProcessor.cleanExpiredConsumeQueue, cleanUnusedTopic, deleteExpiredCommitLog.

use super::{Call, Outcome};
use crate::backend::Backend;

pub(crate) fn expired<B: Backend>(call: &Call<B>) -> Outcome {
    call.backend().apply_retention();
    Ok(call.reply.ok())
}

pub(crate) fn unused<B: Backend>(call: &Call<B>) -> Outcome {
    Ok(call.reply.ok())
}

#[cfg(test)]
mod tests;
