//! WIPE_WRITE_PERM_OF_BROKER (205) and ADD_WRITE_PERM_OF_BROKER (327): producers are shown no queues of
//! the broker any more, or again; its topics stay as they are. Shown until the other request, a change
//! of the topic's own permission or the node's end.
//! Source: RouteInfoManager.operateWritePermOfBroker.

use std::collections::HashMap;

use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;

use crate::backend::{Backend, PERM_READ, PERM_WRITE, Topic};
use crate::processors::rules::TEMPLATE_TOPIC;
use crate::processors::{Call, Outcome, topics};

/// What routes show in the place of topics' own permissions.
#[derive(Debug, Default)]
pub(crate) struct RoutePermissions(Mutex<HashMap<TopicId, Shown>>);

#[derive(Clone, Copy, Debug)]
struct Shown {
    /// The topic's own when this was asked for.
    own: i32,
    shown: i32,
}

impl RoutePermissions {
    /// What a route shows as the topic's permission.
    pub(super) fn of(&self, topic: &Topic) -> i32 {
        let shown = self.0.lock().get(&topic.id).copied();
        shown.filter(|shown| shown.own == topic.perm).map_or(topic.perm, |shown| shown.shown)
    }
}

pub(crate) fn wipe<B: Backend>(call: &Call<B>) -> Outcome {
    change(call, "wipeTopicCount", |shown| shown & !PERM_WRITE)
}

pub(crate) fn add<B: Backend>(call: &Call<B>) -> Outcome {
    change(call, "addTopicCount", |_| PERM_READ | PERM_WRITE)
}

fn change<B: Backend>(call: &Call<B>, field: &'static str, change: impl Fn(i32) -> i32) -> Outcome {
    let broker: &str = call.request.field("brokerName")?;
    let mut count = 0;
    if broker == call.backend().config().broker_name {
        let permissions = &call.shared.route_permissions;
        let stored = call.backend().topics();
        let routed = stored.iter().filter_map(|topic| call.backend().route(topic));
        let template = call.shared.topic_or_template(TEMPLATE_TOPIC);
        let shown: HashMap<TopicId, Shown> = routed
            .filter(|topic| !topics::is_own(topic))
            .chain(template)
            .map(|topic| {
                let shown = change(permissions.of(&topic));
                (topic.id, Shown { own: topic.perm, shown })
            })
            .collect();
        count = shown.len();
        *permissions.0.lock() = shown;
    }
    Ok(call.reply.ok().with_field(field, count))
}

#[cfg(test)]
mod tests {
    use crate::fake::{Client, FakeBackend};
    use crate::session::Door;

    #[tokio::test]
    async fn routes_show_what_was_asked_for_until_the_topic_itself_changes() {
        let backend = FakeBackend::new();
        backend.add_topic("t", 1);
        let client = Client::new(backend.clone()).at(Door::NameServer);
        let perm = async || {
            let answer = client.call(105, &[("topic", "t")], &[]).await;
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            let begin = body.find("\"perm\":").expect("a permission") + 7;
            body[begin..].chars().next().expect("a digit")
        };
        let ask = async |code: i32, broker: &str, field: &str| {
            let answer = client.call(code, &[("brokerName", broker)], &[]).await;
            assert_eq!(answer.code, 0);
            answer.ext_fields.get(field).map(str::to_owned)
        };
        assert_eq!(ask(205, "broker-b", "wipeTopicCount").await.as_deref(), Some("0"));
        assert_eq!(perm().await, '6');
        // The topic and the template of new ones.
        assert_eq!(ask(205, "broker-a", "wipeTopicCount").await.as_deref(), Some("2"));
        assert_eq!(perm().await, '4');
        assert_eq!(ask(327, "broker-a", "addTopicCount").await.as_deref(), Some("2"));
        assert_eq!(perm().await, '6');
        assert_eq!(ask(205, "broker-a", "wipeTopicCount").await.as_deref(), Some("2"));
        backend.change_topic("t", |topic| topic.perm = 2);
        assert_eq!(perm().await, '2');
    }
}
