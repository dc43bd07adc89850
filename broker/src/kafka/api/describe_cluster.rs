//! DescribeCluster: key 60, v0–v2. The cluster's id, its controller and its nodes.
//!
//! Leaves out: controller endpoints, as there are none apart. Source: KIP-700, KIP-919, KIP-1073.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::kafka::codec::messages::describe_cluster_response::DescribeClusterBroker;
use crate::kafka::codec::messages::{DescribeClusterRequest, DescribeClusterResponse};
use crate::kafka::errors::ErrorCode;
use crate::kafka::operations;

/// The kinds of endpoint that a client may ask for (KIP-919).
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// The API.
pub(super) struct DescribeCluster;

impl Handler for DescribeCluster {
    type Request = DescribeClusterRequest;
    type Response = DescribeClusterResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: DescribeClusterRequest) -> DescribeClusterResponse {
        match request.endpoint_type {
            BROKERS => described(context, &request),
            CONTROLLERS => refused(
                ErrorCode::MismatchedEndpointType,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of \
                 type CONTROLLER"
                    .to_owned(),
            ),
            other => refused(
                ErrorCode::UnsupportedEndpointType,
                format!("Unsupported endpoint type {other}"),
            ),
        }
    }
}

fn described(context: &Context, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    let node = &context.node;
    let (host, port) = node.advertised(context.listener);
    let broker =
        DescribeClusterBroker { broker_id: node.id(), host, port, rack: None, is_fenced: false };
    DescribeClusterResponse {
        endpoint_type: BROKERS,
        cluster_id: node.cluster_id(),
        controller_id: node.id(),
        brokers: vec![broker],
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            operations::CLUSTER
        } else {
            operations::NOT_ASKED
        },
        ..DescribeClusterResponse::default()
    }
}

fn refused(code: ErrorCode, message: String) -> DescribeClusterResponse {
    DescribeClusterResponse {
        error_code: code.code(),
        error_message: Some(message.into()),
        ..DescribeClusterResponse::default()
    }
}
