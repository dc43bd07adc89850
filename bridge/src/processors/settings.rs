//! GET_BROKER_CONFIG, UPDATE_BROKER_CONFIG, GET_NAMESRV_CONFIG, UPDATE_NAMESRV_CONFIG: codes 26, 25,
//! 319, 318. The node's settings under RocketMQ's names. What a running node takes is stored with its
//! metadata and outlives a restart.
//! Unlike the original, which passes over what it does not know, a setting that nothing acts on is
//! refused with 29 unless it is at its default.
//! Source: AdminBrokerProcessor.updateBrokerConfig, DefaultRequestProcessor.updateConfig,
//! Configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::response_code::ResponseCode;

/// What cannot be set from outside. Source: `configBlackList`.
const FORBIDDEN: [&str; 4] =
    ["brokerConfigPath", "configBlackList", "configStorePath", "kvConfigPath"];

/// The settings that are the name server's. Source: NamesrvConfig.
const NAME_SERVERS: [&str; 13] = [
    "clientRequestThreadPoolNums",
    "clusterTest",
    "defaultThreadPoolNums",
    "deleteTopicWithBrokerRegistration",
    "enableAllTopicList",
    "enableControllerInNamesrv",
    "enableTopicList",
    "notifyMinBrokerIdChanged",
    "orderMessageEnable",
    "productEnvName",
    "returnOrderTopicConfigToBroker",
    "scanNotActiveBrokerInterval",
    "supportActingMaster",
];

/// The name server's port is another setting here.
const NAME_SERVERS_PORT: &str = "namesrvListenPort";
const PORT: &str = "listenPort";

pub(crate) fn of_broker<B: Backend>(call: &Call<B>) -> Outcome {
    let mut settings = call.backend().settings();
    settings.retain(|name, _| !NAME_SERVERS.contains(&&**name) && name != NAME_SERVERS_PORT);
    let now_ms = call.backend().now_ms();
    let version = format!("{{\"counter\":0,\"stateVersion\":0,\"timestamp\":{now_ms}}}");
    Ok(call.reply.ok().with_field("version", version).with_body(text(&settings)))
}

pub(crate) async fn put_of_broker<B: Backend>(call: Call<B>) -> Outcome {
    let settings = changes(&call)?;
    call.backend().put_settings(settings).await?;
    Ok(call.reply.ok())
}

pub(crate) fn of_name_server<B: Backend>(call: &Call<B>) -> Outcome {
    let mut settings = call.backend().settings();
    let port = settings.remove(NAME_SERVERS_PORT);
    settings.retain(|name, _| NAME_SERVERS.contains(&&**name));
    settings.extend(port.map(|port| (PORT.to_owned(), port)));
    Ok(call.reply.ok().with_body(text(&settings)))
}

pub(crate) async fn put_of_name_server<B: Backend>(call: Call<B>) -> Outcome {
    let settings = changes(&call)?;
    if let Some(name) = settings.keys().find(|name| !NAME_SERVERS.contains(&&***name)) {
        let remark = format!("Unknown name server config name: {name}");
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    }
    call.backend().put_settings(settings).await?;
    Ok(call.reply.ok())
}

fn changes<B: Backend>(call: &Call<B>) -> Result<BTreeMap<String, String>, Refusal> {
    let settings = properties(&String::from_utf8_lossy(&call.request.body));
    if FORBIDDEN.iter().any(|name| settings.contains_key(*name)) {
        let remark = "Can not update config in black list.";
        return Err(Refusal::new(ResponseCode::NO_PERMISSION, remark));
    }
    Ok(settings)
}

/// Lines as java.util.Properties writes them: a name, `=` or `:`, a value.
fn properties(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    lines
        .map(|line| {
            let (name, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
            (name.trim().to_owned(), value.trim().to_owned())
        })
        .collect()
}

fn text(settings: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, value) in settings {
        // Writing to a String does not fail.
        let _infallible = writeln!(text, "{name}={value}");
    }
    text
}

#[cfg(test)]
mod tests;
