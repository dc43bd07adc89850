//! REGISTER_BROKER, UNREGISTER_BROKER, REGISTER_TOPIC_IN_NAMESRV: codes 103, 104, 217. What brokers
//! tell a name server.
//! This one's routes are its cluster's topics, so nobody's word makes or ends one: a client knows one
//! address for each broker's name, and a foreign broker in a route would take the topics of this
//! cluster with it. The node's own registration is true at any time; another's is refused. A topic's
//! queues and permission are those of the topic itself, which 217 makes or changes.
//! Leaves out: broker ids other than 0, data versions, filter servers.
//! Source: DefaultRequestProcessor, RouteInfoManager.

use super::route::ORDER_NAMESPACE;
use crate::backend::Backend;
use crate::bodies::{KVTable, QueueData};
use crate::processors::update_topic::{self, Changes};
use crate::processors::{Call, Outcome, Refusal};
use crate::response_code::ResponseCode;

/// Who a request says that it comes from.
struct Registered<'a> {
    cluster: &'a str,
    broker: &'a str,
    address: &'a str,
    id: i64,
}

impl<'a> Registered<'a> {
    fn of<B: Backend>(call: &'a Call<B>) -> Result<Self, Refusal> {
        let request = &call.request;
        Ok(Self {
            cluster: request.field("clusterName")?,
            broker: request.field("brokerName")?,
            address: request.field("brokerAddr")?,
            id: request.field("brokerId")?,
        })
    }

    fn is_this_node<B: Backend>(&self, call: &Call<B>) -> bool {
        let config = call.backend().config();
        self.cluster == config.cluster_name
            && self.broker == config.broker_name
            && self.id == 0
            && self.address == config.broker_address.to_string()
    }
}

/// As in the original the answer has the order configuration.
pub(crate) fn register<B: Backend>(call: &Call<B>) -> Outcome {
    let broker = Registered::of(call)?;
    let expected: i64 = call.request.optional_field("bodyCrc32")?.unwrap_or(0);
    let found = crc32fast::hash(&call.request.body) & 0x7fff_ffff;
    if expected != 0 && expected != i64::from(found) {
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, "crc32 not match"));
    }
    if !broker.is_this_node(call) {
        let own = call.backend().config();
        let Registered { cluster, broker, address, id } = broker;
        return Err(Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!(
                "register broker failed: this name server routes to the brokers of its own cluster \
                 {} alone, not to {broker} ({id}) of {cluster} at {address}, start a name server of \
                 its own for it",
                own.cluster_name
            ),
        ));
    }
    let table = call.backend().kv_configs(ORDER_NAMESPACE);
    let answer = call.reply.ok();
    Ok(if table.is_empty() { answer } else { answer.with_body(KVTable { table }.encode()) })
}

/// Who was never registered is not afterwards either, as in the original.
pub(crate) fn unregister<B: Backend>(call: &Call<B>) -> Outcome {
    let broker = Registered::of(call)?;
    if broker.is_this_node(call) {
        let remark = format!(
            "unregister broker failed: {} at {} serves as long as its node runs, stop it instead",
            broker.broker, broker.address
        );
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
    }
    Ok(call.reply.ok())
}

/// One that names another broker, too, is passed over as a whole, as in the original.
pub(crate) async fn register_topic<B: Backend>(call: Call<B>) -> Outcome {
    let topic: &str = call.request.field("topic")?;
    let queues = QueueData::decode_of_route(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    let own = &call.backend().config().broker_name;
    if let Some(other) = queues.iter().find(|queues| queues.broker_name != *own) {
        tracing::warn!(topic, broker = other.broker_name, "a route to another broker is not taken");
        return Ok(call.reply.ok());
    }
    if let Some(queues) = queues.last() {
        let order = call.shared.topic(topic).is_some_and(|topic| topic.order);
        let changes = Changes {
            topic,
            read_queues: queues.read_queue_nums,
            write_queues: queues.write_queue_nums,
            perm: queues.perm,
            sys_flag: queues.topic_sys_flag,
            order,
            attributes: "",
        };
        call.backend().put_topic(update_topic::spec(&call.shared, &changes)?).await?;
    }
    Ok(call.reply.ok())
}

#[cfg(test)]
mod tests {
    use crate::fake::{Client, FakeBackend};
    use crate::session::Door;

    const OWN: [(&str, &str); 4] = [
        ("clusterName", "DefaultCluster"),
        ("brokerName", "broker-a"),
        ("brokerAddr", "127.0.0.1:10911"),
        ("brokerId", "0"),
    ];

    fn with(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
        let pairs = OWN.iter().map(|pair| if pair.0 == name { (name, value) } else { *pair });
        pairs.collect()
    }

    #[tokio::test]
    async fn a_foreign_broker_is_refused_and_no_route_leads_to_it() {
        let backend = FakeBackend::new();
        backend.add_topic("t", 2);
        let client = Client::new(backend.clone()).at(Door::NameServer);
        let route = async || client.call(105, &[("topic", "t")], &[]).await.body;
        let before = route().await;
        assert_eq!(client.call(103, &OWN, &[]).await.code, 0);
        let foreign = [
            with("brokerName", "broker-b"),
            with("brokerAddr", "10.0.0.9:10911"),
            with("brokerId", "1"),
            with("clusterName", "Other"),
        ];
        for fields in &foreign {
            let answer = client.call(103, fields, b"{}").await;
            let remark = answer.remark.unwrap_or_default();
            assert_eq!(answer.code, 1, "{fields:?}");
            assert!(remark.contains("of its own cluster DefaultCluster alone"), "{remark}");
            assert_eq!(client.call(104, fields, &[]).await.code, 0, "it is not there: {fields:?}");
        }
        let answer = client.call(104, &OWN, &[]).await;
        assert!(answer.code == 1 && answer.remark.unwrap_or_default().contains("stop it instead"));
        assert_eq!(client.call(103, &OWN[..3], &[]).await.code, 1, "a field is missing");
        let mut spoilt = OWN.to_vec();
        spoilt.push(("bodyCrc32", "7"));
        let answer = client.call(103, &spoilt, b"{}").await;
        assert_eq!((answer.code, answer.remark.as_deref()), (1, Some("crc32 not match")));
        assert_eq!(route().await, before);
    }

    #[tokio::test]
    async fn the_nodes_own_registration_is_answered_with_the_order_of_topics() {
        let client = Client::new(FakeBackend::new()).at(Door::NameServer);
        assert_eq!(client.call(103, &OWN, &[]).await.body, "");
        let fields = [("namespace", "ORDER_TOPIC_CONFIG"), ("key", "t"), ("value", "broker-a:4")];
        assert_eq!(client.call(100, &fields, &[]).await.code, 0);
        let body = client.call(103, &OWN, &[]).await.body;
        assert_eq!(String::from_utf8_lossy(&body), "{\"table\":{\"t\":\"broker-a:4\"}}");
    }

    #[tokio::test]
    async fn a_registered_topic_is_the_topic_itself() {
        let backend = FakeBackend::new();
        backend.add_topic("t", 4);
        let client = Client::new(backend.clone()).at(Door::NameServer);
        let register = async |topic: &str, queues: &str| {
            let body = format!("{{\"brokerDatas\":[],\"queueDatas\":[{queues}]}}");
            client.call(217, &[("topic", topic)], body.as_bytes()).await.code
        };
        let own = "{\"brokerName\":\"broker-a\",\"perm\":4,\"readQueueNums\":4,\
                   \"topicSysFlag\":0,\"writeQueueNums\":2}";
        for topic in ["t", "new"] {
            assert_eq!(register(topic, own).await, 0);
            let route = client.call(105, &[("topic", topic)], &[]).await.body;
            let route = String::from_utf8_lossy(&route).into_owned();
            assert!(
                route.contains("\"perm\":4,\"readQueueNums\":4") && !route.contains("broker-b"),
                "{route}"
            );
            assert!(route.contains("\"writeQueueNums\":2"), "{route}");
        }
        let other = own.replace("broker-a", "broker-b");
        for queues in [other.clone(), format!("{own},{other}"), String::new()] {
            assert_eq!(register("t2", &queues).await, 0, "as in the original");
            assert_eq!(client.call(105, &[("topic", "t2")], &[]).await.code, 17, "{queues}");
        }
        assert_eq!(register("t", &own.replace("\":4", "\":-1")).await, 29);
        assert_eq!(client.call(217, &[("topic", "t")], b"{").await.code, 1);
    }
}
