//! CHECK_CLIENT_CONFIG: code 46. A client asks before it starts whether its expression will do.
//! Leaves out: SQL92, refused as by a broker without `enablePropertyFilter`.
//! Source: ClientManageProcessor.checkClientConfig.

use super::filter::{self, TAG};
use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::bodies::CheckClientRequestBody;
use crate::response_code::ResponseCode;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    if call.request.body.is_empty() {
        return Ok(call.reply.ok());
    }
    let body = CheckClientRequestBody::decode(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    match body.subscription_data {
        Some(data) if data.expression_type != TAG => {
            Err(filter::unsupported(&data.expression_type))
        }
        _ => Ok(call.reply.ok()),
    }
}
