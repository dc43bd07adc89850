//! Positions that are reset, compared or told by members.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::stats::ByQueue;
use super::{MessageQueue, encode};
use crate::json::{JsonOut, JsonStyle, ToJson, Value};

/// Body of the answer to INVOKE_BROKER_TO_RESET_OFFSET (222) and of RESET_CONSUMER_CLIENT_OFFSET
/// (220).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetOffsetBody {
    /// By queue.
    pub offsets: Vec<(MessageQueue, i64)>,
}

impl ToJson for ResetOffsetBody {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("offsetTable", &ByQueue(&self.offsets)).end();
    }
}

impl ResetOffsetBody {
    /// As members in C++ read it: a list. Source: ResetOffsetBodyForC, MessageQueueForC.
    #[must_use]
    pub fn encode_for_c(&self) -> Bytes {
        let list: Vec<ForC<'_>> =
            self.offsets.iter().map(|(queue, offset)| ForC { queue, offset: *offset }).collect();
        JsonOut::text_of(&ListForC(&list), JsonStyle::Fastjson)
    }
}

struct ListForC<'a>(&'a [ForC<'a>]);

impl ToJson for ListForC<'_> {
    fn write(&self, out: &mut JsonOut) {
        struct List<'a>(&'a [ForC<'a>]);
        impl ToJson for List<'_> {
            fn write(&self, out: &mut JsonOut) {
                out.list(self.0);
            }
        }
        out.object().field("offsetTable", &List(self.0)).end();
    }
}

struct ForC<'a> {
    queue: &'a MessageQueue,
    offset: i64,
}

impl ToJson for ForC<'_> {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("brokerName", &self.queue.broker_name)
            .field("offset", &self.offset)
            .field("queueId", &self.queue.queue_id)
            .field("topic", &self.queue.topic)
            .end();
    }
}

/// Body of the answer to QUERY_CORRECTION_OFFSET (308).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryCorrectionOffsetBody {
    /// By queue id.
    pub offsets: BTreeMap<i32, i64>,
}

impl ToJson for QueryCorrectionOffsetBody {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("correctionOffsets", &self.offsets).end();
    }
}

/// Body of the answer to INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetConsumerStatusBody {
    /// What each member said: a table by queue, as text.
    tables: BTreeMap<String, Bytes>,
}

impl GetConsumerStatusBody {
    /// Adds what a member answered; what is no such answer is left out.
    pub fn add(&mut self, client_id: &str, body: &[u8]) {
        let Ok(value) = Value::parse(body) else { return };
        let table = value.get("messageQueueTable");
        if !table.is_null() {
            let text = JsonOut::text_of(table, JsonStyle::Fastjson);
            self.tables.insert(client_id.to_owned(), text);
        }
    }
}

impl ToJson for GetConsumerStatusBody {
    fn write(&self, out: &mut JsonOut) {
        struct Raw<'a>(&'a [u8]);
        impl ToJson for Raw<'_> {
            fn write(&self, out: &mut JsonOut) {
                out.raw(&String::from_utf8_lossy(self.0));
            }
        }
        let tables: BTreeMap<&str, Raw<'_>> =
            self.tables.iter().map(|(client, table)| (&**client, Raw(table))).collect();
        out.object()
            .field("consumerTable", &tables)
            .field("messageQueueTable", &BTreeMap::<i32, i64>::new())
            .end();
    }
}

encode! { ResetOffsetBody QueryCorrectionOffsetBody GetConsumerStatusBody }
