//! PUT_KV_CONFIG, GET_KV_CONFIG, DELETE_KV_CONFIG, GET_KVLIST_BY_NAMESPACE: codes 100, 101, 102,
//! 219. The name server's small store of texts, used for the order of topics.
//! Source: DefaultRequestProcessor, KVConfigManager.

use crate::backend::Backend;
use crate::bodies::KVTable;
use crate::processors::{Call, Outcome, Refusal};
use crate::response_code::ResponseCode;

/// A put without a value leaves nothing to get, as in the original, whose map then holds a null.
pub(crate) async fn put<B: Backend>(call: Call<B>) -> Outcome {
    let namespace: &str = call.request.field("namespace")?;
    let key: &str = call.request.field("key")?;
    let value: Option<&str> = call.request.optional_field("value")?;
    call.backend().put_kv_config(namespace, key, value.map(str::to_owned)).await?;
    Ok(call.reply.ok())
}

pub(crate) fn get<B: Backend>(call: &Call<B>) -> Outcome {
    let namespace: &str = call.request.field("namespace")?;
    let key: &str = call.request.field("key")?;
    match call.backend().kv_config(namespace, key) {
        Some(value) => Ok(call.reply.ok().with_field("value", value)),
        None => Err(Refusal::new(
            ResponseCode::QUERY_NOT_FOUND,
            format!("No config item, Namespace: {namespace} Key: {key}"),
        )),
    }
}

/// Unlike in the original, a namespace whose last value was deleted is not there.
pub(crate) fn list<B: Backend>(call: &Call<B>) -> Outcome {
    let namespace: Option<&str> = call.request.optional_field("namespace")?;
    let table = namespace.map(|namespace| call.backend().kv_configs(namespace)).unwrap_or_default();
    if table.is_empty() {
        let namespace = namespace.unwrap_or("null");
        let remark = format!("No config item, Namespace: {namespace}");
        return Err(Refusal::new(ResponseCode::QUERY_NOT_FOUND, remark));
    }
    Ok(call.reply.ok().with_body(KVTable { table }.encode()))
}

pub(crate) async fn delete<B: Backend>(call: Call<B>) -> Outcome {
    let namespace: &str = call.request.field("namespace")?;
    let key: &str = call.request.field("key")?;
    call.backend().put_kv_config(namespace, key, None).await?;
    Ok(call.reply.ok())
}
