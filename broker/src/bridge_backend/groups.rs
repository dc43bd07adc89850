//! RocketMQ groups between the coordinators' words and the bridge's.

use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use duolog_bridge::backend::{self, BackendError, GroupView, Member, Result};
use duolog_bridge::dispatch::Dispatcher;
use duolog_bridge::session::SessionId;
use duolog_coordinator::group::event::{
    ChannelId, Client, ConsumeFromWhere, ConsumeType, ConsumerHeartbeat, Event, LockQueues,
    MemberNotices, MessageModel, ProducerHeartbeat, ProducerLeave, Queue, Subscription,
};
use duolog_coordinator::group::response::{ConsumerGroupView, LiveClient, Notice, Response};

use super::{BridgeBackend, error};
use crate::coordinators::NoticeSink;
use crate::node::Node;

/// The live groups as last told, and the way to their members.
#[derive(Default)]
pub(super) struct Groups {
    views: DashMap<Arc<str>, Arc<GroupView>>,
    dispatcher: OnceLock<Dispatcher<BridgeBackend>>,
}

impl Groups {
    /// Says, once, through whom members are reached.
    pub(super) fn connect(&self, dispatcher: Dispatcher<BridgeBackend>) {
        // There is one bridge.
        let _ = self.dispatcher.set(dispatcher);
    }

    /// A group with at least one live member.
    pub(super) fn view(&self, group: &str) -> Option<Arc<GroupView>> {
        self.views.get(group).map(|view| view.clone())
    }
}

impl NoticeSink for Groups {
    fn accept(&self, notice: Notice) {
        match notice {
            Notice::ConsumerGroup { group, view } => {
                match view.filter(|view| !view.members.is_empty()) {
                    Some(view) => {
                        drop(self.views.insert(group.clone(), Arc::new(group_view(&view))))
                    }
                    None => drop(self.views.remove(&group)),
                }
                if let Some(dispatcher) = self.dispatcher.get() {
                    dispatcher.subscription_changed(&group);
                }
            }
            Notice::MembersChanged { group, channels } => {
                if let Some(dispatcher) = self.dispatcher.get() {
                    let sessions = channels.into_iter().map(|channel| SessionId(channel.0));
                    dispatcher.sessions().notify_consumer_ids_changed(&group, sessions);
                }
            }
            // A client may go on pulling without a heartbeat. Source: ClientHousekeepingService.
            Notice::ChannelExpired(channel) => {
                tracing::debug!(channel = channel.0, "no heartbeat for too long");
                if let Some(dispatcher) = self.dispatcher.get() {
                    dispatcher.sessions().request_close(SessionId(channel.0));
                }
            }
        }
    }
}

/// A heartbeat in the coordinators' words.
pub(super) fn heartbeat(heartbeat: backend::ConsumerHeartbeat) -> Event {
    Event::ConsumerHeartbeat(Box::new(ConsumerHeartbeat {
        group: heartbeat.group,
        client: client(heartbeat.client),
        consume_type: match heartbeat.consume_type {
            backend::ConsumeType::Actively => ConsumeType::Actively,
            backend::ConsumeType::Passively => ConsumeType::Passively,
            backend::ConsumeType::Pop => ConsumeType::Pop,
        },
        message_model: match heartbeat.message_model {
            backend::MessageModel::Broadcasting => MessageModel::Broadcasting,
            backend::MessageModel::Clustering => MessageModel::Clustering,
            backend::MessageModel::LiteSelective => MessageModel::LiteSelective,
        },
        consume_from_where: consume_from_where(heartbeat.consume_from_where),
        subscriptions: heartbeat.subscriptions.map(|all| {
            all.iter().map(|subscription| Arc::new(subscription_in(subscription))).collect()
        }),
        notices: if heartbeat.notify { MemberNotices::On } else { MemberNotices::Off },
    }))
}

fn client(client: backend::ClientFacts) -> Client {
    Client {
        id: client.client_id,
        language: client.language,
        version: client.version,
        address: client.address,
        channel: ChannelId(client.session.0),
    }
}

pub(super) async fn producer_heartbeat(
    node: &Node,
    group: &str,
    facts: backend::ClientFacts,
) -> Result<()> {
    let heartbeat = ProducerHeartbeat { group: group.into(), client: client(facts) };
    let answer = node.coordinators.request(group, Event::ProducerHeartbeat(heartbeat)).await;
    answer.map(drop).map_err(|error| error::of_group(group, &error))
}

pub(super) async fn producer_leave(node: &Node, group: &str, client_id: &str) -> Result<()> {
    if !node.coordinators.exist() {
        return Ok(());
    }
    let leave = ProducerLeave { group: group.into(), client: client_id.into() };
    let answer = node.coordinators.request(group, Event::ProducerLeave(leave)).await;
    answer.map(drop).map_err(|error| error::of_group(group, &error))
}

/// The live members of a producer group.
pub(super) async fn producer_group(node: &Node, group: &str) -> Result<Vec<Member>> {
    if !node.coordinators.exist() {
        return Ok(Vec::new());
    }
    match node.coordinators.request(group, Event::ProducerGroup(group.into())).await {
        Ok(Response::ProducerGroup(members)) => Ok(members.iter().map(member).collect()),
        Ok(_) => Err(BackendError::CoordinatorNotReady { group: group.to_owned() }),
        Err(error) => Err(error::of_group(group, &error)),
    }
}

/// A request for locks in the coordinators' words.
pub(super) fn lock_request(
    group: &str,
    client_id: &str,
    queues: Vec<backend::QueueKey>,
) -> LockQueues {
    let queue = |key: backend::QueueKey| Queue { topic: key.topic, id: key.queue_id };
    LockQueues {
        group: group.into(),
        client: client_id.into(),
        queues: queues.into_iter().map(queue).collect(),
    }
}

fn consume_from_where(from: backend::ConsumeFromWhere) -> ConsumeFromWhere {
    match from {
        backend::ConsumeFromWhere::LastOffset => ConsumeFromWhere::LastOffset,
        backend::ConsumeFromWhere::LastOffsetAndFromMinWhenBootFirst => {
            ConsumeFromWhere::LastOffsetAndFromMinWhenBootFirst
        }
        backend::ConsumeFromWhere::MinOffset => ConsumeFromWhere::MinOffset,
        backend::ConsumeFromWhere::MaxOffset => ConsumeFromWhere::MaxOffset,
        backend::ConsumeFromWhere::FirstOffset => ConsumeFromWhere::FirstOffset,
        backend::ConsumeFromWhere::Timestamp => ConsumeFromWhere::Timestamp,
    }
}

fn subscription_in(subscription: &backend::Subscription) -> Subscription {
    Subscription {
        topic: subscription.topic.clone(),
        expression: subscription.expression.clone(),
        expression_type: subscription.expression_type.clone(),
        tags: subscription.tags.clone(),
        tag_hashes: subscription.tag_hashes.clone(),
        version: subscription.version,
        class_filter_mode: subscription.class_filter_mode,
    }
}

/// A group in the bridge's words.
fn group_view(view: &ConsumerGroupView) -> GroupView {
    GroupView {
        consume_type: match view.consume_type {
            ConsumeType::Actively => backend::ConsumeType::Actively,
            ConsumeType::Passively => backend::ConsumeType::Passively,
            ConsumeType::Pop => backend::ConsumeType::Pop,
        },
        message_model: match view.message_model {
            MessageModel::Broadcasting => backend::MessageModel::Broadcasting,
            MessageModel::Clustering => backend::MessageModel::Clustering,
            MessageModel::LiteSelective => backend::MessageModel::LiteSelective,
        },
        consume_from_where: match view.consume_from_where {
            ConsumeFromWhere::LastOffset => backend::ConsumeFromWhere::LastOffset,
            ConsumeFromWhere::LastOffsetAndFromMinWhenBootFirst => {
                backend::ConsumeFromWhere::LastOffsetAndFromMinWhenBootFirst
            }
            ConsumeFromWhere::MinOffset => backend::ConsumeFromWhere::MinOffset,
            ConsumeFromWhere::MaxOffset => backend::ConsumeFromWhere::MaxOffset,
            ConsumeFromWhere::FirstOffset => backend::ConsumeFromWhere::FirstOffset,
            ConsumeFromWhere::Timestamp => backend::ConsumeFromWhere::Timestamp,
        },
        members: view.members.iter().map(member).collect(),
        subscriptions: view
            .subscriptions
            .iter()
            .map(|(topic, subscription)| (topic.clone(), Arc::new(subscription_out(subscription))))
            .collect(),
    }
}

fn member(live: &LiveClient) -> Member {
    Member {
        client: backend::ClientFacts {
            client_id: live.client.id.clone(),
            language: live.client.language,
            version: live.client.version,
            address: live.client.address,
            session: SessionId(live.client.channel.0),
        },
        last_heartbeat_ms: live.last_heartbeat_ms,
    }
}

fn subscription_out(subscription: &Subscription) -> backend::Subscription {
    backend::Subscription {
        topic: subscription.topic.clone(),
        expression: subscription.expression.clone(),
        expression_type: subscription.expression_type.clone(),
        tags: subscription.tags.clone(),
        tag_hashes: subscription.tag_hashes.clone(),
        version: subscription.version,
        class_filter_mode: subscription.class_filter_mode,
    }
}
