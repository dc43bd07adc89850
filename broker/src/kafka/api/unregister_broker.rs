//! UnregisterBroker: key 64, v0. The only node cannot be taken out of its cluster; of others none is
//! registered.
//!
//! Leaves out: registrations. Source: KIP-631; ClusterControlManager.unregisterBroker.

use std::ops::RangeInclusive;

use super::admin::{Refused, fields};
use super::{Context, Handler};
use crate::kafka::codec::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct UnregisterBroker;

impl Handler for UnregisterBroker {
    type Request = UnregisterBrokerRequest;
    type Response = UnregisterBrokerResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(
        context: &Context,
        request: UnregisterBrokerRequest,
    ) -> UnregisterBrokerResponse {
        let asked = request.broker_id;
        let refused = if asked == context.node.id() {
            Refused::invalid_request(format!("Broker {asked} is the only one of this cluster."))
        } else {
            let text = format!("Broker ID {asked} is not currently registered");
            Refused::new(ErrorCode::BrokerIdNotRegistered, text)
        };
        let (error_code, error_message) = fields(&Err(refused));
        UnregisterBrokerResponse {
            error_code,
            error_message,
            ..UnregisterBrokerResponse::default()
        }
    }
}
