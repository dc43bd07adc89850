//! QUERY_ASSIGNMENT and SET_MESSAGE_REQUEST_MODE: codes 400 and 401. The queues of one member,
//! divided by the broker instead of by each client (`clientRebalance=false`), and how it gets their
//! messages: by pulling, or by popping, which several members may do with one queue.
//! Strategies: AVG and AVG_BY_CIRCLE, as in the original. An answer without a list (another
//! strategy; topic or group not there) leaves the client with the queues that it has.
//! The mode of a group on a topic is kept with the node's metadata, in a namespace of the key/value
//! store; PULL is what every group has, so nothing is kept of that. A mode of another name is refused,
//! where the original keeps it and then names none.
//! Source: QueryAssignmentProcessor, AllocateMessageQueueAveragely(ByCircle).

use super::rules::RETRY_PREFIX;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, MessageModel, PERM_READ};
use crate::bodies::{
    BodyError, MessageQueue, MessageRequestMode, QueryAssignmentRequestBody,
    QueryAssignmentResponseBody, SetMessageRequestModeRequestBody,
};
use crate::dispatch::Shared;
use crate::response_code::ResponseCode;

/// Of the modes: keys are the topic, `@` and the group, values POP and how many share.
const NAMESPACE: &str = "MESSAGE_REQUEST_MODES";

/// The queue that stands for all.
const ALL_QUEUES: i32 = -1;

pub(crate) fn query<B: Backend>(call: &Call<B>) -> Outcome {
    let asked = QueryAssignmentRequestBody::decode(&call.request.body).map_err(malformed)?;
    let share = call.shared.pop_share(&asked.consumer_group, &asked.topic);
    let mode = share.map_or(MessageRequestMode::Pull, |_| MessageRequestMode::Pop);
    let body = QueryAssignmentResponseBody { queues: assigned(call, &asked, share), mode };
    Ok(call.reply.ok().with_body(body.encode()))
}

pub(crate) async fn set_mode<B: Backend>(call: Call<B>) -> Outcome {
    let wanted = SetMessageRequestModeRequestBody::decode(&call.request.body).map_err(malformed)?;
    let (topic, group) = (&wanted.topic, &wanted.consumer_group);
    if topic.starts_with(RETRY_PREFIX) {
        let remark = "retry topic is not allowed to set mode";
        return Err(Refusal::new(ResponseCode::NO_PERMISSION, remark));
    }
    if call.shared.topic_or_template(topic).is_none() {
        let remark = format!("topic[{topic}] not exist");
        return Err(Refusal::new(ResponseCode::TOPIC_NOT_EXIST, remark));
    }
    if call.shared.group_config(group).await?.is_none() {
        let remark = "subscription group does not exist";
        return Err(Refusal::new(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark));
    }
    let Some(mode) = MessageRequestMode::of(&wanted.mode) else {
        let remark = format!("message request mode {} is neither PULL nor POP", wanted.mode);
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    };
    let share = (mode == MessageRequestMode::Pop)
        .then(|| format!("{} {}", mode.name(), wanted.pop_share_queue_num));
    if share.is_some() || call.shared.pop_share(group, topic).is_some() {
        call.backend().put_kv_config(NAMESPACE, &key(group, topic), share).await?;
    }
    Ok(call.reply.ok())
}

impl<B: Backend> Shared<B> {
    /// How many members share a member's queues when the group pops from a topic; `None`: it pulls.
    fn pop_share(&self, group: &str, topic: &str) -> Option<i32> {
        if !self.backend.has_kv_configs(NAMESPACE) {
            return None;
        }
        let mode = self.backend.kv_config(NAMESPACE, &key(group, topic))?;
        mode.strip_prefix(MessageRequestMode::Pop.name())?.trim().parse().ok()
    }
}

fn key(group: &str, topic: &str) -> String {
    format!("{topic}@{group}")
}

/// The queues of the member that asks; `None` where they cannot be said.
fn assigned<B: Backend>(
    call: &Call<B>,
    asked: &QueryAssignmentRequestBody,
    share: Option<i32>,
) -> Option<Vec<MessageQueue>> {
    let topic = call.shared.topic(&asked.topic)?;
    let readable = if topic.perm & PERM_READ == 0 { 0 } else { topic.read_queues };
    let ids: Vec<i32> = match asked.message_model {
        MessageModel::Broadcasting => (0..readable).collect(),
        MessageModel::Clustering => {
            let group = call.backend().group(&asked.consumer_group)?;
            let strategy = Strategy::from_name(&asked.strategy_name)?;
            let ids = group.members.iter().map(|member| &*member.client.client_id);
            let members = ids.len();
            let member = ids.clone().position(|id| id == asked.client_id);
            match share {
                Some(share) => popped(strategy, share, readable, members, member),
                None => member.map_or_else(Vec::new, |it| strategy.allocate(readable, members, it)),
            }
        }
        MessageModel::LiteSelective => return None,
    };
    let config = call.backend().config();
    let queue = |queue_id| MessageQueue {
        topic: asked.topic.clone(),
        broker_name: config.broker_name.clone(),
        queue_id,
    };
    Some(ids.into_iter().map(queue).collect())
}

/// The queues that a member pops from: its own and those of the `share` members after it, or all.
/// Source: allocate4Pop.
fn popped(
    strategy: Strategy,
    share: i32,
    queues: i32,
    members: usize,
    member: Option<usize>,
) -> Vec<i32> {
    let share = usize::try_from(share).unwrap_or(0);
    if share == 0 || share >= members.saturating_sub(1) {
        return if queues > 0 { vec![ALL_QUEUES] } else { Vec::new() };
    }
    let Some(member) = member else { return Vec::new() };
    let count = usize::try_from(queues).unwrap_or(0);
    if members > count {
        // Each has one, so some have the same.
        let one = member.checked_rem(count).and_then(|queue| i32::try_from(queue).ok());
        return one.into_iter().collect();
    }
    let sharing = (0..=share).map(|after| (member + after) % members);
    let mut ids: Vec<i32> =
        sharing.flat_map(|member| strategy.allocate(queues, members, member)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// How queues are divided among the sorted members.
#[derive(Clone, Copy, Debug)]
enum Strategy {
    /// Runs of neighbours, the first members one more.
    Average,
    /// One queue to each in turn.
    AverageByCircle,
}

impl Strategy {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "AVG" => Some(Self::Average),
            "AVG_BY_CIRCLE" => Some(Self::AverageByCircle),
            _ => None,
        }
    }

    /// The queues of the `member`-th of `members`.
    fn allocate(self, queues: i32, members: usize, member: usize) -> Vec<i32> {
        let queues = usize::try_from(queues).unwrap_or(0);
        let (each, more) = (queues / members.max(1), queues % members.max(1));
        let ids = match self {
            Self::Average => {
                let start = member * each + member.min(more);
                let count = each + usize::from(member < more);
                (start..start + count).step_by(1)
            }
            Self::AverageByCircle => (member..queues).step_by(members.max(1)),
        };
        ids.filter_map(|id| i32::try_from(id).ok()).collect()
    }
}

fn malformed(error: BodyError) -> Refusal {
    Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string())
}

#[cfg(test)]
mod tests;
