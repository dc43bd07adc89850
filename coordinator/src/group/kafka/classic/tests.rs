//! Rows "state, event, answers, state" of the classic group, through the runtime.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{AppendError, GroupError};
use crate::group::config::GroupConfig;
use crate::group::event::*;
use crate::group::response::*;
use crate::group::testing::*;
use crate::record::Record;

mod sessions;
mod static_members;
mod stored;

fn group_values(bench: &Bench, from: usize) -> Vec<Option<(i32, Vec<String>)>> {
    let value = |record| match record {
        Record::Group { value, .. } => value.map(|value| {
            let member = |m: crate::record::MemberValue| m.member_id.to_string();
            (value.generation, value.members.into_iter().map(member).collect())
        }),
        other => panic!("not a group: {other:?}"),
    };
    bench.records(from).into_iter().map(value).collect()
}

#[test]
fn a_new_group_waits_for_company_then_assigns_and_is_recorded() {
    let mut bench = Bench::new();
    let first = bench.send(join("").uuid(1).event());
    assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
    bench.pass(1_000);
    let second = bench.send(join("").uuid(2).event());
    bench.pass(2_000);
    assert!(bench.waits(first), "a member came: the delay begins again");
    bench.pass(2_999);
    assert!(bench.waits(first) && bench.waits(second));
    bench.pass(1);
    let leader = bench.joined(first);
    let follower = bench.joined(second);
    assert_eq!((leader.generation, leader.error), (1, None));
    assert_eq!(*leader.member, *id("c", 1));
    assert_eq!(leader.leader, leader.member, "the first to join leads");
    assert_eq!(follower.leader, leader.member);
    assert_eq!(leader.protocol.as_deref(), Some("range"));
    assert_eq!(leader.protocol_type.as_deref(), Some("consumer"));
    let ids: Vec<_> = leader.members.iter().map(|member| &*member.member).collect();
    assert_eq!(ids, [id("c", 1), id("c", 2)]);
    assert_eq!(leader.members[0].metadata, subscription(&["t"]));
    assert!(follower.members.is_empty(), "the leader alone sees the members");
    assert_eq!(bench.state("g"), GroupState::CompletingRebalance);
    assert!(bench.log.is_empty(), "an unfinished rebalance leaves no record");

    let waiting = bench.send(sync(&follower.member, 1, Vec::new()));
    assert!(bench.waits(waiting));
    let assignment = vec![(follower.member.clone(), Bytes::from_static(b"all"))];
    let done = bench.send(sync(&leader.member, 1, assignment));
    assert_eq!(bench.synced(waiting), "all");
    assert_eq!(bench.synced(done), "", "the leader forgot itself");
    assert_eq!(bench.state("g"), GroupState::Stable);
    assert_eq!(group_values(&bench, 0), [Some((1, vec![id("c", 1), id("c", 2)]))]);
    assert_eq!(bench.heartbeat(&follower.member, 1), Ok(Response::Heartbeat));
}

#[test]
fn the_initial_delay_is_extended_up_to_the_rebalance_timeout_only() {
    let mut bench = Bench::new();
    let short = |n| join("").uuid(n).but(|join| join.rebalance_timeout_ms = 7_000).event();
    let first = bench.send(short(1));
    for n in 2..=5 {
        bench.pass(2_000);
        bench.send(short(n));
        assert!(bench.waits(first) || n == 5);
    }
    // 3 + 3 + 1 seconds are over at 7, before the fifth member came at 8.
    let joined = bench.joined(first);
    assert_eq!(joined.members.len(), 4);
    assert_eq!(bench.state("g"), GroupState::PreparingRebalance, "the fifth one rebalances");
}

#[test]
fn without_an_initial_delay_the_first_member_is_answered_at_once() {
    let mut bench = Bench::with(|config| config.initial_rebalance_delay_ms = 0);
    let first = bench.send(join("").event());
    bench.pass(0);
    assert_eq!(bench.joined(first).generation, 1);
}

#[test]
fn refused_joins() {
    let joins: [(&str, Joining, GroupError, &str); 8] = [
        ("no group id", join("").but(|j| j.group = "".into()), GroupError::InvalidGroupId, ""),
        (
            "session too short",
            join("").but(|j| j.session_timeout_ms = 5_999),
            GroupError::InvalidSessionTimeout,
            "",
        ),
        (
            "session too long",
            join("x").but(|j| j.session_timeout_ms = 1_800_001),
            GroupError::InvalidSessionTimeout,
            "x",
        ),
        ("an id in an unknown group", join("x"), GroupError::UnknownMemberId, "x"),
        ("no protocols", join("").protocols(&[]), GroupError::InconsistentGroupProtocol, ""),
        (
            "no protocol type",
            join("").but(|j| j.protocol_type = "".into()),
            GroupError::InconsistentGroupProtocol,
            "",
        ),
        ("first without an id", join("").uuid(7).given_id(), GroupError::MemberIdRequired, "made"),
        (
            "an unknown instance",
            join("x").instance("i").but(|j| j.group = "h".into()),
            GroupError::UnknownMemberId,
            "x",
        ),
    ];
    for (what, join, error, member) in joins {
        let mut bench = Bench::new();
        let request = bench.send(join.event());
        let answer = bench.joined(request);
        let member = if member == "made" { id("c", 7) } else { member.to_owned() };
        assert_eq!(answer, JoinGroupResponse::refused(member.into(), error), "{what}");
        assert!(bench.log.is_empty());
        if error != GroupError::MemberIdRequired {
            assert_eq!(bench.listed(&[], &[]), [""; 0], "{what}: nothing is left");
        }
    }
}

#[test]
fn session_timeouts_at_the_bounds_are_taken() {
    for timeout_ms in [6_000, 1_800_000] {
        let mut bench = Bench::new();
        let request = bench.send(join("").but(|join| join.session_timeout_ms = timeout_ms).event());
        assert!(bench.waits(request));
    }
}

#[test]
fn refused_joins_of_a_stable_group() {
    let rows: [(&str, Joining, GroupError); 6] = [
        (
            "foreign type",
            join("").but(|j| j.protocol_type = "connect".into()),
            GroupError::InconsistentGroupProtocol,
        ),
        (
            "nothing in common",
            join("").protocols(&["sticky"]),
            GroupError::InconsistentGroupProtocol,
        ),
        ("unknown id", join("nobody"), GroupError::UnknownMemberId),
        (
            "unknown instance of a known id",
            join(&id("c", 1)).instance("i"),
            GroupError::UnknownMemberId,
        ),
        (
            "member changes to what nobody else offers",
            join(&id("c", 1)).protocols(&["sticky"]),
            GroupError::InconsistentGroupProtocol,
        ),
        ("group is full", join("").uuid(9), GroupError::GroupMaxSizeReached),
    ];
    for (what, join, error) in rows {
        let mut bench = Bench::with(|config| {
            config.group_size_max = if error == GroupError::GroupMaxSizeReached { 2 } else { 100 };
        });
        bench.stable(2);
        let request = bench.send(join.event());
        assert_eq!(bench.refused(request), error, "{what}");
        assert_eq!(bench.state("g"), GroupState::Stable, "{what}");
    }
}

/// Case B54: ids that nobody comes back with neither join a generation nor hold one up for long.
#[test]
fn b54_given_ids_expire_after_the_session_timeout() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    for n in 0..1_000_u16 {
        let request = bench.send(
            join("")
                .given_id()
                .but(|join| join.uuid[..2].copy_from_slice(&n.to_be_bytes()))
                .event(),
        );
        assert_eq!(bench.refused(request), GroupError::MemberIdRequired);
    }
    assert_eq!(bench.described("g").members.len(), 1, "they are not described");
    assert_eq!(bench.heartbeat(&id("c", 0), 1), Err(GroupError::UnknownMemberId));
    // The leader asks for a rebalance, which waits for the ids that were given.
    bench.pass(5_000);
    let rejoin = bench.send(join(&members[0]).event());
    bench.pass(4_999);
    assert!(bench.waits(rejoin));
    bench.pass(1);
    let joined = bench.joined(rejoin);
    assert_eq!((joined.generation, joined.members.len()), (2, 1));
}

#[test]
fn a_given_id_joins_once_and_leaves_like_a_member() {
    let mut bench = Bench::new();
    let asked = bench.send(join("").uuid(1).given_id().event());
    let given = bench.joined(asked).member;
    assert_eq!(bench.state("g"), GroupState::Empty);
    let second = bench.send(join("").uuid(2).given_id().event());
    let left = bench.joined(second).member;
    assert_eq!(
        bench.ask(leave(&[(&left, "")])),
        Ok(Response::LeaveGroup(vec![LeftMember { member: left, instance: None, error: None }]))
    );
    let instance = bench.send(join(&given).instance("i").event());
    assert_eq!(
        bench.refused(instance),
        GroupError::UnknownMemberId,
        "ids are given to dynamic ones"
    );
    let joining = bench.send(join(&given).given_id().event());
    bench.pass(3_000);
    let joined = bench.joined(joining);
    assert_eq!((joined.member, joined.generation, joined.members.len()), (given, 1, 1));
}

/// Case B54: a member that leaves, or falls silent, is not waited for.
#[test]
fn b54_a_rebalance_ends_when_the_last_missing_member_leaves_or_expires() {
    for by_leaving in [true, false] {
        let mut bench = Bench::new();
        let members = bench.stable(2);
        let newcomer = bench.send(join("").uuid(9).event());
        let back = bench.send(join(&members[0]).event());
        assert!(bench.waits(newcomer) && bench.waits(back));
        if by_leaving {
            bench.ask(leave(&[(&members[1], "")])).expect("left");
        } else {
            bench.pass(10_000);
        }
        assert_eq!(bench.joined(newcomer).generation, 2);
        assert_eq!(bench.joined(back).members.len(), 2);
    }
}

#[test]
fn members_that_do_not_rejoin_in_time_are_out() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    let back = bench.send(join(&members[0]).event());
    for _ in 0..12 {
        bench.pass(5_000);
        let answer = bench.heartbeat(&members[1], 1);
        assert!(matches!(
            answer,
            Err(GroupError::RebalanceInProgress | GroupError::UnknownMemberId)
        ));
    }
    let joined = bench.joined(back);
    assert_eq!((joined.generation, joined.members.len()), (2, 1), "after 60 s");
    assert_eq!(bench.heartbeat(&members[1], 2), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_follower_that_joins_again_unchanged_is_told_its_generation() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    let request = bench.send(join(&members[1]).event());
    let joined = bench.joined(request);
    assert_eq!((joined.generation, joined.leader.clone()), (1, members[0].clone()));
    assert!(joined.members.is_empty());
    assert_eq!(bench.state("g"), GroupState::Stable);
    let synced = bench.send(sync(&members[1], 1, Vec::new()));
    assert_eq!(bench.synced(synced), format!("for {}", members[1]));
}

#[test]
fn a_leader_that_joins_again_or_a_changed_member_rebalances() {
    for (member, names) in [(0, &["range"][..]), (1, &["range", "sticky"])] {
        let mut bench = Bench::new();
        let members = bench.stable(2);
        let request = bench.send(join(&members[member]).protocols(names).event());
        assert!(bench.waits(request));
        assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
        assert_eq!(bench.heartbeat(&members[1 - member], 1), Err(GroupError::RebalanceInProgress));
        assert_eq!(
            bench.ask(sync(&members[1 - member], 1, Vec::new())),
            Err(GroupError::RebalanceInProgress)
        );
        let other = bench.send(join(&members[1 - member]).event());
        assert_eq!(bench.joined(request).generation, 2);
        assert_eq!(bench.joined(other).leader, members[0], "the leader stays");
    }
}

#[test]
fn a_repeated_join_in_the_sync_phase_is_told_the_same_a_changed_one_rebalances() {
    let mut bench = Bench::new();
    let joins = [1, 2].map(|n| bench.send(join("").uuid(n).event()));
    bench.pass(6_000);
    let [leader, follower] = joins.map(|request| bench.joined(request));
    for (member, seen) in [(&leader.member, 2), (&follower.member, 0)] {
        let again = bench.send(join(member).event());
        let again = bench.joined(again);
        assert_eq!((again.generation, again.members.len()), (1, seen));
    }
    let waiting = bench.send(sync(&follower.member, 1, Vec::new()));
    let changed = bench.send(join(&leader.member).protocols(&["range", "sticky"]).event());
    assert_eq!(bench.answer(waiting), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.state("g"), GroupState::PreparingRebalance);
    let back = bench.send(join(&follower.member).event());
    assert_eq!(bench.joined(changed).generation, 2);
    assert_eq!(bench.joined(back).generation, 2);
}

#[test]
fn a_repeated_join_or_sync_supersedes_the_earlier_one() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    let first = bench.send(join(&members[0]).event());
    let again = bench.send(join(&members[0]).event());
    assert_eq!(bench.refused(first), GroupError::RebalanceInProgress);
    let other = bench.send(join(&members[1]).event());
    assert_eq!((bench.joined(again).generation, bench.joined(other).generation), (2, 2));
    let first = bench.send(sync(&members[1], 2, Vec::new()));
    let again = bench.send(sync(&members[1], 2, Vec::new()));
    assert_eq!(bench.answer(first), Err(GroupError::RebalanceInProgress));
    bench.send(sync(&members[0], 2, Vec::new()));
    assert_eq!(bench.synced(again), "");
}

#[test]
fn the_protocol_with_the_most_votes_among_the_common_ones_wins() {
    let rows: [(&[&[&str]], &str); 4] = [
        (&[&["a", "b"], &["b", "a"], &["b", "a"]], "b"),
        (&[&["a", "b"], &["b", "c"], &["c", "b"]], "b"),
        (&[&["b", "a"], &["a", "b"]], "a"),
        (&[&["a", "a", "b"], &["b", "a"], &["b", "a", "a"]], "b"),
    ];
    for (offers, winner) in rows {
        let mut bench = Bench::new();
        let mut first = None;
        for (n, names) in offers.iter().enumerate() {
            let request = bench.send(join("").uuid(n as u8).protocols(names).event());
            first.get_or_insert(request);
        }
        bench.pass(20_000);
        let joined = bench.joined(first.expect("a first member"));
        assert_eq!(joined.protocol.as_deref(), Some(winner), "{offers:?}");
    }
}

#[test]
fn leaving_in_one_request_each_by_itself() {
    let mut bench = Bench::new();
    let members = bench.stable(3);
    let static_member = bench.send(join("").uuid(9).instance("i").event());
    let joins: Vec<_> = members.iter().map(|member| bench.send(join(member).event())).collect();
    bench.sync_all(joins.into_iter().chain([static_member]).collect());
    let answer = bench.ask(leave(&[
        (&members[1], ""),
        ("nobody", ""),
        ("", "i"),
        ("", "j"),
        ("", ""),
        (&members[2], "i"),
    ]));
    let Ok(Response::LeaveGroup(left)) = answer else { panic!("{answer:?}") };
    let errors: Vec<_> = left.iter().map(|member| member.error).collect();
    let unknown = Some(GroupError::UnknownMemberId);
    assert_eq!(errors, [None, unknown, None, unknown, unknown, unknown]);
    assert_eq!((&*left[2].member, left[2].instance.as_deref()), ("", Some("i")));
    let described = bench.described("g");
    assert_eq!(described.state, GroupState::PreparingRebalance);
    assert_eq!(described.members.len(), 2);
    let nobody = Bench::new().ask(leave(&[("x", "")]));
    let Ok(Response::LeaveGroup(left)) = nobody else { panic!("{nobody:?}") };
    assert_eq!(left[0].error, unknown, "in an unknown group");
}

#[test]
fn a_member_that_leaves_gets_answers_to_what_it_waits_for() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    let joining = bench.send(join(&members[0]).event());
    bench.ask(leave(&[(&members[0], "")])).expect("left");
    assert_eq!(bench.refused(joining), GroupError::UnknownMemberId);
    let mut bench = Bench::new();
    let joins = [1, 2].map(|n| bench.send(join("").uuid(n).event()));
    bench.pass(6_000);
    let [_, follower] = joins.map(|request| bench.joined(request).member);
    let syncing = bench.send(sync(&follower, 1, Vec::new()));
    bench.ask(leave(&[(&follower, "")])).expect("left");
    assert_eq!(bench.answer(syncing), Err(GroupError::UnknownMemberId));
}

#[test]
fn the_last_member_to_leave_leaves_an_empty_group() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    bench.ask(leave(&[(&members[0], "")])).expect("left");
    assert_eq!(bench.state("g"), GroupState::Empty);
    assert_eq!(group_values(&bench, 1), [Some((2, vec![]))]);
    let next = bench.send(join("").uuid(2).event());
    bench.pass(3_000);
    assert_eq!(bench.joined(next).generation, 3, "generations go on");
}
