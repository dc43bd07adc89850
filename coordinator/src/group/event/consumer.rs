//! What members of the consumer protocol ask (KIP-848).

use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::{GroupId, MemberId};

/// Epoch of a member that joins, or joins anew.
pub const JOIN_EPOCH: i32 = 0;
/// Epoch of a member that leaves.
pub const LEAVE_EPOCH: i32 = -1;
/// Epoch of a static member that leaves and means to come back.
pub const LEAVE_FOR_NOW_EPOCH: i32 = -2;

/// Who makes a member's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberIdMaker {
    /// The server, if the member brings none (ConsumerGroupHeartbeat v0).
    Server,
    /// The client (v1 on, KIP-1082).
    Client,
}

/// ConsumerGroupHeartbeat (key 68). `None` where nothing has changed since the last one.
#[derive(Clone, Debug)]
pub struct ConsumerGroupHeartbeat {
    /// The group.
    pub group: GroupId,
    /// The member's id.
    pub member: MemberId,
    /// By version.
    pub id_maker: MemberIdMaker,
    /// The epoch that the member is in; 0 to join, −1 and −2 to leave.
    pub epoch: i32,
    /// `group.instance.id`; told in every heartbeat of a static member.
    pub instance: Option<Arc<str>>,
    /// Where it runs.
    pub rack: Option<Arc<str>>,
    /// How long it may take to give up partitions.
    pub rebalance_timeout_ms: Option<i32>,
    /// Names of the topics it wants.
    pub topics: Option<Vec<Arc<str>>>,
    /// Regular expression of the topics it wants besides; empty for none (v1 on).
    pub regex: Option<Arc<str>>,
    /// The assignor that it asks for.
    pub assignor: Option<Arc<str>>,
    /// What it has.
    pub owned: Option<Vec<(TopicId, Vec<i32>)>>,
    /// Its client id.
    pub client_id: Arc<str>,
    /// Its address, as `/127.0.0.1`.
    pub client_host: Arc<str>,
    /// Random bytes, used when a member id must be made.
    pub uuid: [u8; 16],
}
