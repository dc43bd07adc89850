//! Groups of several members when one of them falls silent or the node is killed.

use std::future::Future;

use crate::kafka::codec::Str;
use crate::kafka::codec::messages::join_group_request::JoinGroupRequestProtocol;
use crate::kafka::codec::messages::sync_group_request::SyncGroupRequestAssignment;
use crate::kafka::codec::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, HeartbeatRequest, HeartbeatResponse,
    JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse,
};
use crate::kafka::errors::ErrorCode;
use crate::testing::coordinator_of;
use crate::testing::served::{Attempts, Client, LIMIT, TestNode};

const SETTINGS: [&str; 2] =
    ["group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=100"];
/// Longer than anything is waited for here.
const LONG_MS: i32 = 600_000;
/// Longer than a busy machine needs from a member's last word to the next look at the group.
const SHORT_MS: i32 = 6_000;

fn join(member: &Str, session_timeout_ms: i32) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms,
        rebalance_timeout_ms: LONG_MS,
        member_id: member.clone(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: bytes::Bytes::from_static(b"meta"),
        }],
        ..JoinGroupRequest::default()
    }
}

/// A member with a connection of its own.
struct Member {
    client: Client,
    id: Str,
    session_timeout_ms: i32,
    generation: i32,
}

impl Member {
    async fn new(node: &TestNode, session_timeout_ms: i32) -> Self {
        let mut client = node.connect().await;
        let given: JoinGroupResponse = client.call(7, &join(&"".into(), session_timeout_ms)).await;
        assert_eq!(given.error_code, ErrorCode::MemberIdRequired.code());
        Self { client, id: given.member_id, session_timeout_ms, generation: -1 }
    }

    async fn begin_join(&mut self) {
        let request = join(&self.id, self.session_timeout_ms);
        self.client.send(7, &request).await;
    }

    /// The answer to a join; those of the leader name all members.
    async fn joined(&mut self) -> JoinGroupResponse {
        let (_, joined): (_, JoinGroupResponse) = self.client.receive(7).await;
        assert_eq!(joined.error_code, 0);
        self.generation = joined.generation_id;
        joined
    }

    async fn sync(&mut self, assignments: &[Str]) -> SyncGroupResponse {
        let request = SyncGroupRequest {
            group_id: "g".into(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments: assignments
                .iter()
                .map(|id| SyncGroupRequestAssignment {
                    member_id: id.clone(),
                    assignment: bytes::Bytes::from_static(b"part"),
                })
                .collect(),
            ..SyncGroupRequest::default()
        };
        self.client.call(5, &request).await
    }

    async fn beat(&mut self) -> i16 {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            ..HeartbeatRequest::default()
        };
        let answer: HeartbeatResponse = self.client.call(4, &request).await;
        answer.error_code
    }
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("never: {what}"))
}

/// Lets members with these session timeouts join a new group, one after the other, and sync as one generation; the
/// leader is the first then.
async fn settled(node: &TestNode, session_timeouts_ms: &[i32]) -> Vec<Member> {
    let (mut members, mut leader) = (Vec::<Member>::new(), None);
    for session_timeout_ms in session_timeouts_ms {
        let mut newest = Member::new(node, *session_timeout_ms).await;
        newest.begin_join().await;
        if !members.is_empty() {
            becomes(node, "PreparingRebalance").await;
        }
        for member in &mut members {
            member.begin_join().await;
        }
        members.push(newest);
        leader = None;
        for (index, member) in members.iter_mut().enumerate() {
            let joined = in_time("the join phase ends", member.joined()).await;
            if joined.leader == member.id {
                assert!(leader.replace((index, joined.members.len())).is_none());
            }
        }
    }
    let first = members[0].generation;
    assert!(members.iter().all(|member| member.generation == first), "in one generation");
    let (at, listed) = leader.expect("one leads");
    assert_eq!(listed, members.len(), "its leader knows all");
    members.swap(0, at);
    let ids: Vec<Str> = members.iter().map(|member| member.id.clone()).collect();
    for (index, member) in members.iter_mut().enumerate() {
        let assignments = if index == 0 { &ids[..] } else { &[] };
        assert_eq!(in_time("the sync", member.sync(assignments)).await.error_code, 0);
    }
    members
}

async fn described(node: &TestNode) -> (String, Vec<Str>) {
    let request =
        DescribeGroupsRequest { groups: vec!["g".into()], ..DescribeGroupsRequest::default() };
    let response: DescribeGroupsResponse = node.connect().await.call(5, &request).await;
    let group = &response.groups[0];
    let mut ids: Vec<_> = group.members.iter().map(|member| member.member_id.clone()).collect();
    ids.sort();
    (group.group_state.to_string(), ids)
}

/// Waits until the group is in a state.
async fn becomes(node: &TestNode, state: &str) {
    let attempts = Attempts::at("the group's state");
    while described(node).await.0 != state {
        attempts.again().await;
    }
}

async fn prepared(settings: &[&str]) -> TestNode {
    let node = TestNode::start(settings).await;
    node.node.open_coordinators().await.expect("coordinators");
    coordinator_of("g", &node.node).await;
    node
}

/// Case B54: the others wait for a silent member no longer than its session lasts, though they would wait for its
/// join ten minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_member_holds_up_the_others_for_its_session_only() {
    let node = prepared(&SETTINGS).await;
    let mut members = settled(&node, &[LONG_MS, LONG_MS, SHORT_MS]).await;
    assert_eq!(described(&node).await.0, "Stable");
    let silent = members.iter().position(|member| member.session_timeout_ms != LONG_MS);
    let silent = members.remove(silent.expect("there"));
    // Its connection goes, too; nobody hears of that.
    let gone = silent.id.clone();
    drop(silent);
    let mut fourth = Member::new(&node, LONG_MS).await;
    fourth.begin_join().await;
    for member in &mut members {
        in_time("the others hear of the rebalance", async {
            while member.beat().await != ErrorCode::RebalanceInProgress.code() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        member.begin_join().await;
    }
    members.push(fourth);
    let mut generations = Vec::new();
    let mut listed = 0;
    for member in &mut members {
        let joined = in_time("the join phase ends without it", member.joined()).await;
        generations.push(joined.generation_id);
        listed += joined.members.len();
        assert!(!joined.members.iter().any(|other| other.member_id == gone));
    }
    assert_eq!(listed, 3, "the leader has a list of all that are left");
    generations.dedup();
    assert_eq!(generations.len(), 1, "in one generation");
    node.stop().await;
}

/// After kill -9 the members of the log are the group's: they go on in their generation, and one that does not come
/// back is missed after its session.
#[tokio::test(flavor = "multi_thread")]
async fn members_outlive_a_killed_node_and_are_missed_if_they_do_not() {
    let node = prepared(&SETTINGS).await;
    let mut members = settled(&node, &[LONG_MS, LONG_MS, SHORT_MS]).await;
    let (state, ids) = described(&node).await;
    assert_eq!((state.as_str(), ids.len()), ("Stable", 3));

    let disk = node.disk.kill();
    node.node.stopping.cancel();
    let node = TestNode::start_on(disk, &SETTINGS).await;
    coordinator_of("g", &node.node).await;
    assert_eq!(described(&node).await, (state, ids.clone()), "the same members");
    for member in &mut members {
        member.client = node.connect().await;
    }
    let silent = members.iter().position(|member| member.session_timeout_ms != LONG_MS);
    let silent = members.remove(silent.expect("there"));
    for member in &mut members {
        assert_eq!(member.beat().await, 0, "they go on in their generation");
    }
    let attempts = Attempts::at("the silent one is missed");
    while described(&node).await.1.contains(&silent.id) {
        attempts.again().await;
    }
    for member in &mut members {
        assert_eq!(member.beat().await, ErrorCode::RebalanceInProgress.code());
    }
    node.stop().await;
}
