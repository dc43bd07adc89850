//! END_TRANSACTION: code 37. A producer says how a half message ended: committed, it comes to its
//! queue once, whatever happens meanwhile; rolled back, it comes nowhere; unknown is ignored. The
//! first word counts: a second one is answered as done and changes nothing. (The original delivers a
//! message again that is committed again, and one that was rolled back.)
//! What the original never answers is answered here: "unknown" as done, any other value as wrong.
//! Gate `check.reply` catches answers to a question of ours.
//! Source: EndTransactionProcessor, TransactionalMessageUtil.getImmunityTime.

use duolog_log_core::gate::GatePoint;

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, HalfEnding, HalfView};
use crate::remoting::message::sys_flag;
use crate::response_code::ResponseCode;
use crate::translate::queue::PseudoAddress;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("producerGroup")?;
    let queue_offset: i64 = call.request.field("tranStateTableOffset")?;
    let physical: i64 = call.request.field("commitLogOffset")?;
    let ending: i32 = call.request.field("commitOrRollback")?;
    let _id: &str = call.request.field("msgId")?;
    let is_asked = call.request.optional_field("fromTransactionCheck")?.unwrap_or(false);
    if is_asked {
        call.shared.pass(GatePoint::CheckReply, &call.session, None).await?;
    }
    let ending = match ending {
        0 => return Ok(call.reply.ok()),
        sys_flag::TRANSACTION_COMMIT => HalfEnding::Commit,
        sys_flag::TRANSACTION_ROLLBACK => HalfEnding::Rollback,
        other => {
            return Err(refusal(format!(
                "commitOrRollback {other} is none of 0 (unknown), 8 (commit), 12 (rollback)"
            )));
        }
    };
    let half = match PseudoAddress::from_physical(physical) {
        Some(address) => call.backend().half(address.partition_number(), address.offset()).await?,
        None => None,
    };
    let half = half.ok_or_else(|| refusal("Find prepared transaction message failed"))?;
    if !is_asked && is_too_late(&half, call.backend().now_ms()) {
        return Ok(call.reply.code(ResponseCode::ILLEGAL_OPERATION));
    }
    if *half.group != *group {
        return Err(refusal("The producer group wrong"));
    }
    if half.offset != queue_offset {
        return Err(refusal("The transaction state table offset wrong"));
    }
    call.backend().end_half(&half, ending, call.session.client_name()).await?;
    Ok(call.reply.ok())
}

/// Of a message with its own immunity the producer is asked once that is over, and only its answer
/// counts then.
fn is_too_late(half: &HalfView, now_ms: i64) -> bool {
    half.unasked_ms.is_some_and(|unasked_ms| now_ms.saturating_sub(half.born_ms) > unasked_ms)
}

fn refusal(remark: impl Into<String>) -> Refusal {
    Refusal::new(ResponseCode::SYSTEM_ERROR, remark)
}

#[cfg(test)]
mod tests;
