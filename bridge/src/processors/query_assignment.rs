//! QUERY_ASSIGNMENT and SET_MESSAGE_REQUEST_MODE: codes 400 and 401. The queues of one member,
//! divided by the broker instead of by each client (`clientRebalance=false`), and how it gets their
//! messages: by pulling.
//! Strategies: AVG and AVG_BY_CIRCLE, as in the original. An answer without a list (another
//! strategy; topic or group not there) leaves the client with the queues that it has.
//! Leaves out: pop. A mode other than PULL is refused and nothing is kept of it; PULL is what every
//! group has, so nothing is kept of that either.
//! Source: QueryAssignmentProcessor, AllocateMessageQueueAveragely(ByCircle).

use super::rules::RETRY_PREFIX;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, MessageModel, PERM_READ};
use crate::bodies::{
    BodyError, MessageQueue, QueryAssignmentRequestBody, QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
};
use crate::response_code::ResponseCode;

pub(crate) fn query<B: Backend>(call: &Call<B>) -> Outcome {
    let asked = QueryAssignmentRequestBody::decode(&call.request.body).map_err(malformed)?;
    let body = QueryAssignmentResponseBody { queues: assigned(call, &asked) };
    Ok(call.reply.ok().with_body(body.encode()))
}

pub(crate) async fn set_mode<B: Backend>(call: Call<B>) -> Outcome {
    let wanted = SetMessageRequestModeRequestBody::decode(&call.request.body).map_err(malformed)?;
    if wanted.topic.starts_with(RETRY_PREFIX) {
        let remark = "retry topic is not allowed to set mode";
        return Err(Refusal::new(ResponseCode::NO_PERMISSION, remark));
    }
    if call.shared.topic_or_template(&wanted.topic).is_none() {
        let remark = format!("topic[{}] not exist", wanted.topic);
        return Err(Refusal::new(ResponseCode::TOPIC_NOT_EXIST, remark));
    }
    if call.shared.group_config(&wanted.consumer_group).await?.is_none() {
        let remark = "subscription group does not exist";
        return Err(Refusal::new(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark));
    }
    if wanted.mode != "PULL" {
        let remark = format!(
            "message request mode {} is not supported yet by this broker, use PULL",
            wanted.mode
        );
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    }
    Ok(call.reply.ok())
}

/// The queues of the member that asks; `None` where they cannot be said.
fn assigned<B: Backend>(
    call: &Call<B>,
    asked: &QueryAssignmentRequestBody,
) -> Option<Vec<MessageQueue>> {
    let topic = call.shared.topic(&asked.topic)?;
    let readable = if topic.perm & PERM_READ == 0 { 0 } else { topic.read_queues };
    let ids: Vec<i32> = match asked.message_model {
        MessageModel::Broadcasting => (0..readable).collect(),
        MessageModel::Clustering => {
            let group = call.backend().group(&asked.consumer_group)?;
            let strategy = Strategy::from_name(&asked.strategy_name)?;
            let ids = group.members.iter().map(|member| &*member.client.client_id);
            match ids.clone().position(|id| id == asked.client_id) {
                Some(member) => strategy.allocate(readable, ids.len(), member),
                None => Vec::new(),
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
