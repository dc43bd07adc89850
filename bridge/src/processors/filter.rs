//! Which messages of a queue a pull wants: by tags, or by an SQL92 expression.
//! Nothing that cannot be read is ever taken for "everything".
//! Source: FilterAPI, ExpressionMessageFilter, ConsumerFilterManager.

use std::sync::Arc;

use super::Refusal;
use crate::backend::{Backend, Subscription};
use crate::dispatch::Shared;
use crate::response_code::ResponseCode;
use crate::sql92::{Selector, SqlError};
use crate::translate::properties::java_hash;

/// The expression type of tags.
pub(crate) const TAG: &str = "TAG";

/// The expression type of conditions over properties.
const SQL92: &str = "SQL92";

/// `*`: everything.
pub(crate) const ALL: &str = "*";

/// By the Java hashes of tags, of which two with one hash are told apart by the client; or by properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Every message.
    All,
    /// Messages whose tag has one of these hashes.
    Tags(Vec<i32>),
    /// Messages for whose properties it is true.
    Sql(Arc<Selector>),
}

impl Filter {
    /// Of an expression that came in a pull. Refuses `||` alone.
    pub(crate) fn parse<B: Backend>(
        expression: &str,
        expression_type: &str,
        shared: &Shared<B>,
    ) -> Result<Self, Refusal> {
        if expression_type != TAG {
            let selector = sql(expression, expression_type, shared)?;
            return Ok(Self::Sql(selector.map_err(|error| parse_failed(&error))?));
        }
        Self::tags(expression)
    }

    fn tags(expression: &str) -> Result<Self, Refusal> {
        if expression.is_empty() || expression == ALL {
            return Ok(Self::All);
        }
        if expression.bytes().all(|byte| byte == b'|') && expression.len().is_multiple_of(2) {
            return Err(Refusal::new(ResponseCode::SUBSCRIPTION_PARSE_FAILED, PARSE_FAILED));
        }
        // Java's trim: whatever is not beyond the space.
        let tags = expression.split("||").map(|tag| tag.trim_matches(|char| char <= ' '));
        let tags = tags.filter(|tag| !tag.is_empty());
        Ok(Self::Tags(tags.map(java_hash).collect()))
    }

    /// Of a subscription that a heartbeat registered.
    pub(crate) fn of<B: Backend>(
        subscription: &Subscription,
        shared: &Shared<B>,
    ) -> Result<Self, Refusal> {
        let Subscription { expression, expression_type, .. } = subscription;
        if expression_type != TAG {
            let selector = sql(expression, expression_type, shared)?;
            return selector.map(Self::Sql).map_err(|error| {
                let remark =
                    "The broker's consumer filter data is not exist!Your expression may be wrong!";
                Refusal::new(ResponseCode::FILTER_DATA_NOT_EXIST, format!("{remark} {error}"))
            });
        }
        if expression == ALL || subscription.class_filter_mode {
            return Ok(Self::All);
        }
        Ok(Self::Tags(subscription.tag_hashes.clone()))
    }

    /// The hashes wanted; `None` where tags decide nothing.
    pub(crate) fn hashes(&self) -> Option<&[i32]> {
        match self {
            Self::All | Self::Sql(_) => None,
            Self::Tags(hashes) => Some(hashes),
        }
    }
}

const PARSE_FAILED: &str = "parse the consumer's subscription failed";

/// Whether an expression of a client that is to start will do.
/// Source: ClientManageProcessor.checkClientConfig.
pub(crate) fn check<B: Backend>(
    expression: &str,
    expression_type: &str,
    shared: &Shared<B>,
) -> Result<(), Refusal> {
    if expression_type == TAG {
        return Ok(());
    }
    sql(expression, expression_type, shared)?.map(drop).map_err(|error| {
        let remark = format!("Invalid MessageSelector. {error}");
        Refusal::new(ResponseCode::SUBSCRIPTION_PARSE_FAILED, remark)
    })
}

fn parse_failed(error: &SqlError) -> Refusal {
    let remark = format!("{PARSE_FAILED}: {error}");
    Refusal::new(ResponseCode::SUBSCRIPTION_PARSE_FAILED, remark)
}

/// A selector, where the node has such filters.
fn sql<B: Backend>(
    expression: &str,
    expression_type: &str,
    shared: &Shared<B>,
) -> Result<Result<Arc<Selector>, SqlError>, Refusal> {
    if expression_type != SQL92 || !shared.backend.config().property_filter {
        return Err(unsupported(expression_type));
    }
    Ok(shared.selectors.compile(expression))
}

/// What a broker without property filters answers. Source: PullMessageProcessor.
fn unsupported(expression_type: &str) -> Refusal {
    Refusal::new(
        ResponseCode::SYSTEM_ERROR,
        format!("The broker does not support consumer to filter message by {expression_type}"),
    )
}

#[cfg(test)]
mod tests;
