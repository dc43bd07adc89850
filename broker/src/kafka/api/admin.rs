//! What the administration APIs share: refusals with a text, duplicates, manual assignments.

use std::collections::BTreeSet;

use super::Context;
use crate::config::change::ChangeError;
use crate::config::describe::Layers;
use crate::controller::ControllerError;
use crate::controller::image::Image;
use crate::controller::record::ConfigScope;
use crate::kafka::codec::Str;
use crate::kafka::errors::ErrorCode;

/// An error code and the text beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) code: ErrorCode,
    pub(super) message: Option<Str>,
}

/// What a handler decides for one topic or resource.
pub(super) type Decided<T = ()> = Result<T, Refused>;

impl Refused {
    pub(super) fn new(code: ErrorCode, message: impl Into<Str>) -> Self {
        Self { code, message: Some(shortened(message.into())) }
    }

    /// Without a text.
    pub(super) fn bare(code: ErrorCode) -> Self {
        Self { code, message: None }
    }

    pub(super) fn invalid_request(message: impl Into<Str>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// `timeout_ms` of 0 or less is over before anything was begun: nothing changes.
    pub(super) fn timed_out(timeout_ms: i32) -> Decided {
        if timeout_ms > 0 { Ok(()) } else { Err(Self::bare(ErrorCode::RequestTimedOut)) }
    }
}

impl From<ControllerError> for Refused {
    fn from(error: ControllerError) -> Self {
        Self::new(ErrorCode::from(&error), error.to_string())
    }
}

impl From<ChangeError> for Refused {
    fn from(error: ChangeError) -> Self {
        ControllerError::from(error).into()
    }
}

/// Texts quote what was sent; a string of the protocol takes 32,767 bytes.
fn shortened(message: Str) -> Str {
    const BYTES_MAX: usize = 4096;
    if message.len() <= BYTES_MAX {
        return message;
    }
    let end = (0..=BYTES_MAX).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    message.get(..end).unwrap_or_default().into()
}

/// Code and text of a response's fields.
pub(super) fn fields(decided: &Decided) -> (i16, Option<Str>) {
    match decided {
        Ok(()) => (ErrorCode::None.code(), None),
        Err(refused) => (refused.code.code(), refused.message.clone()),
    }
}

/// The names that occur more than once.
pub(super) fn duplicates<'a, T: Ord + ?Sized>(
    names: impl Iterator<Item = &'a T>,
) -> BTreeSet<&'a T> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

/// Checks the replicas that a client chose for one partition, against the live `nodes` and the
/// number of replicas that the partitions before it have.
///
/// Source: `ReplicationControlManager.validateManualPartitionAssignment`.
pub(super) fn check_assignment(
    nodes: &[i32],
    replicas: &[i32],
    replica_count: Option<usize>,
) -> Decided {
    let refused = |message: String| Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message));
    if replicas.is_empty() {
        return refused("The manual partition assignment includes an empty replica list.".into());
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    let mut previous = None;
    for &node in &sorted {
        if !nodes.contains(&node) {
            return refused(format!(
                "The manual partition assignment includes broker {node}, but no such broker is \
                 registered."
            ));
        }
        if previous == Some(node) {
            return refused(format!(
                "The manual partition assignment includes the broker {node} more than once."
            ));
        }
        previous = Some(node);
    }
    match replica_count.filter(|count| *count != replicas.len()) {
        Some(count) => refused(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this \
             is not consistent with previous partitions, which have {count} replica(s).",
            replicas.len()
        )),
        None => Ok(()),
    }
}

/// The node's configuration in its layers.
pub(super) fn layers<'a>(context: &Context, image: &'a Image) -> Layers<'a> {
    Layers {
        values: image.values(),
        fixed: image.static_values(),
        node: image.config(ConfigScope::Broker, &context.node.id().to_string()),
        cluster: image.config(ConfigScope::Broker, ""),
    }
}

#[cfg(test)]
mod tests;
