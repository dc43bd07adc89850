//! Single requests: every field of the schema has a value from what fits it, or from what does not.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::schema::{Field, Struct, Type};
use super::{PARTITIONS, Plan, Step};

/// These are walked by flows alone: a member that nobody answers holds a group up for minutes.
const BY_FLOWS_ALONE: [&str; 7] = [
    "JoinGroup",
    "DescribeQuorum",
    // They would change what the whole server does, or need what Duolog refuses for now.
    "AlterUserScramCredentials",
    "AlterClientQuotas",
    "UpdateFeatures",
    // Hidden unless a receiver is configured.
    "GetTelemetrySubscriptions",
    "PushTelemetry",
];
const ELEMENTS_MAX: usize = 3;

impl Plan {
    /// One request of a random API and version.
    pub(super) fn draw_request(&mut self) {
        let names: Vec<String> = self
            .wire
            .requests()
            .map(|message| message.name.clone())
            .filter(|name| !BY_FLOWS_ALONE.contains(&name.as_str()))
            .collect();
        let api = self.pick(&names);
        let version = self.version(&api);
        let body = self.request_body(&api, version);
        let mut step = Step::new(&api, version, body);
        if self.chance(2) {
            step.cut = self.random.within(1..6);
        }
        if api == "Produce" {
            keep_one_of_each(&mut step.body);
            if step.body["Acks"] == 0 {
                step.connection = 9;
            }
        }
        self.steps.push(step);
    }

    fn request_body(&mut self, api: &str, version: i16) -> Value {
        let wire = self.wire.clone();
        let message = wire.message(api, super::Kind::Request);
        self.structure(api, &message.structs, &message.structs[0], version)
    }

    fn structure(&mut self, api: &str, all: &[Struct], of: &Struct, version: i16) -> Value {
        let mut body = Map::new();
        for field in &of.fields {
            if !(field.versions.low..=field.versions.high).contains(&version) {
                continue;
            }
            if field.default.is_some() && self.chance(60) {
                continue;
            }
            if let Some(value) = self.value(api, all, field, version) {
                body.insert(field.name.clone(), value);
            }
        }
        body.into()
    }

    /// None for what keeps its default.
    fn value(&mut self, api: &str, all: &[Struct], field: &Field, version: i16) -> Option<Value> {
        let nullable =
            field.nullable.is_some_and(|range| (range.low..=range.high).contains(&version));
        if nullable && self.chance(15) {
            return Some(Value::Null);
        }
        match &field.ty {
            Type::Array(element) => {
                let count = match self.random.within(0..20) {
                    0 => 0,
                    1..=14 => 1,
                    _ => self.random.within(1..ELEMENTS_MAX + 1),
                };
                let elements: Option<Vec<Value>> =
                    (0..count).map(|_| self.element(api, all, field, element, version)).collect();
                elements.map(Value::from)
            }
            ty => self.element(api, all, field, ty, version),
        }
    }

    fn element(
        &mut self,
        api: &str,
        all: &[Struct],
        field: &Field,
        ty: &Type,
        version: i16,
    ) -> Option<Value> {
        match ty {
            Type::Struct(name) => {
                let of = all.iter().find(|each| each.name == *name).expect("in the message");
                Some(self.structure(api, all, of, version))
            }
            Type::String => Some(self.text(api, &field.name)),
            Type::Bool => Some(self.truth(api, &field.name)),
            Type::Uuid => Some(self.uuid()),
            Type::Bytes => Some(self.pick(&["", "00", "000300000000"]).into()),
            Type::Records => Some(self.any_batches()),
            Type::Float64 => Some(self.pick(&[1.0, 100.5]).into()),
            Type::Array(_) => None,
            _ => self.number(api, &field.name),
        }
    }

    fn truth(&mut self, api: &str, field: &str) -> Value {
        match (api, field) {
            ("Metadata", "AllowAutoTopicCreation") => false.into(),
            _ => self.chance(50).into(),
        }
    }

    fn uuid(&mut self) -> Value {
        match self.random.within(0..12) {
            0 => "0".repeat(32).into(),
            1 => "ab".repeat(16).into(),
            _ => format!("$tid:{}", self.a_topic()).into(),
        }
    }

    pub(super) fn a_topic(&mut self) -> String {
        let topics = self.topics.clone();
        self.pick(&topics)
    }

    /// A topic's name, mostly of one that is there.
    pub(super) fn topic_name(&mut self, api: &str) -> String {
        // Older requests for metadata create what they name.
        let creates = matches!(api, "Metadata");
        match self.random.within(0..20) {
            0 if !creates => format!("{}none", self.prefix),
            1 => self.pick(&["", "a b", "..", &"l".repeat(250)]).to_owned(),
            _ => self.a_topic(),
        }
    }

    pub(super) fn a_group(&mut self) -> String {
        match self.random.within(0..12) {
            0 => String::new(),
            1 => format!("{}nogroup", self.prefix),
            _ => {
                let groups = self.groups.clone();
                self.pick(&groups)
            }
        }
    }

    fn a_member(&mut self) -> String {
        let members = self.members.clone();
        match self.random.within(0..6) {
            0 => String::new(),
            1 => "nobody".to_owned(),
            _ if members.is_empty() => String::new(),
            _ => format!("$member:{}", self.pick(&members)),
        }
    }

    fn a_transactional_id(&mut self) -> String {
        let mut ids: Vec<String> = self
            .producers
            .iter()
            .filter_map(|producer| producer.transactional_id.clone())
            .collect();
        ids.extend([String::new(), format!("{}notxn", self.prefix)]);
        self.pick(&ids)
    }

    fn text(&mut self, api: &str, field: &str) -> Value {
        match (api, field) {
            ("CreateTopics", "Name") => self.created_name().into(),
            ("FindCoordinator", _) => self.a_group().into(),
            ("IncrementalAlterConfigs" | "AlterConfigs", "Name") => self.config_key().into(),
            ("IncrementalAlterConfigs" | "AlterConfigs", "Value") => {
                self.pick(&["1000", "delete", "compact", "-1", "x", "", "300", "producer"]).into()
            }
            (_, "ConfigurationKeys") => self.config_key().into(),
            ("DescribeUserScramCredentials" | "AlterUserScramCredentials", _) => {
                self.pick(&["alice", ""]).into()
            }
            ("DescribeClientQuotas" | "AlterClientQuotas", "EntityType") => {
                self.pick(&["user", "client-id", "ip", "other"]).into()
            }
            ("DescribeClientQuotas" | "AlterClientQuotas", "Key") => "producer_byte_rate".into(),
            ("DescribeClientQuotas" | "AlterClientQuotas", _) => "alice".into(),
            (_, "ResourceName") => self.topic_name(api).into(),
            ("ListGroups", "StatesFilter") => {
                self.pick(&["Stable", "empty", "Dead", "none"]).into()
            }
            ("ListGroups", "TypesFilter") => self.pick(&["classic", "Consumer", "none"]).into(),
            ("ListTransactions", "StateFilters") => {
                self.pick(&["Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "none"]).into()
            }
            ("ListTransactions", _) => self.pick(&[".*", "(", "zzz"]).into(),
            ("ConsumerGroupHeartbeat", "ServerAssignor") => {
                self.pick(&["uniform", "range", "none"]).into()
            }
            (_, "Name" | "Topic" | "TopicName" | "TopicNames" | "SubscribedTopicNames") => {
                self.topic_name(api).into()
            }
            (_, "GroupId" | "GroupIds" | "Groups" | "GroupsNames") => self.a_group().into(),
            (_, "TransactionalId" | "TransactionalIds" | "V3AndBelowTransactionalId") => {
                self.a_transactional_id().into()
            }
            (_, "MemberId") => self.a_member().into(),
            ("AlterReplicaLogDirs", "Path") => self.pick(&["/nowhere", ""]).into(),
            (_, "CommittedMetadata") => self.pick(&["", "m", &"x".repeat(5000)]).into(),
            (_, "ProtocolType") => self.pick(&["consumer", "other", ""]).into(),
            (_, "ProtocolName") => self.pick(&["range", "other"]).into(),
            (_, "ClientSoftwareName" | "ClientSoftwareVersion") => {
                self.pick(&["a", "", "a b", "1.0"]).into()
            }
            _ => self.pick(&["", "i", "x"]).into(),
        }
    }

    fn created_name(&mut self) -> String {
        match self.random.within(0..6) {
            0 => self.pick(&["", "a b", "..", &"l".repeat(250)]).to_owned(),
            1 | 2 => self.a_topic(),
            _ => self.name("u"),
        }
    }

    fn config_key(&mut self) -> &'static str {
        self.pick(&[
            "cleanup.policy",
            "retention.ms",
            "max.message.bytes",
            "compression.type",
            "segment.bytes",
            "no.such.key",
            "min.insync.replicas",
        ])
    }

    fn producer_name(&mut self) -> String {
        let names: Vec<String> = self.producers.iter().map(|each| each.name.clone()).collect();
        if names.is_empty() { "none".into() } else { self.pick(&names) }
    }

    fn number(&mut self, api: &str, field: &str) -> Option<Value> {
        let number = |value: i64| Some(value.into());
        match (api, field) {
            (_, "TimeoutMs" | "timeoutMs") => return number(10_000),
            (_, "MaxWaitMs") => return number(self.pick(&[0, 20])),
            (_, "ReplicaId") => return number(self.pick(&[-1, -1, -1, -2])),
            ("Fetch", "MinBytes") => return number(self.pick(&[0, 1, 1000])),
            ("Fetch", "MaxBytes" | "PartitionMaxBytes") => {
                return number(self.pick(&[1 << 20, 1 << 20, 200, 1, 0]));
            }
            (_, "SessionId") => return Some(self.pick(&[json!(0), json!(0), json!(1234)])),
            (_, "SessionEpoch") => return number(self.pick(&[-1, -1, -1, 1, 7])),
            (_, "Acks") => return number(self.pick(&[-1, -1, 1, 1, 0, 2])),
            (_, "ProducerId" | "ProducerIdFilters" | "V3AndBelowProducerId") => {
                let name = self.producer_name();
                let known = format!("$pid:{name}");
                return Some(self.pick(&[
                    known.clone().into(),
                    known.into(),
                    json!(-1),
                    json!(987_654),
                ]));
            }
            (_, "ProducerEpoch" | "V3AndBelowProducerEpoch") => {
                let name = self.producer_name();
                let moved = self.pick(&["", "", "", "-1", "+1"]);
                return Some(format!("$epoch:{name}{moved}").into());
            }
            _ => {}
        }
        let small = match field {
            "NumPartitions" => self.pick(&[1, 2, -1, 0]),
            "ReplicationFactor" => self.pick(&[1, -1, 2, 0]),
            "Count" => self.pick(&[1, 3, 4, 0, -1]),
            "TransactionTimeoutMs" => self.pick(&[900_000, 900_000, 0, 900_001, -1]),
            "DurationFilter" => self.pick(&[-1, 86_400_000]),
            "EndpointType" => self.pick(&[1, 1, 0, 2]),
            "ResponsePartitionLimit" => self.pick(&[2000, 1, 0, -1]),
            // Kafka leaves changes of kinds that it does not know without an answer.
            "ResourceType" if api == "AlterConfigs" => 2,
            "ResourceType" => self.pick(&[2, 2, 2, 0, 99]),
            "IsolationLevel" => self.pick(&[0, 0, 0, 1, 1, 1, 2]),
            "ResourceTypes" => self.pick(&[2, 99]),
            "ElectionType" => self.pick(&[0, 1, 2]),
            "ConfigOperation" => self.pick(&[0, 0, 1, 2, 3, 9]),
            "BrokerId" => 7,
            "BrokerIds" | "Replicas" => self.pick(&[1, 1, 2, 7]),
            "RebalanceTimeoutMs" | "SessionTimeoutMs" => self.pick(&[1_800_000, 1_800_000, 1, -1]),
            "TransactionVersion" => self.pick(&[0, 1, 2]),
            "CoordinatorEpoch" => self.pick(&[0, 0, 1]),
            "Timestamp" => {
                let before = self.pick(&[-1, -1, -2, -3, -4, -5, -6, 0, -7]);
                if self.chance(40) {
                    let later = self.random.within(0..2000);
                    return Some(format!("$now+{later}").into());
                }
                before
            }
            "FetchOffset" | "CommittedOffset" | "Offset" => {
                let near = self.random.within(0..20) as i64;
                self.pick(&[near, near, near, 0, -1, 1_000_000, i64::MIN])
            }
            _ if field.ends_with("Epoch") || field == "GenerationIdOrMemberEpoch" => {
                self.pick(&[-1, -1, 0, 0, 1, 9])
            }
            _ if field.contains("Partition") || field == "Index" => {
                let partition = self.random.within(0..PARTITIONS as usize) as i64;
                self.pick(&[0, 0, partition, partition, 7, -1])
            }
            _ => self.pick(&[0, 1, 2, 3, -1]),
        };
        number(small)
    }

    /// Batches that may be wrong.
    fn any_batches(&mut self) -> Value {
        let name = self.producer_name();
        let mut spec = self.batch();
        if self.chance(40) {
            spec["pid"] = format!("$pid:{name}").into();
            spec["epoch"] = format!("$epoch:{name}{}", self.pick(&["", "-1", "+1"])).into();
            spec["seq"] = self.pick(&[0, 0, 1, 5, -1]).into();
            spec["txn"] = self.chance(30).into();
        }
        if self.chance(50) {
            spec["fault"] = self.pick(&super::super::batches::FAULTS).into();
        }
        json!([spec])
    }

    /// A good batch without a producer.
    pub(super) fn batch(&mut self) -> Value {
        let count = self.random.within(1..4);
        let at = self.random.within(0..2000);
        let mut spec = json!({"n": count, "v": self.name("v"), "at": format!("$now+{at}")});
        if self.chance(30) {
            spec["codec"] = self.pick(&["gzip", "snappy", "lz4", "zstd"]).into();
        }
        if self.chance(40) {
            spec["key"] = true.into();
        }
        spec
    }
}

/// Kafka drops all but the last batch of a partition that is named twice, and goes on without; so it is not drawn.
fn keep_one_of_each(produce: &mut Value) {
    let mut seen = HashSet::new();
    for topic in produce["TopicData"].as_array_mut().into_iter().flatten() {
        let name = [&topic["Name"], &topic["TopicId"]].map(Value::to_string);
        if let Some(partitions) = topic["PartitionData"].as_array_mut() {
            partitions.retain(|of| seen.insert((name.clone(), of["Index"].to_string())));
        }
    }
}
