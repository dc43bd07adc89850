//! Which messages of a queue a pull wants.
//! Source: FilterAPI, ExpressionMessageFilter.

use super::Refusal;
use crate::backend::Subscription;
use crate::response_code::ResponseCode;
use crate::translate::properties::java_hash;

/// The expression type served.
pub(crate) const TAG: &str = "TAG";

/// `*`: everything.
pub(crate) const ALL: &str = "*";

/// By the Java hashes of tags; two tags with one hash are told apart by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Every message.
    All,
    /// Messages whose tag has one of these hashes.
    Tags(Vec<i32>),
}

impl Filter {
    /// Of an expression that came in a pull.
    /// Refuses other types than tags, as a broker without `enablePropertyFilter`, and `||` alone.
    pub(crate) fn parse(expression: &str, expression_type: &str) -> Result<Self, Refusal> {
        if expression_type != TAG {
            return Err(unsupported(expression_type));
        }
        if expression.is_empty() || expression == ALL {
            return Ok(Self::All);
        }
        if expression.bytes().all(|byte| byte == b'|') && expression.len().is_multiple_of(2) {
            let remark = "parse the consumer's subscription failed";
            return Err(Refusal::new(ResponseCode::SUBSCRIPTION_PARSE_FAILED, remark));
        }
        // Java's trim: whatever is not beyond the space.
        let tags = expression.split("||").map(|tag| tag.trim_matches(|char| char <= ' '));
        let tags = tags.filter(|tag| !tag.is_empty());
        Ok(Self::Tags(tags.map(java_hash).collect()))
    }

    /// Of a subscription that a heartbeat registered.
    pub(crate) fn of(subscription: &Subscription) -> Result<Self, Refusal> {
        if subscription.expression_type != TAG {
            return Err(unsupported(&subscription.expression_type));
        }
        if subscription.expression == ALL || subscription.class_filter_mode {
            return Ok(Self::All);
        }
        Ok(Self::Tags(subscription.tag_hashes.clone()))
    }

    /// The hashes wanted; `None` for everything.
    pub(crate) fn hashes(&self) -> Option<&[i32]> {
        match self {
            Self::All => None,
            Self::Tags(hashes) => Some(hashes),
        }
    }
}

/// What a broker without property filters answers. Source: PullMessageProcessor.
pub(crate) fn unsupported(expression_type: &str) -> Refusal {
    Refusal::new(
        ResponseCode::SYSTEM_ERROR,
        format!("The broker does not support consumer to filter message by {expression_type}"),
    )
}

#[cfg(test)]
mod tests;
