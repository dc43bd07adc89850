//! Lives of a group as Kafka's own coordinator led them, step by step, led again by ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::GroupError;
use crate::group::event::*;
use crate::group::response::*;
use crate::group::testing::*;

/// Told by Kafka; see the README beside it.
const SCRIPTS: &str = include_str!("../../../../../tests/golden/coordinator/scripts.txt");

fn error_name(error: Option<GroupError>) -> &'static str {
    match error {
        None => "NONE",
        Some(GroupError::UnknownMemberId | GroupError::GroupIdNotFound) => "UNKNOWN_MEMBER_ID",
        Some(GroupError::MemberIdRequired) => "MEMBER_ID_REQUIRED",
        Some(GroupError::InconsistentGroupProtocol) => "INCONSISTENT_GROUP_PROTOCOL",
        Some(GroupError::RebalanceInProgress) => "REBALANCE_IN_PROGRESS",
        Some(GroupError::IllegalGeneration) => "ILLEGAL_GENERATION",
        Some(GroupError::FencedInstanceId) => "FENCED_INSTANCE_ID",
        Some(other) => panic!("no such error in the scripts: {other:?}"),
    }
}

fn loses_its_id(error: Option<GroupError>) -> bool {
    matches!(error, Some(GroupError::UnknownMemberId | GroupError::FencedInstanceId))
}

/// A, B are dynamic members, C, D static ones, E is another process with C's instance id. A joins by
/// the id that it is given first; C knows how to skip an assignment.
struct Client {
    name: &'static str,
    member: MemberId,
    generation: i32,
    leads: Vec<MemberId>,
    joining: Option<u64>,
    syncing: Option<u64>,
}

impl Client {
    fn instance(&self) -> Option<Arc<str>> {
        match self.name {
            "C" | "E" => Some("iC".into()),
            "D" => Some("iD".into()),
            _ => None,
        }
    }
}

struct Play {
    bench: Bench,
    clients: [Client; 5],
    ids_made: u8,
    /// Short names of member ids, in the order in which a client sees them.
    tokens: BTreeMap<MemberId, String>,
    seen: BTreeMap<String, u32>,
    told: Vec<String>,
}

impl Play {
    fn new() -> Self {
        let client = |name| Client {
            name,
            member: "".into(),
            generation: -1,
            leads: Vec::new(),
            joining: None,
            syncing: None,
        };
        Self {
            bench: Bench::new(),
            clients: ["A", "B", "C", "D", "E"].map(client),
            ids_made: 0,
            tokens: BTreeMap::new(),
            seen: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    fn token(&mut self, id: &MemberId) -> String {
        if id.is_empty() {
            return "-".to_owned();
        }
        if let Some(token) = self.tokens.get(id) {
            return token.clone();
        }
        let prefix = id[..id.len() - 37].to_owned();
        let count = self.seen.entry(prefix.clone()).or_default();
        *count += 1;
        let token = format!("{prefix}{count}");
        self.tokens.insert(id.clone(), token.clone());
        token
    }

    fn act(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let client = |clients: &[Client; 5]| {
            clients.iter().position(|client| client.name == words[1]).expect("a client")
        };
        match words[0] {
            "pass" => self.bench.pass(words[1].parse().expect("milliseconds")),
            "join" => self.join(client(&self.clients), words[2]),
            "sync" => self.sync(client(&self.clients)),
            "heartbeat" => self.heartbeat(client(&self.clients)),
            "leave" => self.leave(client(&self.clients)),
            "commit" => self.commit(client(&self.clients)),
            "forget" => {
                let client = &mut self.clients[client(&self.clients)];
                (client.member, client.generation) = ("".into(), -1);
                client.leads.clear();
            }
            other => panic!("no such act: {other}"),
        }
        self.bench.pass(0);
        self.read_answers();
    }

    fn join(&mut self, who: usize, offer: &str) {
        self.ids_made += 1;
        let last = self.ids_made;
        let client = &mut self.clients[who];
        let name = client.name;
        let request = join(&client.member).uuid(last).but(|join| {
            join.client_id = name.into();
            join.instance = client.instance();
            join.protocol_type = "test".into();
            join.protocols = offer
                .split(',')
                .map(|protocol| Protocol {
                    name: protocol.into(),
                    metadata: Bytes::from(format!("{name}{protocol}")),
                })
                .collect();
            match name {
                "A" => join.first_join = FirstJoin::WithGivenId,
                "C" => join.leader_return = LeaderReturn::SkipAssignment,
                _ => join.leader_return = LeaderReturn::AsFollower,
            }
            if name == "D" {
                join.rebalance_timeout_ms = 30_000;
            }
        });
        client.joining = Some(self.bench.send(request.event()));
    }

    fn sync(&mut self, who: usize) {
        let leads = self.clients[who].leads.clone();
        let generation = self.clients[who].generation;
        let assignments = leads
            .into_iter()
            .map(|id| {
                let given = format!("{}@{generation}", self.token(&id));
                (id, Bytes::from(given))
            })
            .collect();
        let client = &mut self.clients[who];
        let request = SyncGroup {
            group: "g".into(),
            member: client.member.clone(),
            instance: client.instance(),
            generation,
            protocol_type: None,
            protocol: None,
            assignments,
        };
        client.syncing = Some(self.bench.send(Event::SyncGroup(request)));
    }

    fn heartbeat(&mut self, who: usize) {
        let client = &self.clients[who];
        let instance = client.instance();
        let event = heartbeat(&client.member, instance.as_deref(), client.generation);
        let error = self.bench.ask(event).err();
        self.told.push(format!("{} heartbeat {}", self.clients[who].name, error_name(error)));
    }

    fn leave(&mut self, who: usize) {
        let client = &self.clients[who];
        let instance = client.instance().unwrap_or_default();
        let answer = self.bench.ask(leave(&[(&client.member, &instance)]));
        let Ok(Response::LeaveGroup(left)) = answer else { panic!("{answer:?}") };
        let error = error_name(left[0].error);
        self.told.push(format!("{} leave {error}", self.clients[who].name));
    }

    fn commit(&mut self, who: usize) {
        let client = &self.clients[who];
        let mut request = commit("g", &client.member, client.generation, 1);
        request.instance = client.instance();
        let error = self.bench.ask(Event::OffsetCommit(request)).err();
        self.told.push(format!("{} commit {}", self.clients[who].name, error_name(error)));
    }

    fn read_answers(&mut self) {
        // Who is fenced learns its id before others see the one that took its place.
        for refused in [true, false] {
            for who in 0..self.clients.len() {
                let Some(request) = self.clients[who].joining else { continue };
                let Some(Ok(Response::JoinGroup(joined))) = self.bench.answers.get(&request) else {
                    continue;
                };
                if joined.error.is_some() == refused {
                    let joined = self.bench.joined(request);
                    self.clients[who].joining = None;
                    self.tell_joined(who, joined);
                }
            }
        }
        for who in 0..self.clients.len() {
            let synced =
                self.clients[who].syncing.and_then(|request| self.bench.answers.remove(&request));
            if let Some(answer) = synced {
                self.clients[who].syncing = None;
                self.tell_synced(who, answer);
            }
        }
    }

    fn tell_joined(&mut self, who: usize, joined: JoinGroupResponse) {
        let mut members = Vec::new();
        for member in &joined.members {
            let metadata = String::from_utf8_lossy(&member.metadata);
            members.push(format!("{}:{metadata}", self.token(&member.member)));
        }
        members.sort();
        let (leader, member) = (self.token(&joined.leader), self.token(&joined.member));
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or("null").to_owned();
        let line = format!(
            "{} join {} {} {} {} {} {} {} [{}]",
            self.clients[who].name,
            error_name(joined.error),
            joined.generation,
            text(&joined.protocol_type),
            text(&joined.protocol),
            leader,
            member,
            joined.skip_assignment,
            members.join(",")
        );
        self.told.push(line);
        let client = &mut self.clients[who];
        client.member = if loses_its_id(joined.error) { "".into() } else { joined.member };
        client.generation = joined.generation;
        client.leads = joined.members.into_iter().map(|member| member.member).collect();
    }

    fn tell_synced(&mut self, who: usize, answer: Answer) {
        let name = self.clients[who].name;
        match answer {
            Ok(Response::SyncGroup(synced)) => {
                let text = |text: Option<Arc<str>>| text.unwrap_or_else(|| "null".into());
                let (protocol_type, protocol) = (text(synced.protocol_type), text(synced.protocol));
                let assignment = String::from_utf8_lossy(&synced.assignment);
                let line = format!("{name} sync NONE {protocol_type} {protocol} [{assignment}]");
                self.told.push(line);
            }
            Err(error) => {
                if loses_its_id(Some(error)) {
                    self.clients[who].member = "".into();
                }
                self.told.push(format!("{name} sync {} null null []", error_name(Some(error))));
            }
            other => panic!("{other:?}"),
        }
    }

    fn describe(&mut self) -> String {
        let group = self.bench.described("g");
        if group.protocol_type.is_empty() {
            return "nothing".to_owned();
        }
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let member = |member: &DescribedMember| {
            let instance = member.instance.as_deref().unwrap_or("null");
            let (metadata, assignment) = (text(&member.metadata), text(&member.assignment));
            format!("{instance}/{}:{metadata}:{assignment}", member.client_id)
        };
        let mut members: Vec<String> = group.members.iter().map(member).collect();
        members.sort();
        let (state, kind) = (group.state.name(), group.protocol_type);
        format!("{state} {kind} {} [{}]", group.protocol, members.join(","))
    }
}

#[test]
fn every_step_is_answered_as_kafka_answers_it() {
    let mut scripts = 0;
    for script in SCRIPTS.split("script ").filter(|script| !script.is_empty()) {
        let mut play = Play::new();
        let mut lines = script.lines().peekable();
        let seed = lines.next().expect("a number");
        let mut so_far = String::new();
        while let Some(line) = lines.next() {
            so_far += &format!("{line}\n");
            play.act(line.strip_prefix("> ").expect("an act"));
            let mut expected = Vec::new();
            while let Some(answer) = lines.next_if(|line| line.starts_with("< ")) {
                // A refused join has no protocol; how that is written depends on the version.
                expected.push(answer[2..].replace("null  -", "null null -"));
            }
            let mut told = std::mem::take(&mut play.told);
            told.sort();
            expected.sort();
            assert_eq!(told, expected, "script {seed}:\n{so_far}");
            let state = lines.next().expect("a state").strip_prefix("= ").expect("a state");
            assert_eq!(play.describe(), state, "script {seed}:\n{so_far}");
        }
        scripts += 1;
    }
    assert!(scripts >= 100, "{scripts} scripts");
}
