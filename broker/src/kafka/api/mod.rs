//! The table of what is served. ApiVersions is built from it, so advertised is implemented.

mod acls;
mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod admin;
mod alter_client_quotas;
mod alter_configs;
mod alter_partition_reassignments;
mod alter_replica_log_dirs;
mod alter_user_scram_credentials;
mod api_versions;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_client_quotas;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_topic_partitions;
mod describe_transactions;
mod describe_user_scram_credentials;
mod elect_leaders;
mod end_txn;
mod fetch;
mod find_coordinator;
mod get_telemetry_subscriptions;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod list_transactions;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod produce;
mod push_telemetry;
mod sync_group;
mod txn_offset_commit;
mod unregister_broker;
mod update_features;
mod write_txn_markers;

use std::future::Future;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::codec::{
    ApiKey, DecodeError, EncodeError, Frame, Message, RequestHeader, Str, encode_response,
};
use super::features::TRANSACTION_VERSION;
use crate::config::Config;
use crate::controller::image::Image;
use crate::node::Node;
use crate::telemetry::ClientConnection;

/// Every API that is served, in order of its key.
pub const APIS: &[Api] = &[
    produce::API,
    Api::of::<fetch::Fetch>(),
    Api::of::<list_offsets::ListOffsets>(),
    Api::of::<metadata::Metadata>(),
    Api::of::<offset_commit::OffsetCommit>(),
    Api::of::<offset_fetch::OffsetFetch>(),
    Api::of::<find_coordinator::FindCoordinator>(),
    Api::of::<join_group::JoinGroup>(),
    Api::of::<heartbeat::Heartbeat>(),
    Api::of::<leave_group::LeaveGroup>(),
    Api::of::<sync_group::SyncGroup>(),
    Api::of::<describe_groups::DescribeGroups>(),
    Api::of::<list_groups::ListGroups>(),
    api_versions::API,
    Api::of::<create_topics::CreateTopics>(),
    Api::of::<delete_topics::DeleteTopics>(),
    Api::of::<delete_records::DeleteRecords>(),
    Api::of::<init_producer_id::InitProducerId>(),
    Api::of::<offset_for_leader_epoch::OffsetForLeaderEpoch>(),
    Api::of::<add_partitions_to_txn::AddPartitionsToTxn>(),
    Api::of::<add_offsets_to_txn::AddOffsetsToTxn>(),
    Api::of::<end_txn::EndTxn>(),
    Api::of::<write_txn_markers::WriteTxnMarkers>(),
    Api::of::<txn_offset_commit::TxnOffsetCommit>(),
    Api::of::<acls::DescribeAcls>(),
    Api::of::<acls::CreateAcls>(),
    Api::of::<acls::DeleteAcls>(),
    Api::of::<describe_configs::DescribeConfigs>(),
    Api::of::<alter_configs::AlterConfigs>(),
    Api::of::<alter_replica_log_dirs::AlterReplicaLogDirs>(),
    Api::of::<describe_log_dirs::DescribeLogDirs>(),
    Api::of::<create_partitions::CreatePartitions>(),
    Api::of::<delete_groups::DeleteGroups>(),
    Api::of::<elect_leaders::ElectLeaders>(),
    Api::of::<incremental_alter_configs::IncrementalAlterConfigs>(),
    Api::of::<alter_partition_reassignments::AlterPartitionReassignments>(),
    Api::of::<list_partition_reassignments::ListPartitionReassignments>(),
    Api::of::<offset_delete::OffsetDelete>(),
    Api::of::<describe_client_quotas::DescribeClientQuotas>(),
    Api::of::<alter_client_quotas::AlterClientQuotas>(),
    Api::of::<describe_user_scram_credentials::DescribeUserScramCredentials>(),
    Api::of::<alter_user_scram_credentials::AlterUserScramCredentials>(),
    Api::of::<describe_quorum::DescribeQuorum>(),
    Api::of::<update_features::UpdateFeatures>(),
    Api::of::<describe_cluster::DescribeCluster>(),
    Api::of::<describe_producers::DescribeProducers>(),
    Api::of::<unregister_broker::UnregisterBroker>(),
    Api::of::<describe_transactions::DescribeTransactions>(),
    Api::of::<list_transactions::ListTransactions>(),
    Api::of::<consumer_group_heartbeat::ConsumerGroupHeartbeat>(),
    Api::of::<consumer_group_describe::ConsumerGroupDescribe>(),
    Api::of::<get_telemetry_subscriptions::GetTelemetrySubscriptions>().with(RECEIVES_TELEMETRY),
    Api::of::<push_telemetry::PushTelemetry>().with(RECEIVES_TELEMETRY),
    Api::of::<list_config_resources::ListConfigResources>(),
    Api::of::<describe_topic_partitions::DescribeTopicPartitions>(),
];

/// A receiver of telemetry is configured.
const RECEIVES_TELEMETRY: fn(&Config) -> bool = |config| config.telemetry.received;

/// What a handler knows besides the request.
#[derive(Clone, Debug)]
pub struct Context {
    /// What handlers call; shared by all connections.
    pub node: Arc<Node>,
    /// Version of the request and of its answer.
    pub version: i16,
    /// Comes back in the answer.
    pub correlation_id: i32,
    /// The client's own name for itself.
    pub client_id: Option<Str>,
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// The listener it came in by; its advertised address is what this client can reach.
    pub listener: usize,
    /// What is known of the client beyond that.
    pub connection: Arc<ClientConnection>,
}

impl Context {
    /// The client's own name for itself, empty if it has none.
    pub(super) fn client(&self) -> &str {
        self.client_id.as_deref().unwrap_or_default()
    }
}

/// What becomes of a request.
pub enum Reply {
    /// The answer is there.
    Now(Frame),
    /// The request has taken its place in order; the answer comes when others have confirmed it,
    /// and is none for a write that asked for none.
    Later(Pending),
    /// There is no answer.
    None,
}

/// A request that closes its connection: the protocol has no answer for it.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No such API here.
    #[error("unknown api key {0}")]
    UnknownApi(i16),
    /// Not a version of the table.
    #[error("{} has no version {version} here, expected {min} to {max}", api.name())]
    UnsupportedVersion {
        /// A key of the table.
        api: ApiKey,
        /// As sent.
        version: i16,
        /// Lowest served.
        min: i16,
        /// Highest served.
        max: i16,
    },
    /// The bytes are not such a request.
    #[error("undecodable request: {0}")]
    Decode(#[from] DecodeError),
    /// An answer that its version cannot carry: our fault.
    #[error("unencodable response: {0}")]
    Encode(#[from] EncodeError),
    /// A write without answer has failed; closing is all that can tell it (case B15).
    #[error("acks=0 request failed: {0}")]
    UnansweredFailure(String),
}

/// An answer that is not there yet.
pub type Pending = Pin<Box<dyn Future<Output = Result<Option<Frame>, Refusal>> + Send>>;

/// A handler at work.
pub type Running = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send>>;

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Api {
    /// The key on the wire.
    pub key: ApiKey,
    min: i16,
    max: i16,
    /// Hidden unless this holds.
    served: fn(&Config) -> bool,
    run: fn(Context, Bytes) -> Running,
}

/// An API whose answer is ready when its handler returns: all but Produce.
pub(super) trait Handler {
    /// What comes in.
    type Request: Message + Send + 'static;
    /// What goes out.
    type Response: Message + Send;
    /// What is served of it.
    const VERSIONS: RangeInclusive<i16>;

    /// Validates, makes one call inward, builds the answer.
    fn handle(
        context: &Context,
        request: Self::Request,
    ) -> impl Future<Output = Self::Response> + Send;
}

impl Api {
    const fn of<H: Handler>() -> Self {
        Self::new(H::Request::API_KEY, H::VERSIONS, run::<H>)
    }

    const fn new(
        key: ApiKey,
        versions: RangeInclusive<i16>,
        run: fn(Context, Bytes) -> Running,
    ) -> Self {
        Self { key, min: *versions.start(), max: *versions.end(), served: |_| true, run }
    }

    /// Hides it unless `served` says otherwise.
    const fn with(self, served: fn(&Config) -> bool) -> Self {
        Self { served, ..self }
    }

    /// Whether a node with this configuration serves it.
    pub fn is_served(&self, config: &Config) -> bool {
        (self.served)(config)
    }

    /// What is served: lowest and highest version, inclusive.
    pub const fn versions(&self) -> (i16, i16) {
        (self.min, self.max)
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}..={}", self.key.name(), self.min, self.max)
    }
}

fn run<H: Handler>(context: Context, body: Bytes) -> Running {
    Box::pin(async move {
        let request = H::Request::from_client(&body, context.version)?;
        drop(body);
        let response = H::handle(&context, request).await;
        Ok(Reply::Now(encode_response(context.correlation_id, context.version, &response)?))
    })
}

/// Whether transactional writes of older clients are verified with their coordinator; dynamic, so it
/// is looked up.
fn verifies_transactions(image: &Image) -> bool {
    image.values().parse("transaction.partition.verification.enable").unwrap_or(true)
}

/// Whether requests of transactions v2 are served: those that add partitions by writing, and raise the
/// epoch with every end.
fn serves_transactions_v2(context: &Context) -> bool {
    TRANSACTION_VERSION.level(&context.node.controller.image()) >= 2
}

/// Finds the row of a request.
///
/// Errors when there is none, or its versions do not include the request's; ApiVersions itself is
/// answered whatever its version (case B03).
pub fn find(config: &Config, header: &RequestHeader) -> Result<&'static Api, Refusal> {
    let api = ApiKey::from_code(header.api_key)
        .and_then(|key| APIS.iter().find(|api| api.key == key && api.is_served(config)))
        .ok_or(Refusal::UnknownApi(header.api_key))?;
    if (api.min..=api.max).contains(&header.api_version) || api.key == ApiKey::ApiVersions {
        return Ok(api);
    }
    let (min, max) = api.versions();
    Err(Refusal::UnsupportedVersion { api: api.key, version: header.api_version, min, max })
}

impl Api {
    /// Serves a request found by [`find`].
    pub fn run(&self, context: Context, body: Bytes) -> Running {
        (self.run)(context, body)
    }
}

#[cfg(test)]
mod tests;
