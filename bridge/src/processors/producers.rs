//! GET_PRODUCER_CONNECTION_LIST (204) and GET_ALL_PRODUCER_INFO (328): the live producers of a group, and
//! those of all groups.
//! Source: AdminBrokerProcessor.getProducerConnectionList, getAllProducerInfo, ProducerManager.

use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::bodies::{Connection, ProducerConnection, ProducerInfo, ProducerTableInfo};
use crate::remoting::LanguageCode;
use crate::response_code::ResponseCode;
use crate::session::Producing;

pub(crate) fn of_group<B: Backend>(call: &Call<B>) -> Outcome {
    let group: &str = call.request.field("producerGroup")?;
    let groups = call.shared.sessions.producers();
    let Some(producers) = groups.get(group) else {
        let remark = format!("the producer group[{group}] not exist");
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
    };
    let connections = producers.iter().map(connection).collect();
    Ok(call.reply.ok().with_body(ProducerConnection { connections }.encode()))
}

fn connection(producer: &Producing) -> Connection {
    let client = &producer.client;
    Connection {
        client_id: client.client_id.to_string(),
        client_addr: client.address.to_string(),
        language: LanguageCode(client.language),
        version: client.version,
    }
}

pub(crate) fn all<B: Backend>(call: &Call<B>) -> Outcome {
    let info = |producer: Producing| ProducerInfo {
        client_id: producer.client.client_id.to_string(),
        // As Java prints an address without a name.
        remote_ip: format!("/{}", producer.client.address),
        language: LanguageCode(producer.client.language),
        version: producer.client.version,
        last_update_timestamp: producer.last_heartbeat_ms,
    };
    let groups = call.shared.sessions.producers().into_iter();
    let groups = groups
        .map(|(group, producers)| (group.to_string(), producers.into_iter().map(info).collect()));
    Ok(call.reply.ok().with_body(ProducerTableInfo { groups: groups.collect() }.encode()))
}

#[cfg(test)]
mod tests;
