//! What is stored of a group, refused records, and the bounds of a group.

use super::*;

#[test]
fn a_lowered_size_limit_turns_the_last_members_away() {
    let mut bench = Bench::new();
    let members = bench.stable(3);
    let config = GroupConfig { group_size_max: 2, ..Default::default() };
    let mut bench = bench.restarted(config);
    assert_eq!(bench.state("g"), GroupState::PreparingRebalance, "above the limit");
    let joins: Vec<_> = members.iter().map(|member| bench.send(join(member).event())).collect();
    assert_eq!(bench.refused(joins[2]), GroupError::GroupMaxSizeReached);
    assert_eq!(bench.joined(joins[0]).members.len(), 2);
    assert_eq!(bench.joined(joins[1]).generation, 2);
}

#[test]
fn a_restarted_coordinator_knows_its_members_and_gives_them_a_session() {
    let mut bench = Bench::new();
    let members = bench.stable(2);
    let mut bench = bench.restarted(Default::default());
    let described = bench.described("g");
    assert_eq!(described.state, GroupState::Stable);
    assert_eq!(&*described.protocol, "range");
    assert_eq!(described.members[0].assignment, format!("for {}", members[0]));
    assert_eq!(described.members[0].metadata, subscription(&["t"]));
    bench.pass(9_000);
    assert_eq!(bench.heartbeat(&members[0], 1), Ok(Response::Heartbeat));
    let synced = bench.send(sync(&members[0], 1, Vec::new()));
    assert_eq!(bench.synced(synced), format!("for {}", members[0]));
    let rejoin = bench.send(join(&members[0]).event());
    assert!(bench.waits(rejoin), "the stored leader leads");
    bench.pass(1_000);
    assert_eq!(bench.joined(rejoin).members.len(), 1, "the other one never came back");
}

#[test]
fn a_refused_group_record_takes_the_generation_back() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    let rejoin = bench.send(join(&members[0]).event());
    assert_eq!(bench.joined(rejoin).generation, 2);
    bench.failure = Some(AppendError::NotEnoughReplicas);
    let refused = bench.ask(sync(&members[0], 2, Vec::new()));
    assert_eq!(refused, Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.heartbeat(&members[0], 2), Err(GroupError::IllegalGeneration));
    assert_eq!(bench.heartbeat(&members[0], 1), Ok(Response::Heartbeat));
    let synced = bench.send(sync(&members[0], 1, Vec::new()));
    assert_eq!(bench.synced(synced), format!("for {}", members[0]));
}

#[test]
fn a_refused_first_record_leaves_nothing_and_answers_all_that_wait() {
    let mut bench = Bench::new();
    let joins = [1, 2].map(|n| bench.send(join("").uuid(n).event()));
    bench.pass(6_000);
    let [leader, follower] = joins.map(|request| bench.joined(request).member);
    let waiting = bench.send(sync(&follower, 1, Vec::new()));
    bench.failure = Some(AppendError::Storage);
    let given = bench.send(sync(&leader, 1, Vec::new()));
    assert_eq!(bench.answer(given), Err(GroupError::NotCoordinator));
    assert_eq!(bench.answer(waiting), Err(GroupError::NotCoordinator));
    assert_eq!(bench.state("g"), GroupState::Dead);
    assert_eq!(bench.runtime.next_deadline().map(|due| due > 60_000), Some(true));
}

#[test]
fn an_id_is_made_of_the_client_id_or_the_instance() {
    let mut bench = Bench::new();
    let uuid: [u8; 16] = std::array::from_fn(|n| n as u8 * 17);
    let request = bench.send(join("").given_id().but(|join| join.uuid = uuid).event());
    assert_eq!(&*bench.joined(request).member, "c-00112233-4455-6677-8899-aabbccddeeff");
    let request = bench.send(join("").instance("i").uuid(1).event());
    bench.pass(3_000);
    assert_eq!(*bench.joined(request).member, *id("i", 1));
}

#[test]
fn too_many_given_ids_are_refused() {
    let mut bench = Bench::new();
    let ask = |bench: &mut Bench, n: u32| {
        let request = bench.send(
            join("")
                .given_id()
                .but(|join| join.uuid[..4].copy_from_slice(&n.to_be_bytes()))
                .event(),
        );
        bench.refused(request)
    };
    let limit = crate::limits::PENDING_MEMBERS_MAX as u32;
    for n in 0..limit {
        assert_eq!(ask(&mut bench, n), GroupError::MemberIdRequired);
    }
    assert_eq!(ask(&mut bench, limit), GroupError::GroupMaxSizeReached);
    bench.pass(10_000);
    assert_eq!(ask(&mut bench, limit), GroupError::MemberIdRequired);
}
