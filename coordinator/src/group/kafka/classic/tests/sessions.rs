//! Heartbeats, silence and the sync phase: who is still there.

use super::*;

#[test]
fn heartbeats_and_syncs_are_checked() {
    let mut bench = Bench::new();
    assert_eq!(bench.heartbeat("x", 1), Err(GroupError::UnknownMemberId), "no group");
    assert_eq!(bench.ask(sync("x", 1, Vec::new())), Err(GroupError::UnknownMemberId));
    let members = bench.stable(1);
    let member = &members[0];
    assert_eq!(bench.heartbeat("x", 1), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.heartbeat(member, 0), Err(GroupError::IllegalGeneration));
    assert_eq!(bench.heartbeat(member, 2), Err(GroupError::IllegalGeneration));
    assert_eq!(bench.ask(heartbeat(member, Some("i"), 1)), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.heartbeat(member, 1), Ok(Response::Heartbeat));
    assert_eq!(bench.ask(sync("x", 1, Vec::new())), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.ask(sync(member, 2, Vec::new())), Err(GroupError::IllegalGeneration));
    let mut foreign = |change: fn(&mut SyncGroup)| {
        let Event::SyncGroup(mut request) = sync(member, 1, Vec::new()) else { unreachable!() };
        change(&mut request);
        bench.ask(Event::SyncGroup(request))
    };
    let inconsistent = Err(GroupError::InconsistentGroupProtocol);
    assert_eq!(foreign(|sync| sync.protocol_type = Some("connect".into())), inconsistent);
    assert_eq!(foreign(|sync| sync.protocol = Some("sticky".into())), inconsistent);
    let untold = foreign(|sync| (sync.protocol_type, sync.protocol) = (None, None));
    assert!(untold.is_ok(), "before v5 they are not told");
    let no_group = Err(GroupError::InvalidGroupId);
    assert_eq!(foreign(|sync| sync.group = "".into()), no_group);
    let Event::Heartbeat(mut request) = heartbeat("x", None, 1) else { unreachable!() };
    request.group = "".into();
    assert_eq!(bench.ask(Event::Heartbeat(request)), no_group);
    let Event::LeaveGroup(mut request) = leave(&[]) else { unreachable!() };
    request.group = "".into();
    assert_eq!(bench.ask(Event::LeaveGroup(request)), no_group);
}

#[test]
fn silence_beyond_the_session_timeout_ends_a_membership() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    bench.pass(9_999);
    assert_eq!(bench.heartbeat(&members[0], 1), Ok(Response::Heartbeat));
    assert_eq!(bench.state("g"), GroupState::Stable);
    bench.pass(1);
    assert_eq!(bench.heartbeat(&members[1], 1), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.heartbeat(&members[0], 1), Err(GroupError::RebalanceInProgress));
    bench.pass(70_000);
    assert_eq!(bench.state("g"), GroupState::Empty);
    assert_eq!(group_values(&bench, 1), [Some((2, vec![]))], "the empty generation is recorded");
    let described = bench.described("g");
    assert_eq!((&*described.protocol_type, described.members.len()), ("consumer", 0));
}

#[test]
fn a_commit_keeps_the_session_alive() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    for _ in 0..5 {
        bench.pass(9_000);
        bench.ask(Event::OffsetCommit(commit("g", &members[0], 1, 5))).expect("committed");
    }
    assert_eq!(bench.state("g"), GroupState::Stable);
}

#[test]
fn a_new_member_may_wait_five_minutes_for_its_first_join() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    let long = join("").uuid(2).but(|join| join.rebalance_timeout_ms = 1_000_000);
    let request = bench.send(long.event());
    let mut beats = 0;
    while bench.waits(request) {
        bench.pass(5_000);
        let _ = bench.heartbeat(&members[0], 1);
        beats += 1;
    }
    assert_eq!(bench.refused(request), GroupError::UnknownMemberId);
    assert_eq!(beats * 5, 300);
}

#[test]
fn members_that_never_sync_are_out_after_the_rebalance_timeout() {
    for leader_syncs in [false, true] {
        let mut bench = Bench::new();
        let joins = [1, 2].map(|n| bench.send(join("").uuid(n).event()));
        bench.pass(6_000);
        let [leader, follower] = joins.map(|request| bench.joined(request).member);
        let synced =
            bench.send(sync(if leader_syncs { &leader } else { &follower }, 1, Vec::new()));
        assert_eq!(bench.waits(synced), !leader_syncs);
        let silent = if leader_syncs { &follower } else { &leader };
        for _ in 0..11 {
            bench.pass(5_000);
            assert_eq!(bench.heartbeat(silent, 1), Ok(Response::Heartbeat));
            let _ = bench.heartbeat(&leader, 1);
        }
        bench.pass(5_000);
        assert_eq!(bench.heartbeat(silent, 1), Err(GroupError::UnknownMemberId));
        if !leader_syncs {
            assert_eq!(bench.answer(synced), Err(GroupError::RebalanceInProgress));
        }
        assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
    }
}

#[test]
fn a_session_that_ran_out_while_the_leader_was_awaited_begins_anew_with_the_answer() {
    let mut bench = Bench::new();
    let joins = [1, 2].map(|n| bench.send(join("").uuid(n).event()));
    bench.pass(6_000);
    let [leader, follower] = joins.map(|request| bench.joined(request).member);
    let waiting = bench.send(sync(&follower, 1, Vec::new()));
    bench.pass(9_000);
    assert_eq!(bench.heartbeat(&leader, 1), Ok(Response::Heartbeat));
    bench.pass(9_000);
    bench.send(sync(&leader, 1, Vec::new()));
    assert_eq!(bench.synced(waiting), "", "silence was no fault");
    bench.pass(9_000);
    assert_eq!(bench.heartbeat(&leader, 1), Ok(Response::Heartbeat));
    bench.pass(1_000);
    assert_eq!(bench.heartbeat(&follower, 1), Err(GroupError::UnknownMemberId));
}
