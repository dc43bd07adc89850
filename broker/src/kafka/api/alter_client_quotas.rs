//! AlterClientQuotas: key 49, v0–v1. A quota that is taken away was not there; one that would be set is
//! refused, since nothing acts on it.
//!
//! Leaves out: quotas. Source: KIP-546; ClientQuotaControlManager.

use std::ops::RangeInclusive;

use super::admin::{Decided, Refused, fields};
use super::{Context, Handler};
use crate::kafka::codec::messages::alter_client_quotas_request::EntryData as Asked;
use crate::kafka::codec::messages::alter_client_quotas_response::{EntityData, EntryData};
use crate::kafka::codec::messages::{AlterClientQuotasRequest, AlterClientQuotasResponse};

/// The API.
pub(super) struct AlterClientQuotas;

impl Handler for AlterClientQuotas {
    type Request = AlterClientQuotasRequest;
    type Response = AlterClientQuotasResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(_: &Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse {
        let entries = request.entries.into_iter().map(|asked| {
            let (error_code, error_message) = fields(&alter(&asked));
            let entity = asked.entity.into_iter().map(|part| EntityData {
                entity_type: part.entity_type,
                entity_name: part.entity_name,
            });
            EntryData { error_code, error_message, entity: entity.collect() }
        });
        AlterClientQuotasResponse {
            entries: entries.collect(),
            ..AlterClientQuotasResponse::default()
        }
    }
}

fn alter(asked: &Asked) -> Decided {
    match asked.ops.iter().find(|op| !op.remove) {
        None => Ok(()),
        Some(op) => Err(Refused::invalid_request(format!(
            "{} cannot be set: this version does not act on quotas yet",
            op.key
        ))),
    }
}
