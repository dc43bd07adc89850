//! What the node's console hears of refusals that clients hide from their users.

use crate::backend::{Backend, BackendError};
use crate::complaints::shortened;
use crate::dispatch::Shared;
use crate::remoting::RemotingCommand;
use crate::request_code;
use crate::session::Session;

impl<B: Backend> Shared<B> {
    /// A request of a code that is not served here.
    pub(crate) fn complain_of_code(&self, session: &Session, request: &RemotingCommand) {
        let code = request.code;
        // Codes that nobody knows are one subject, or a client could make thousands.
        let name = request_code::name(code).unwrap_or("UNKNOWN");
        let client = client(session);
        if !self.complaints.is_due(&client, name, self.backend.now_ms()) {
            return;
        }
        let field = |name| request.ext_fields.get(name).map(shortened);
        let group = field("consumerGroup").or_else(|| field("group"));
        tracing::warn!(
            client = ?shortened(&client),
            code,
            group,
            topic = field("topic"),
            "{name} is not supported by this broker: {}",
            request_code::consequence(code),
        );
    }

    /// A consumer that may not join its group. Its client hides that, and consumes nothing.
    pub(crate) fn complain_of_group(&self, session: &Session, error: &BackendError) {
        let BackendError::GroupKindConflict { group, kind } = error else { return };
        let client = client(session);
        let subject = format!("group {group}");
        if self.complaints.is_due(&client, &subject, self.backend.now_ms()) {
            tracing::warn!(
                client = ?shortened(&client),
                group = ?shortened(group),
                "the group has live {kind} members: this RocketMQ consumer consumes nothing until \
                 they have left",
            );
        }
    }
}

/// A client keeps its name over its connections once a heartbeat told it; before that, its address.
fn client(session: &Session) -> String {
    session.client_id().map_or_else(|| session.peer().ip().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
