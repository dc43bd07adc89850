//! GET_BROKER_CLUSTER_INFO: code 106. Clusters, brokers and addresses; mqadmin begins with it.
//! Leaves out: followers, until there are several nodes.
//! Source: RouteInfoManager.getAllClusterInfo.

use super::route;
use crate::backend::Backend;
use crate::bodies::ClusterInfo;
use crate::processors::{Call, Outcome};

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let info = ClusterInfo { brokers: vec![route::broker(call)] };
    Ok(call.reply.ok().with_body(info.encode()))
}
