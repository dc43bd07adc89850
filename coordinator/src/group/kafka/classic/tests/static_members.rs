//! The tables of KIP-345.

use super::*;

/// Two static members `i1` (leader) and `i2` in a stable group of generation 1.
fn stable() -> (Bench, Vec<MemberId>) {
    let mut bench = Bench::new();
    let joins = ["i1", "i2"]
        .map(|i| bench.send(join("").instance(i).uuid(1).event()))
        .into_iter()
        .collect();
    bench.pass(6_000);
    let members = bench.sync_all(joins);
    (bench, members)
}

fn comes_back(bench: &mut Bench, instance: &str, change: impl FnOnce(&mut JoinGroup)) -> u64 {
    bench.send(join("").instance(instance).uuid(2).but(change).event())
}

#[test]
fn one_that_comes_back_to_a_stable_group_keeps_generation_and_assignment() {
    let (mut bench, members) = stable();
    let request = comes_back(&mut bench, "i2", |_| {});
    let joined = bench.joined(request);
    assert_eq!((joined.generation, joined.skip_assignment), (1, false));
    assert_eq!((&*joined.member, &joined.leader), (&*id("i2", 2), &members[0]));
    assert_eq!(bench.state("g"), GroupState::Stable);
    assert_eq!(group_values(&bench, 1), [Some((1, vec![id("i1", 1), id("i2", 2)]))]);
    let synced = bench.send(sync(&id("i2", 2), 1, Vec::new()));
    assert_eq!(bench.synced(synced), format!("for {}", members[1]), "what it had");
    let old = heartbeat(&members[1], Some("i2"), 1);
    assert_eq!(bench.ask(old), Err(GroupError::FencedInstanceId));
    assert_eq!(bench.heartbeat(&members[1], 1), Err(GroupError::UnknownMemberId));
    let mut old = commit("g", &members[1], 1, 5);
    old.instance = Some("i2".into());
    assert_eq!(bench.ask(Event::OffsetCommit(old)), Err(GroupError::FencedInstanceId));
    let answer = bench.ask(leave(&[(&members[1], "i2")]));
    let Ok(Response::LeaveGroup(left)) = answer else { panic!("{answer:?}") };
    assert_eq!(left[0].error, Some(GroupError::FencedInstanceId));
    bench.pass(9_999);
    assert_eq!(bench.heartbeat(&id("i2", 2), 1), Ok(Response::Heartbeat), "a session of its own");
}

#[test]
fn a_leader_that_comes_back_skips_the_assignment_or_follows_its_old_self() {
    let (mut bench, members) = stable();
    let request = comes_back(&mut bench, "i1", |_| {});
    let joined = bench.joined(request);
    assert!(joined.skip_assignment);
    assert_eq!((&joined.leader, joined.members.len()), (&joined.member, 2));
    let (mut bench, _) = stable();
    let request =
        comes_back(&mut bench, "i1", |join| join.leader_return = LeaderReturn::AsFollower);
    let joined = bench.joined(request);
    assert!(!joined.skip_assignment && joined.members.is_empty());
    assert_eq!(joined.leader, members[0], "the id it had, so that it does not assign");
    let rejoin = bench.send(join(&joined.member).instance("i1").event());
    assert!(bench.waits(rejoin), "it leads nevertheless");
}

#[test]
fn one_that_changes_the_protocol_rebalances() {
    let (mut bench, members) = {
        let mut bench = Bench::new();
        let joins = ["i1", "i2"].map(|i| {
            bench.send(join("").instance(i).uuid(1).protocols(&["range", "sticky"]).event())
        });
        bench.pass(6_000);
        let members = bench.sync_all(joins.into());
        (bench, members)
    };
    let request = comes_back(&mut bench, "i2", |join| join.protocols = protocols(&["sticky"]));
    assert!(bench.waits(request));
    assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
    let other =
        bench.send(join(&members[0]).instance("i1").protocols(&["range", "sticky"]).event());
    assert_eq!(bench.joined(request).protocol.as_deref(), Some("sticky"));
    assert_eq!(bench.joined(other).generation, 2);
}

/// Case B51: the later of two processes with one instance id has it.
#[test]
fn b51_the_later_join_of_an_instance_fences_the_earlier_one_at_once() {
    let (mut bench, members) = stable();
    let third = bench.send(join("").uuid(9).event());
    let early = comes_back(&mut bench, "i2", |join| join.uuid[15] = 3);
    let late = comes_back(&mut bench, "i2", |join| join.uuid[15] = 4);
    let fenced = bench.joined(early);
    assert_eq!(fenced.error, Some(GroupError::FencedInstanceId));
    assert_eq!(*fenced.member, *id("i2", 3));
    let leader = bench.send(join(&members[0]).instance("i1").event());
    let ids = bench.sync_all(vec![third, late, leader]);
    assert_eq!(ids.len(), 3);
    let instances: Vec<Option<Arc<str>>> =
        bench.described("g").members.into_iter().map(|member| member.instance).collect();
    assert_eq!(instances.iter().flatten().filter(|i| &***i == "i2").count(), 1);
    let early = heartbeat(&id("i2", 3), Some("i2"), 2);
    assert_eq!(bench.ask(early), Err(GroupError::FencedInstanceId));
    assert_eq!(bench.ask(heartbeat(&id("i2", 4), Some("i2"), 2)), Ok(Response::Heartbeat));
}

#[test]
fn one_that_comes_back_in_the_sync_phase_fences_the_sync_and_rebalances() {
    let mut bench = Bench::new();
    let joins = ["i1", "i2"].map(|i| bench.send(join("").instance(i).uuid(1).event()));
    bench.pass(6_000);
    let [_, follower] = joins.map(|request| bench.joined(request).member);
    let syncing = bench.send(sync(&follower, 1, Vec::new()));
    let back = comes_back(&mut bench, "i2", |_| {});
    assert_eq!(bench.answer(syncing), Err(GroupError::FencedInstanceId));
    assert!(bench.waits(back));
    assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
}

#[test]
fn static_members_are_waited_for_until_their_session_ends() {
    let (mut bench, members) = stable();
    let newcomer = bench.send(join("").uuid(9).but(|j| j.rebalance_timeout_ms = 7_000).event());
    bench.pass(9_000);
    assert!(bench.waits(newcomer), "the longest rebalance timeout counts");
    bench.pass(1_000);
    let joined = bench.joined(newcomer);
    assert_eq!((joined.generation, joined.members.len()), (2, 1), "sessions of 10 s ended");
    drop(members);

    // A rebalance timeout shorter than the sessions: they stay in the generation.
    let mut bench = Bench::new();
    let quick = |j: &mut JoinGroup| {
        j.rebalance_timeout_ms = 4_000;
        j.session_timeout_ms = 30_000;
    };
    let joins = ["i1", "i2"].map(|i| bench.send(join("").instance(i).uuid(1).but(quick).event()));
    bench.pass(6_000);
    let members = bench.sync_all(joins.into());
    let newcomer = bench.send(join("").uuid(9).but(quick).event());
    bench.pass(4_000);
    let joined = bench.joined(newcomer);
    assert_eq!((joined.generation, joined.members.len()), (2, 3));
    assert_eq!(joined.leader, joined.member, "a leader must be there");
    assert_eq!(
        bench.ask(heartbeat(&members[0], Some("i1"), 1)),
        Err(GroupError::IllegalGeneration)
    );
}

#[test]
fn a_group_of_absent_static_members_waits_on() {
    let mut bench = Bench::new();
    let quick = |j: &mut JoinGroup| {
        j.rebalance_timeout_ms = 4_000;
        j.session_timeout_ms = 30_000;
    };
    let first = bench.send(join("").instance("i1").uuid(1).but(quick).event());
    bench.pass(3_000);
    bench.sync_all(vec![first]);
    let newcomer = bench.send(join("").uuid(9).but(quick).event());
    let newcomer_id = id("c", 9);
    bench.ask(leave(&[(&newcomer_id, "")])).expect("left");
    assert_eq!(bench.refused(newcomer), GroupError::UnknownMemberId);
    bench.pass(20_000);
    assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
    bench.pass(10_000);
    assert_eq!(bench.state("g"), GroupState::Empty, "its session ended");
}

/// Static members `i1`, which asks for 60 s, and `i2`, which asks for `rebalance_timeout_ms`; `i1`
/// leaves and `i2` does not come back.
#[test]
fn absent_static_members_without_a_rebalance_timeout_hold_nobody_up() {
    for rebalance_timeout_ms in [0, -1, i32::MIN] {
        let mut bench = Bench::new();
        let first = |j: &mut JoinGroup| j.rebalance_timeout_ms = 60_000;
        let second = |j: &mut JoinGroup| j.rebalance_timeout_ms = rebalance_timeout_ms;
        let joins = vec![
            bench.send(join("").instance("i1").uuid(1).but(first).event()),
            bench.send(join("").instance("i2").uuid(1).but(second).event()),
        ];
        bench.pass(6_000);
        let members = bench.sync_all(joins);
        bench.ask(leave(&[(&members[0], "i1")])).expect("left");
        assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
        // One tick ends, and the next is not at the same moment.
        bench.runtime.tick(bench.now);
        assert!(bench.runtime.next_deadline() > Some(bench.now.tick_ms));
        bench.pass(10_000);
        assert_eq!(bench.state("g"), GroupState::Empty, "its session ended");
    }
}

#[test]
fn a_refused_record_gives_the_old_id_back() {
    let (mut bench, members) = stable();
    bench.failure = Some(AppendError::TooLarge);
    let request = comes_back(&mut bench, "i2", |_| {});
    assert_eq!(bench.answer(request), Err(GroupError::TooLarge));
    assert_eq!(bench.ask(heartbeat(&members[1], Some("i2"), 1)), Ok(Response::Heartbeat));
}

#[test]
fn instance_ids_survive_a_restart() {
    let (bench, members) = stable();
    let mut bench = bench.restarted(Default::default());
    assert_eq!(bench.ask(heartbeat(&members[0], Some("i1"), 1)), Ok(Response::Heartbeat));
    let request = comes_back(&mut bench, "i1", |_| {});
    assert_eq!(bench.joined(request).generation, 1);
}
