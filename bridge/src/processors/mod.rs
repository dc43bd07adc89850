//! One file per request code (or per pair of twins), and the table that joins codes to them.
//!
//! A processor validates, makes one call inward, and builds the answer. What is not in the table is
//! answered REQUEST_CODE_NOT_SUPPORTED.

mod ack_message;
mod all_topic_configs;
mod broker_consume_stats;
mod change_invisible_time;
mod check_client_config;
mod clean_up;
mod clone_offsets;
mod complain;
mod consume_queue;
mod consume_stats;
mod consume_time_span;
mod consumer_connections;
mod consumer_list;
mod consumer_status;
mod delete_topic;
mod earliest_store_time;
mod end_transaction;
mod filter;
mod group_configs;
mod group_forbidden;
mod group_topics;
mod groups;
mod ha_status;
mod heartbeat;
pub(crate) mod instruments;
mod notification;
mod peek_message;
mod polling_info;
mod pop;
mod pop_message;
mod producers;
mod pull_message;
mod query_assignment;
mod query_consumer_offset;
mod query_message;
mod queue_ends;
mod queue_lock;
mod recall_message;
mod relay;
mod reply;
mod reply_message;
mod reset_offset;
mod resume_check_half_message;
pub(crate) mod rules;
mod runtime_info;
mod search_offset;
mod send_back;
mod send_message;
mod settings;
mod stats_data;
mod store_time;
mod subscription_group;
mod system_topics;
mod topic_config;
mod topic_consumers;
mod topic_stats;
pub(crate) mod topics;
mod unregister_client;
mod update_consumer_offset;
pub(crate) mod update_topic;
mod update_topic_list;
mod view_message;

use std::sync::Arc;

pub(crate) use heartbeat::HeartbeatFingerprints;
pub(crate) use pull_message::Unseeable;
pub(crate) use reply::{Outcome, Refusal, Reply};
pub(crate) use send_message::UniqueKeys;

use crate::backend::Backend;
use crate::dispatch::{Answer, BoxFuture, Shared};
use crate::namesrv;
use crate::remoting::RemotingCommand;
use crate::session::{Door, Session};

/// One request on its way to its answer.
pub(crate) struct Call<B> {
    pub(crate) shared: Arc<Shared<B>>,
    pub(crate) session: Arc<Session>,
    pub(crate) reply: Reply,
    pub(crate) request: RemotingCommand,
}

impl<B> Call<B> {
    pub(crate) fn backend(&self) -> &B {
        &self.shared.backend
    }
}

/// How a code is served.
pub(crate) enum Handler<B> {
    /// Answered from published snapshots.
    Now(fn(&Call<B>) -> Outcome),
    /// Waits for the node.
    Later(fn(Call<B>) -> BoxFuture<Option<Answer>>),
}

/// A request code that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// On the wire.
    pub code: i32,
    /// The constant's name in the original.
    pub name: &'static str,
    /// Where; the broker's codes are served at the VIP door too, but for those in
    /// [`NOT_AT_VIP_DOOR`].
    pub door: Door,
}

/// Pulls and pops: the original serves them at the broker's own door alone.
pub const NOT_AT_VIP_DOOR: [i32; 6] = [11, 361, 200_050, 200_052, 200_054, 200_055];

macro_rules! table {
    ($($door:ident { $($kind:ident $code:literal $name:ident => $handle:path,)* })*) => {
        /// Every request code that is served.
        pub const SERVED: &[Served] = &[
            $($(Served { code: $code, name: stringify!($name), door: Door::$door },)*)*
        ];

        /// Who serves `code` at `door`.
        pub(crate) fn handler<B: Backend>(door: Door, code: i32) -> Option<Handler<B>> {
            let door = match door {
                Door::BrokerVip if NOT_AT_VIP_DOOR.contains(&code) => return None,
                Door::BrokerVip => Door::Broker,
                door => door,
            };
            match (door, code) {
                $($((Door::$door, $code) => Some(table!(@ $kind $handle)),)*)*
                _ => None,
            }
        }
    };
    (@ now $handle:path) => { Handler::Now($handle) };
    (@ later $handle:path) => {
        // The handler's future comes into being where it stays: a send's is some KiB.
        Handler::Later(|call| {
            Box::pin(async move {
                let (reply, code) = (call.reply, call.request.code);
                reply.finish(code, $handle(call).await)
            })
        })
    };
}

table! {
    NameServer {
        later 100 PUT_KV_CONFIG => namesrv::kv_config::put,
        now 101 GET_KV_CONFIG => namesrv::kv_config::get,
        later 102 DELETE_KV_CONFIG => namesrv::kv_config::delete,
        now 103 REGISTER_BROKER => namesrv::registration::register,
        now 104 UNREGISTER_BROKER => namesrv::registration::unregister,
        later 105 GET_ROUTEINFO_BY_TOPIC => namesrv::route::handle,
        now 106 GET_BROKER_CLUSTER_INFO => namesrv::cluster_info::handle,
        now 205 WIPE_WRITE_PERM_OF_BROKER => namesrv::write_permission::wipe,
        now 206 GET_ALL_TOPIC_LIST_FROM_NAMESERVER => namesrv::topic_list::handle,
        now 216 DELETE_TOPIC_IN_NAMESRV => namesrv::delete_topic::handle,
        later 217 REGISTER_TOPIC_IN_NAMESRV => namesrv::registration::register_topic,
        now 219 GET_KVLIST_BY_NAMESPACE => namesrv::kv_config::list,
        now 224 GET_TOPICS_BY_CLUSTER => namesrv::topic_lists::of_cluster,
        now 304 GET_SYSTEM_TOPIC_LIST_FROM_NS => namesrv::topic_lists::of_system,
        now 311 GET_UNIT_TOPIC_LIST => namesrv::topic_lists::of_units,
        now 312 GET_HAS_UNIT_SUB_TOPIC_LIST => namesrv::topic_lists::subscribed_from_units,
        now 313 GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST =>
            namesrv::topic_lists::subscribed_from_units_alone,
        later 318 UPDATE_NAMESRV_CONFIG => settings::put_of_name_server,
        now 319 GET_NAMESRV_CONFIG => settings::of_name_server,
        now 327 ADD_WRITE_PERM_OF_BROKER => namesrv::write_permission::add,
    }
    Broker {
        later 10 SEND_MESSAGE => send_message::handle,
        later 11 PULL_MESSAGE => pull_message::handle,
        later 12 QUERY_MESSAGE => query_message::handle,
        later 14 QUERY_CONSUMER_OFFSET => query_consumer_offset::handle,
        later 15 UPDATE_CONSUMER_OFFSET => update_consumer_offset::handle,
        later 17 UPDATE_AND_CREATE_TOPIC => update_topic::handle,
        later 18 UPDATE_AND_CREATE_TOPIC_LIST => update_topic_list::handle,
        now 21 GET_ALL_TOPIC_CONFIG => all_topic_configs::handle,
        later 25 UPDATE_BROKER_CONFIG => settings::put_of_broker,
        now 26 GET_BROKER_CONFIG => settings::of_broker,
        later 28 GET_BROKER_RUNTIME_INFO => runtime_info::handle,
        later 29 SEARCH_OFFSET_BY_TIMESTAMP => search_offset::handle,
        later 30 GET_MAX_OFFSET => queue_ends::max,
        later 31 GET_MIN_OFFSET => queue_ends::min,
        later 32 GET_EARLIEST_MSG_STORETIME => earliest_store_time::handle,
        later 33 VIEW_MESSAGE_BY_ID => view_message::handle,
        later 34 HEART_BEAT => heartbeat::handle,
        later 35 UNREGISTER_CLIENT => unregister_client::handle,
        later 36 CONSUMER_SEND_MSG_BACK => send_back::handle,
        later 37 END_TRANSACTION => end_transaction::handle,
        now 38 GET_CONSUMER_LIST_BY_GROUP => consumer_list::handle,
        later 41 LOCK_BATCH_MQ => queue_lock::lock,
        later 42 UNLOCK_BATCH_MQ => queue_lock::unlock,
        now 46 CHECK_CLIENT_CONFIG => check_client_config::handle,
        later 200 UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => subscription_group::put,
        now 201 GET_ALL_SUBSCRIPTIONGROUP_CONFIG => group_configs::all,
        later 202 GET_TOPIC_STATS_INFO => topic_stats::handle,
        now 203 GET_CONSUMER_CONNECTION_LIST => consumer_connections::handle,
        now 204 GET_PRODUCER_CONNECTION_LIST => producers::of_group,
        later 207 DELETE_SUBSCRIPTIONGROUP => group_configs::delete,
        later 208 GET_CONSUME_STATS => consume_stats::handle,
        later 215 DELETE_TOPIC_IN_BROKER => delete_topic::handle,
        later 222 INVOKE_BROKER_TO_RESET_OFFSET => reset_offset::handle,
        later 223 INVOKE_BROKER_TO_GET_CONSUMER_STATUS => consumer_status::handle,
        later 225 UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST => subscription_group::put_list,
        now 300 QUERY_TOPIC_CONSUME_BY_WHO => topic_consumers::handle,
        later 303 QUERY_CONSUME_TIME_SPAN => consume_time_span::handle,
        now 305 GET_SYSTEM_TOPIC_LIST_FROM_BROKER => system_topics::handle,
        now 306 CLEAN_EXPIRED_CONSUMEQUEUE => clean_up::expired,
        later 307 GET_CONSUMER_RUNNING_INFO => relay::running_info,
        later 308 QUERY_CORRECTION_OFFSET => clone_offsets::correction,
        later 309 CONSUME_MESSAGE_DIRECTLY => relay::consume_directly,
        later 310 SEND_MESSAGE_V2 => send_message::handle,
        later 314 CLONE_GROUP_OFFSET => clone_offsets::clone,
        later 315 VIEW_BROKER_STATS_DATA => stats_data::handle,
        now 316 CLEAN_UNUSED_TOPIC => clean_up::unused,
        later 317 GET_BROKER_CONSUME_STATS => broker_consume_stats::handle,
        later 320 SEND_BATCH_MESSAGE => send_message::handle,
        later 321 QUERY_CONSUME_QUEUE => consume_queue::handle,
        later 323 RESUME_CHECK_HALF_MESSAGE => resume_check_half_message::handle,
        later 324 SEND_REPLY_MESSAGE => reply_message::handle,
        later 325 SEND_REPLY_MESSAGE_V2 => reply_message::handle,
        now 328 GET_ALL_PRODUCER_INFO => producers::all,
        now 329 DELETE_EXPIRED_COMMITLOG => clean_up::expired,
        later 343 QUERY_TOPICS_BY_CONSUMER => group_topics::topics,
        now 345 QUERY_SUBSCRIPTION_BY_CONSUMER => group_topics::subscription,
        now 351 GET_TOPIC_CONFIG => topic_config::handle,
        later 352 GET_SUBSCRIPTIONGROUP_CONFIG => subscription_group::get,
        later 353 UPDATE_AND_GET_GROUP_FORBIDDEN => group_forbidden::handle,
        later 361 LITE_PULL_MESSAGE => pull_message::handle,
        later 370 RECALL_MESSAGE => recall_message::handle,
        now 400 QUERY_ASSIGNMENT => query_assignment::query,
        later 401 SET_MESSAGE_REQUEST_MODE => query_assignment::set_mode,
        later 907 GET_BROKER_HA_STATUS => ha_status::handle,
        later 200_050 POP_MESSAGE => pop_message::handle,
        later 200_051 ACK_MESSAGE => ack_message::one,
        later 200_052 PEEK_MESSAGE => peek_message::handle,
        later 200_053 CHANGE_MESSAGE_INVISIBLETIME => change_invisible_time::handle,
        later 200_054 NOTIFICATION => notification::handle,
        later 200_055 POLLING_INFO => polling_info::handle,
        later 200_151 BATCH_ACK_MESSAGE => ack_message::many,
    }
}

#[cfg(test)]
mod tests;
