//! CHECK_CLIENT_CONFIG: code 46. A client asks before it starts whether its expression will do.
//! Source: ClientManageProcessor.checkClientConfig.

use super::filter;
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
    if let Some(data) = body.subscription_data {
        filter::check(&data.sub_string, &data.expression_type, &call.shared)?;
    }
    Ok(call.reply.ok())
}
