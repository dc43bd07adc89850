//! Whole ways of clients: producers, transactions of both versions, groups of both kinds, sessions, topics.

use serde_json::{Value, json};

use super::{PARTITIONS, Plan, Producer, Step};

/// The longest that a broker allows by default: nothing expires during a run.
const TRANSACTION_TIMEOUT_MS: i64 = 900_000;
const SESSION_TIMEOUT_MS: i64 = 1_800_000;
/// A consumer's subscription to no topic, and an assignment of none (ConsumerProtocol, version 0).
const SUBSCRIPTION: &str = "00000000000000000000";
const ASSIGNMENT: &str = "00000000000000000000";

fn produce_body(version: i16, topic: &str, partition: i64, acks: i64, batches: &Value) -> Value {
    let mut data = json!({"PartitionData": [{"Index": partition, "Records": batches}]});
    match version {
        13.. => data["TopicId"] = format!("$tid:{topic}").into(),
        _ => data["Name"] = topic.into(),
    }
    json!({"Acks": acks, "TimeoutMs": 10_000, "TopicData": [data]})
}

fn fetch_body(version: i16, topic: &str, partition: i64, offset: i64, isolation: i64) -> Value {
    let wanted =
        json!({"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20});
    let mut data = json!({"Partitions": [wanted]});
    match version {
        13.. => data["TopicId"] = format!("$tid:{topic}").into(),
        _ => data["Topic"] = topic.into(),
    }
    json!({"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "IsolationLevel": isolation,
        "Topics": [data]})
}

fn offsets_body(topic: &str, partition: i64, timestamp: &Value, isolation: i64) -> Value {
    let wanted = json!({"PartitionIndex": partition, "Timestamp": timestamp});
    json!({"ReplicaId": -1, "IsolationLevel": isolation, "TimeoutMs": 10_000,
        "Topics": [{"Name": topic, "Partitions": [wanted]}]})
}

impl Plan {
    fn a_partition(&mut self, topic: &str) -> i64 {
        match self.topics.first().is_some_and(|first| first == topic) {
            true => self.random.within(0..PARTITIONS as usize) as i64,
            false => 0,
        }
    }

    fn init(&mut self, producer: &Producer) {
        let version = match producer.transactional_id {
            Some(_) => self.version_in(3, 5),
            None => self.version_in(0, 5),
        };
        let body = json!({"TransactionalId": producer.transactional_id,
            "TransactionTimeoutMs": TRANSACTION_TIMEOUT_MS});
        self.steps.push(Step::new("InitProducerId", version, body).bind(&producer.name));
    }

    /// One that is there, or a new one; at most eight of a kind.
    fn a_producer(&mut self, transactional: bool) -> usize {
        let of_kind: Vec<usize> = (0..self.producers.len())
            .filter(|&index| self.producers[index].transactional_id.is_some() == transactional)
            .collect();
        if !of_kind.is_empty() && (of_kind.len() >= 8 || self.chance(70)) {
            return self.pick(&of_kind);
        }
        let name = self.name("p");
        let transactional_id = transactional.then(|| name.clone());
        let producer =
            Producer { name, transactional_id, sequences: std::collections::BTreeMap::new() };
        self.init(&producer);
        self.producers.push(producer);
        self.producers.len() - 1
    }

    /// A batch with the producer's next sequence.
    fn sequenced(&mut self, producer: usize, topic: &str, partition: i64, txn: bool) -> Value {
        let mut batch = self.batch();
        let count = batch["n"].as_i64().unwrap_or(1);
        let producer = &mut self.producers[producer];
        let next = producer.sequences.entry((topic.to_owned(), partition)).or_default();
        batch["pid"] = format!("$pid:{}", producer.name).into();
        batch["epoch"] = format!("$epoch:{}", producer.name).into();
        batch["seq"] = (*next).into();
        *next += count;
        if txn {
            batch["txn"] = true.into();
        }
        batch
    }

    fn produce_to(&mut self, version: i16, topic: &str, partition: i64, batch: Value, txn: &Value) {
        let acks = if txn.is_null() { self.pick(&[-1, 1]) } else { -1 };
        let mut body = produce_body(version, topic, partition, acks, &json!([batch]));
        body["TransactionalId"] = txn.clone();
        self.push("Produce", version, body);
    }

    /// Batches of an idempotent producer or of none; repeated and overtaken ones among them.
    pub(super) fn produce(&mut self) {
        let topic = self.a_topic();
        let partition = self.a_partition(&topic);
        let version = self.version("Produce");
        if self.chance(40) {
            let batch = self.batch();
            self.produce_to(version, &topic, partition, batch, &Value::Null);
        } else {
            let producer = self.a_producer(false);
            let mut batch = self.sequenced(producer, &topic, partition, false);
            let again = self.chance(20);
            if self.chance(10) {
                batch["seq"] = (batch["seq"].as_i64().unwrap_or(0) + 3).into();
            }
            self.produce_to(version, &topic, partition, batch.clone(), &Value::Null);
            if again {
                self.produce_to(version, &topic, partition, batch, &Value::Null);
            }
        }
        if self.chance(30) {
            self.look(&topic, partition);
        }
    }

    fn look(&mut self, topic: &str, partition: i64) {
        let isolation = self.pick(&[0, 1]);
        if self.chance(60) {
            let version = self.version("Fetch");
            let offset = self.pick(&[0, 0, 1, 5]);
            self.push("Fetch", version, fetch_body(version, topic, partition, offset, isolation));
        }
        let version = self.version("ListOffsets");
        let time = self.random.within(0..2000);
        let timestamp =
            self.pick(&[json!(-1), json!(-1), json!(-2), json!(-3), format!("$now+{time}").into()]);
        self.push("ListOffsets", version, offsets_body(topic, partition, &timestamp, isolation));
    }

    fn end(&mut self, index: usize, version: i16, epoch: &str) -> Step {
        let Producer { name, transactional_id, .. } = self.producers[index].clone();
        let body = json!({"TransactionalId": transactional_id, "Committed": self.chance(60),
            "ProducerId": format!("$pid:{name}"), "ProducerEpoch": format!("$epoch:{name}{epoch}")});
        Step::new("EndTxn", version, body)
    }

    fn commit_in_transaction(&mut self, index: usize, version: i16) {
        let Producer { name, transactional_id, .. } = self.producers[index].clone();
        let (group, topic) = (self.a_group(), self.a_topic());
        let offset = self.random.within(0..9);
        let body = json!({"TransactionalId": transactional_id, "GroupId": group,
            "ProducerId": format!("$pid:{name}"), "ProducerEpoch": format!("$epoch:{name}"),
            "Topics": [{"Name": topic, "Partitions": [
                {"PartitionIndex": 0, "CommittedOffset": offset, "CommittedMetadata": "m"}]}]});
        self.push("TxnOffsetCommit", version, body);
        self.positions_of(&group, &topic);
    }

    /// A producer of version 2 (KIP-890): no AddPartitionsToTxn, an epoch for each transaction.
    pub(super) fn transaction(&mut self) {
        let index = self.a_producer(true);
        if self.chance(30) {
            let producer = self.producers[index].clone();
            self.init(&producer);
            self.producers[index].sequences.clear();
        }
        for _ in 0..self.random.within(1..4) {
            let transactional_id: Value = self.producers[index].transactional_id.clone().into();
            for _ in 0..self.random.within(0..3) {
                let topic = self.a_topic();
                let partition = self.a_partition(&topic);
                let batch = self.sequenced(index, &topic, partition, true);
                let version = self.version_in(12, 13);
                self.produce_to(version, &topic, partition, batch, &transactional_id);
                self.look(&topic, partition);
            }
            if self.chance(30) {
                self.commit_in_transaction(index, 5);
            }
            self.describe_transaction(index);
            let name = self.producers[index].name.clone();
            let end = self.end(index, 5, "");
            self.steps.push(end.clone().bind(&name));
            self.producers[index].sequences.clear();
            if self.chance(30) {
                // Its client did not hear the answer and asks again.
                let mut again = end;
                again.body["ProducerEpoch"] = format!("$epoch:{name}-1").into();
                if self.chance(30) {
                    let committed = again.body["Committed"].as_bool() == Some(true);
                    again.body["Committed"] = (!committed).into();
                }
                self.steps.push(again);
            }
        }
    }

    fn describe_transaction(&mut self, index: usize) {
        let transactional_id = self.producers[index].transactional_id.clone();
        match self.random.within(0..4) {
            0 => self.push(
                "DescribeTransactions",
                0,
                json!({"TransactionalIds": [transactional_id]}),
            ),
            1 => {
                let topics = json!([{"Name": self.a_topic(), "PartitionIndexes": [0]}]);
                self.push("DescribeProducers", 0, json!({"Topics": topics}));
            }
            _ => {}
        }
    }

    fn add_partition(&mut self, index: usize, topic: &str, partition: i64) {
        let Producer { name, transactional_id, .. } = self.producers[index].clone();
        let (pid, epoch) = (format!("$pid:{name}"), format!("$epoch:{name}"));
        let topics = json!([{"Name": topic, "Partitions": [partition]}]);
        let version = self.version("AddPartitionsToTxn");
        let body = match version {
            0..=3 => json!({"V3AndBelowTransactionalId": transactional_id,
                "V3AndBelowProducerId": pid, "V3AndBelowProducerEpoch": epoch,
                "V3AndBelowTopics": topics}),
            _ => json!({"Transactions": [{"TransactionalId": transactional_id, "ProducerId": pid,
                "ProducerEpoch": epoch, "VerifyOnly": self.chance(20), "Topics": topics}]}),
        };
        self.push("AddPartitionsToTxn", version, body);
    }

    /// A producer of version 1, which says what it will write to.
    pub(super) fn older_transaction(&mut self) {
        let index = self.a_producer(true);
        let producer = self.producers[index].clone();
        self.init(&producer);
        self.producers[index].sequences.clear();
        let transactional_id: Value = producer.transactional_id.clone().into();
        for _ in 0..self.random.within(0..3) {
            let topic = self.a_topic();
            let partition = self.a_partition(&topic);
            if self.chance(85) {
                self.add_partition(index, &topic, partition);
            }
            let batch = self.sequenced(index, &topic, partition, true);
            let version = self.version_in(3, 11);
            self.produce_to(version, &topic, partition, batch, &transactional_id);
            self.look(&topic, partition);
        }
        if self.chance(40) {
            let version = self.version("AddOffsetsToTxn");
            let body = json!({"TransactionalId": transactional_id, "GroupId": self.a_group(),
                "ProducerId": format!("$pid:{}", producer.name),
                "ProducerEpoch": format!("$epoch:{}", producer.name)});
            self.push("AddOffsetsToTxn", version, body);
            let version = self.version_in(0, 4);
            self.commit_in_transaction(index, version);
        }
        self.describe_transaction(index);
        let version = self.version_in(0, 4);
        let epoch = self.pick(&["", "", "", "", "-1", "+1"]);
        let end = self.end(index, version, epoch);
        self.steps.push(end.clone());
        if self.chance(30) {
            self.steps.push(end);
        }
    }

    fn join(&mut self, group: &str, member: &str, known: bool) -> Step {
        let id = if known { format!("$member:{member}") } else { String::new() };
        let protocols = json!([{"Name": "range", "Metadata": SUBSCRIPTION}]);
        let body = json!({"GroupId": group, "SessionTimeoutMs": SESSION_TIMEOUT_MS,
            "RebalanceTimeoutMs": 10_000, "MemberId": id, "ProtocolType": "consumer",
            "Protocols": protocols});
        let version = self.version("JoinGroup");
        Step::new("JoinGroup", version, body).bind(member)
    }

    fn sync(&mut self, group: &str, member: &str, assigned: &[&str]) {
        let assignments: Vec<Value> = assigned
            .iter()
            .map(|each| json!({"MemberId": format!("$member:{each}"), "Assignment": ASSIGNMENT}))
            .collect();
        let body = json!({"GroupId": group, "GenerationId": format!("$gen:{member}"),
            "MemberId": format!("$member:{member}"), "ProtocolType": "consumer",
            "ProtocolName": "range", "Assignments": assignments});
        let version = self.version("SyncGroup");
        self.push("SyncGroup", version, body);
    }

    fn beat(&mut self, group: &str, member: &str, moved: &str) -> Step {
        let body = json!({"GroupId": group, "MemberId": format!("$member:{member}"),
            "GenerationId": format!("$gen:{member}{moved}")});
        let version = self.version("Heartbeat");
        Step::new("Heartbeat", version, body)
    }

    fn leave(&mut self, group: &str, member: &str) {
        let version = self.version("LeaveGroup");
        let id = format!("$member:{member}");
        let body = match version {
            0..=2 => json!({"GroupId": group, "MemberId": id}),
            _ => json!({"GroupId": group, "Members": [{"MemberId": id}]}),
        };
        self.push("LeaveGroup", version, body);
    }

    /// A member joins, mostly a second one too; positions; they leave.
    pub(super) fn classic_group(&mut self) {
        let (group, first) = (self.name("c"), self.name("m"));
        self.groups.push(group.clone());
        self.members.push(first.clone());
        let ask = self.join(&group, &first, false);
        let by_id = ask.version >= 4;
        self.steps.push(ask);
        if by_id {
            let join = self.join(&group, &first, true);
            self.steps.push(join);
        }
        self.sync(&group, &first, &[&first]);
        let moved = self.pick(&["", "", "-1", "+1"]);
        let beat = self.beat(&group, &first, moved);
        self.steps.push(beat);
        self.commit(&group, &first, "gen");
        if self.chance(50) {
            self.second_member(&group, &first);
        }
        self.describe_group(&group);
        if self.chance(80) {
            self.leave(&group, &first);
        }
        self.describe_group(&group);
    }

    fn second_member(&mut self, group: &str, first: &str) {
        let second = self.name("m");
        let mut ask = self.join(group, &second, false);
        ask.version = ask.version.max(4);
        self.steps.push(ask);
        let mut join = self.join(group, &second, true).on(1);
        join.later = true;
        self.steps.push(join);
        let mut beat = self.beat(group, first, "");
        beat.until = Some("27".into());
        self.steps.push(beat);
        let again = self.join(group, first, true);
        self.steps.push(again);
        self.steps.push(Step::new("Answer", 0, json!({})).on(1));
        self.sync(group, first, &[first, &second]);
        self.sync(group, &second, &[]);
        self.leave(group, &second);
        self.members.push(second);
    }

    fn describe_group(&mut self, group: &str) {
        let version = self.version("DescribeGroups");
        self.push("DescribeGroups", version, json!({"Groups": [group]}));
        if self.chance(20) {
            let version = self.version("ListGroups");
            self.push("ListGroups", version, json!({}));
        }
    }

    /// `epoch`: the kind of name that the member's generation or epoch has.
    fn commit(&mut self, group: &str, member: &str, epoch: &str) {
        let topic = self.a_topic();
        let version = self.version("OffsetCommit");
        let offset = self.random.within(0..9);
        let partition = json!({"PartitionIndex": 0, "CommittedOffset": offset,
            "CommittedMetadata": "m"});
        let mut data = json!({"Partitions": [partition]});
        match version {
            10.. => data["TopicId"] = format!("$tid:{topic}").into(),
            _ => data["Name"] = topic.clone().into(),
        }
        let body = json!({"GroupId": group, "MemberId": format!("$member:{member}"),
            "GenerationIdOrMemberEpoch": format!("${epoch}:{member}"), "Topics": [data]});
        self.push("OffsetCommit", version, body);
        self.positions_of(group, &topic);
    }

    /// Positions without members.
    pub(super) fn positions(&mut self) {
        let (group, topic) = (self.a_group(), self.a_topic());
        let version = self.version_in(2, 9);
        let offset = self.random.within(0..9);
        let partition = json!({"PartitionIndex": 0, "CommittedOffset": offset,
            "CommittedMetadata": "m"});
        let topics = json!([{"Name": topic, "Partitions": [partition]}]);
        self.push(
            "OffsetCommit",
            version,
            json!({"GroupId": group, "MemberId": "",
            "Topics": topics}),
        );
        self.positions_of(&group, &topic);
        match self.random.within(0..6) {
            0 => {
                let version = self.version("DeleteGroups");
                self.push("DeleteGroups", version, json!({"GroupsNames": [group]}));
                self.positions_of(&group, &topic);
            }
            1 => {
                let topics = json!([{"Name": topic, "Partitions": [{"PartitionIndex": 0}]}]);
                self.push("OffsetDelete", 0, json!({"GroupId": group, "Topics": topics}));
                self.positions_of(&group, &topic);
            }
            _ => {}
        }
    }

    fn positions_of(&mut self, group: &str, topic: &str) {
        let version = self.version("OffsetFetch");
        let all = self.chance(20) && version >= 2;
        let mut wanted = json!({"PartitionIndexes": [0]});
        match version {
            10.. => wanted["TopicId"] = format!("$tid:{topic}").into(),
            _ => wanted["Name"] = topic.into(),
        }
        let topics = if all { Value::Null } else { json!([wanted]) };
        let body = match version {
            0..=7 => json!({"GroupId": group, "Topics": topics}),
            _ => json!({"Groups": [{"GroupId": group, "Topics": topics}]}),
        };
        self.push("OffsetFetch", version, body);
    }

    /// A group of KIP-848: one member, its positions, a topic more, and its leave.
    pub(super) fn consumer_group(&mut self) {
        let (group, member) = (self.name("k"), self.name("m"));
        self.groups.push(group.clone());
        let version = self.version("ConsumerGroupHeartbeat");
        let topic = self.a_topic();
        let id = if version == 0 { String::new() } else { self.name("id") };
        let join = json!({"GroupId": group, "MemberId": id, "MemberEpoch": 0,
            "RebalanceTimeoutMs": 60_000, "SubscribedTopicNames": [topic], "TopicPartitions": []});
        self.steps.push(Step::new("ConsumerGroupHeartbeat", version, join).bind(&member));
        let mut beat = json!({"GroupId": group, "MemberId": format!("$member:{member}"),
            "MemberEpoch": format!("$mepoch:{member}")});
        self.steps.push(Step::new("ConsumerGroupHeartbeat", version, beat.clone()).bind(&member));
        self.commit(&group, &member, "mepoch");
        if self.chance(60) {
            let another = self.a_topic();
            beat["SubscribedTopicNames"] = json!([topic, another]);
            let step = Step::new("ConsumerGroupHeartbeat", version, beat.clone());
            self.steps.push(step.bind(&member));
        }
        if self.chance(30) {
            let moved = self.pick(&["-1", "+1"]);
            beat["MemberEpoch"] = format!("$mepoch:{member}{moved}").into();
            self.push("ConsumerGroupHeartbeat", version, beat.clone());
        }
        let describe = self.version("ConsumerGroupDescribe");
        self.push("ConsumerGroupDescribe", describe, json!({"GroupIds": [group]}));
        self.describe_group(&group);
        beat["MemberEpoch"] = (-1).into();
        self.push("ConsumerGroupHeartbeat", version, beat);
        self.push("ConsumerGroupDescribe", describe, json!({"GroupIds": [group]}));
    }

    /// An incremental fetch session (KIP-227).
    pub(super) fn fetch_session(&mut self) {
        let topic = self.a_topic();
        let version = self.version_in(7, 18);
        let name = self.name("f");
        let mut body = fetch_body(version, &topic, 0, 0, 0);
        body["SessionEpoch"] = 0.into();
        self.steps.push(Step::new("Fetch", version, body.clone()).bind(&name));
        body["SessionId"] = format!("$session:{name}").into();
        body["Topics"] = json!([]);
        body["SessionEpoch"] = 1.into();
        self.push("Fetch", version, body.clone());
        let batch = self.batch();
        self.produce_to(9, &topic, 0, batch, &Value::Null);
        body["SessionEpoch"] = 2.into();
        self.push("Fetch", version, body.clone());
        body["SessionEpoch"] = self.pick(&[2, 9, -1]).into();
        self.push("Fetch", version, body);
    }

    /// A topic's creation, growth, truncation and end.
    pub(super) fn topic_life(&mut self) {
        let topic = self.name("l");
        let version = self.version("CreateTopics");
        let made = json!([{"Name": topic, "NumPartitions": 1, "ReplicationFactor": 1}]);
        self.push("CreateTopics", version, json!({"Topics": made}));
        let metadata = json!({"Topics": [{"Name": topic}], "AllowAutoTopicCreation": false});
        let version = self.version_in(4, 13);
        self.push("Metadata", version, metadata.clone());
        self.push("Metadata", 12, metadata.clone());
        for _ in 0..3 {
            let batch = self.batch();
            self.produce_to(9, &topic, 0, batch, &Value::Null);
        }
        let offset = self.pick(&[1, 2, -1, 100]);
        let version = self.version("DeleteRecords");
        let wanted = json!([{"PartitionIndex": 0, "Offset": offset}]);
        let body = json!({"TimeoutMs": 10_000, "Topics": [{"Name": topic, "Partitions": wanted}]});
        self.push("DeleteRecords", version, body);
        self.look(&topic, 0);
        let version = self.version("CreatePartitions");
        let body = json!({"Topics": [{"Name": topic, "Count": 2, "Assignments": null}],
            "TimeoutMs": 10_000});
        self.push("CreatePartitions", version, body);
        let version = self.version("DescribeTopicPartitions");
        self.push("DescribeTopicPartitions", version, json!({"Topics": [{"Name": topic}]}));
        let version = self.version_in(1, 5);
        self.push("DeleteTopics", version, json!({"TopicNames": [topic], "TimeoutMs": 10_000}));
        self.push("Metadata", 12, metadata);
        self.push("Fetch", 12, fetch_body(12, &topic, 0, 0, 0));
    }

    /// All that readers of each isolation level see of a topic.
    pub(super) fn read_all(&mut self) {
        let topic = self.a_topic();
        for isolation in [0, 1] {
            let version = self.version("Fetch");
            self.push("Fetch", version, fetch_body(version, &topic, 0, 0, isolation));
            for timestamp in [-1, -2] {
                let body = offsets_body(&topic, 0, &timestamp.into(), isolation);
                let version = self.version("ListOffsets");
                self.push("ListOffsets", version, body);
            }
        }
    }
}
