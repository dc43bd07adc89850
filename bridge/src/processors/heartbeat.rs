//! HEART_BEAT: code 34. Registers or renews a client's membership in its groups, with what they
//! subscribe to; makes the configuration and the retry topic of a new group. Groups with an illegal
//! name are passed over.
//! A heartbeat with a fingerprint (version 2) may leave the subscriptions out once they are known
//! here; `IS_SUB_CHANGE` true asks for them again.
//! Members of producer groups may be asked how a half message ended.
//! A group that is refused ends nothing for the others; the answer then is the first refusal.
//! Source: ClientManageProcessor.heartBeat, heartBeatV2.

use std::collections::HashMap;
use std::sync::Arc;

use duolog_log_core::event::EventKind;
use parking_lot::Mutex;

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, ClientFacts, ConsumerHeartbeat, Subscription};
use crate::bodies::{ConsumerData, HeartbeatData, SubscriptionData};
use crate::limits::{
    CLIENT_ID_BYTES_MAX, CONNECTION_CLIENTS_MAX, CONNECTION_PRODUCERS_MAX, FINGERPRINTS_MAX,
    HEARTBEAT_BYTES_MAX, HEARTBEAT_GROUPS_MAX, SUBSCRIPTIONS_MAX,
};
use crate::processors::filter::ALL;
use crate::response_code::ResponseCode;
use crate::session::Producing;
use crate::subscriptions;
use crate::translate::properties::java_hash;

/// The last fingerprint seen of each group; when one differs, the client is asked for everything.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatFingerprints(Mutex<HashMap<Box<str>, i32>>);

impl HeartbeatFingerprints {
    /// Remembers `fingerprint`; is it another than the one before?
    fn replace(&self, group: &str, fingerprint: i32) -> bool {
        let mut known = self.0.lock();
        if let Some(old) = known.get_mut(group) {
            return std::mem::replace(old, fingerprint) != fingerprint;
        }
        // What is forgotten costs one full heartbeat each.
        if known.len() >= FINGERPRINTS_MAX {
            known.clear();
        }
        known.insert(group.into(), fingerprint);
        false
    }
}

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let bytes = call.request.body.len();
    if bytes > HEARTBEAT_BYTES_MAX {
        return Err(too_much(format!(
            "a heartbeat has {bytes} bytes, more than {HEARTBEAT_BYTES_MAX}"
        )));
    }
    let data = HeartbeatData::decode(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    check(&data)?;
    let client = ClientFacts {
        client_id: Arc::from(&*data.client_id),
        language: call.request.language.0,
        version: call.request.version,
        address: call.session.peer(),
        session: call.session.id(),
    };
    if !call.shared.sessions.identify(&call.session, &client.client_id) {
        return Err(too_much(format!(
            "one connection speaks for more than {CONNECTION_CLIENTS_MAX} clients"
        )));
    }
    for group in &data.producers {
        let last_heartbeat_ms = call.backend().now_ms();
        let producing = Producing { client: client.clone(), last_heartbeat_ms };
        if !call.session.produces(group, producing) {
            return Err(too_much(format!(
                "one connection produces for more than {CONNECTION_PRODUCERS_MAX} groups"
            )));
        }
    }
    let is_full = data.heartbeat_fingerprint == 0;
    let mut is_changed = is_full;
    let mut all = Ok(());
    for consumer in data.consumers {
        let group = consumer.group_name.clone();
        call.shared.tell(EventKind::RocketmqHeartbeat, &call.session, None, Some(&group));
        is_changed |= call.shared.fingerprints.replace(&group, data.heartbeat_fingerprint);
        let said = if is_full || !data.is_without_sub { Said::All } else { Said::NoSubscriptions };
        match register(&call, &client, consumer, said).await {
            Ok(registered) => is_changed |= registered == Registered::SubscriptionsWanted,
            Err(refusal) => all = all.and(Err(refusal)),
        }
    }
    for group in &data.producers {
        // As the original: no rule for names here, and nothing without one.
        if !group.is_empty() {
            call.session.set_member();
            let producer = call.backend().producer_heartbeat(group, client.clone()).await;
            all = all.and(producer.map_err(Refusal::from));
        }
    }
    all?;
    let answer = call.reply.ok().with_field("IS_SUPPORT_HEART_BEAT_V2", true);
    Ok(answer.with_field("IS_SUB_CHANGE", is_changed))
}

/// Is it of a size that can be kept?
fn check(data: &HeartbeatData) -> Result<(), Refusal> {
    let bytes = data.client_id.len();
    if bytes > CLIENT_ID_BYTES_MAX {
        return Err(too_much(format!(
            "the client id has {bytes} bytes, more than {CLIENT_ID_BYTES_MAX}"
        )));
    }
    let groups = data.producers.len() + data.consumers.len();
    if groups > HEARTBEAT_GROUPS_MAX {
        return Err(too_much(format!(
            "a heartbeat names {groups} groups, more than {HEARTBEAT_GROUPS_MAX}"
        )));
    }
    Ok(())
}

fn too_much(remark: String) -> Refusal {
    Refusal::new(ResponseCode::SYSTEM_ERROR, remark)
}

/// What a heartbeat says of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    All,
    /// The subscriptions are as before.
    NoSubscriptions,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Registered {
    Yes,
    /// The group's subscription is not known here.
    SubscriptionsWanted,
    IllegalGroup,
}

async fn register<B: Backend>(
    call: &Call<B>,
    client: &ClientFacts,
    consumer: ConsumerData,
    said: Said,
) -> Result<Registered, Refusal> {
    let Some(config) = call.shared.group_config(&consumer.group_name).await? else {
        return Ok(Registered::IllegalGroup);
    };
    if consumer.subscriptions.len() > SUBSCRIPTIONS_MAX {
        return Err(Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!("group {} subscribes to more than {SUBSCRIPTIONS_MAX} topics", config.name),
        ));
    }
    // Unit mode marks the retry topic as subscribed from another unit. Source: TopicSysFlag.
    let sys_flag = if consumer.unit_mode { 2 } else { 0 };
    call.shared.create_retry_topic(&config, sys_flag).await?;
    let subscriptions: Option<Vec<_>> = (said == Said::All)
        .then(|| consumer.subscriptions.into_iter().map(subscription).map(Arc::new).collect());
    let signature = subscriptions.as_deref().map(subscriptions::signature);
    call.session.set_member();
    let change = call
        .backend()
        .consumer_heartbeat(ConsumerHeartbeat {
            group: Arc::clone(&config.name),
            client: client.clone(),
            consume_type: consumer.consume_type,
            message_model: consumer.message_model,
            consume_from_where: consumer.consume_from_where,
            subscriptions,
            notify: config.notify_consumer_ids_changed
                && call.backend().config().notify_consumer_ids_changed,
        })
        .await
        .inspect_err(|error| call.shared.complain_of_group(&call.session, error))?;
    if change.subscriptions {
        call.shared.holds.group_changed(&config.name);
    }
    if let Some(signature) = signature {
        call.shared.compare_subscriptions(&config.name, &client.client_id, signature);
    }
    let is_known = said == Said::All
        || call.backend().group(&config.name).is_some_and(|view| !view.subscriptions.is_empty());
    Ok(if is_known { Registered::Yes } else { Registered::SubscriptionsWanted })
}

/// The hashes are made here of the tags' texts: a client whose own hashes are wrong gets its
/// messages all the same.
pub(super) fn subscription(data: SubscriptionData) -> Subscription {
    let is_all = data.sub_string == ALL;
    let from_text = data.tags.iter().map(|tag| java_hash(tag));
    let tag_hashes = match (is_all, data.tags.is_empty()) {
        (true, _) => Vec::new(),
        (false, false) => from_text.collect(),
        (false, true) => data.codes,
    };
    Subscription {
        topic: Arc::from(data.topic),
        expression: data.sub_string,
        expression_type: data.expression_type,
        tags: data.tags,
        tag_hashes,
        version: data.sub_version,
        class_filter_mode: data.class_filter_mode,
    }
}

#[cfg(test)]
mod tests;
