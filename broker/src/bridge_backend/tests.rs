//! What RocketMQ clients see of a whole node.

mod administration;
mod delays;
mod filter;
mod large_batches;
mod stable;
mod topics;
mod views;

use duolog_bridge::remoting::RemotingCommand;

use crate::testing::rocketmq::{RemotingClient, field, offsets};

/// Pulls queue 0 of `topic` as a client does, from `offset` to its end, never past a hole by a
/// correction (pitfall 6); the offsets of all messages.
async fn pull_through(
    client: &RemotingClient,
    topic: &str,
    offset: i64,
    changes: &[(&str, &str)],
) -> Vec<i64> {
    let (mut next, mut seen) = (offset, Vec::new());
    loop {
        let answer = client.pull(topic, next, changes).await;
        seen.extend(offsets(&answer));
        if answer.code == 19 {
            return seen;
        }
        assert!(matches!(answer.code, 0 | 20), "{next}: {} {:?}", answer.code, answer.remark);
        let beyond = field(&answer, "nextBeginOffset");
        assert!(beyond > next, "{next} leads to {beyond}");
        next = beyond;
    }
}

fn text(answer: &RemotingCommand) -> &str {
    std::str::from_utf8(&answer.body).expect("text")
}
