//! Members of groups, as the node in memory keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::state::State;
use crate::backend::{ConsumerHeartbeat, GroupChange, GroupView, Member};
use crate::session::SessionId;

impl State {
    pub(super) fn heartbeat(
        &mut self,
        heartbeat: ConsumerHeartbeat,
        last_heartbeat_ms: i64,
    ) -> GroupChange {
        let view = self.groups.entry(heartbeat.group).or_insert_with(|| GroupView {
            consume_type: heartbeat.consume_type,
            message_model: heartbeat.message_model,
            consume_from_where: heartbeat.consume_from_where,
            members: Vec::new(),
            subscriptions: BTreeMap::new(),
        });
        view.consume_type = heartbeat.consume_type;
        view.message_model = heartbeat.message_model;
        view.consume_from_where = heartbeat.consume_from_where;
        let is_known = |member: &Member| member.client == heartbeat.client;
        let members = !view.members.iter().any(is_known);
        view.members.retain(|member| member.client.client_id != heartbeat.client.client_id);
        view.members.push(Member { client: heartbeat.client, last_heartbeat_ms });
        view.members.sort_by(|one, other| one.client.client_id.cmp(&other.client.client_id));
        let mut subscriptions = false;
        if let Some(wanted) = heartbeat.subscriptions {
            let old = std::mem::take(&mut view.subscriptions);
            for new in wanted {
                let kept = old.get(&new.topic).filter(|old| old.version >= new.version);
                let kept = Arc::clone(kept.unwrap_or(&new));
                view.subscriptions.insert(Arc::clone(&new.topic), kept);
            }
            subscriptions = old != view.subscriptions;
        }
        GroupChange { members, subscriptions }
    }

    /// A connection is gone, and its members with it.
    pub(super) fn close(&mut self, session: SessionId) {
        self.closed.push(session);
        for view in self.groups.values_mut() {
            view.members.retain(|member| member.client.session != session);
        }
        self.groups.retain(|_, view| !view.members.is_empty());
        for members in self.producers.values_mut() {
            members.retain(|_, member| member.client.session != session);
        }
    }
}
