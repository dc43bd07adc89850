use proptest::prelude::*;

use super::*;

fn topic(number: u8) -> TopicId {
    TopicId([number; 16])
}

fn member(id: &str, topics: &[u8], target: &[(u8, &[i32])]) -> Subscriber {
    let target = target.iter().map(|(number, of)| (topic(*number), of.iter().copied().collect()));
    Subscriber {
        id: id.into(),
        instance: None,
        topics: topics.iter().copied().map(topic).collect(),
        target: Arc::new(target.collect()),
    }
}

fn counts(of: &[(u8, i32)]) -> PartitionCounts {
    of.iter().map(|&(number, count)| (topic(number), count)).collect()
}

/// Each member's partitions, as `topic:partitions`.
fn show(targets: &BTreeMap<MemberId, Assignment>) -> Vec<String> {
    let of = |target: &Assignment| {
        let topics = target.iter().map(|(id, indexes)| format!("{}:{indexes:?}", id.0[0]));
        topics.collect::<Vec<_>>().join(" ")
    };
    targets.iter().map(|(id, target)| format!("{id} {}", of(target))).collect()
}

#[test]
fn uniform_shares_evenly_and_moves_as_little_as_it_can() {
    let check = |members: &[Subscriber], of: &[(u8, i32)], expected: &[&str]| {
        assert_eq!(show(&assign(Assignor::Uniform, members, &counts(of))), expected);
    };
    check(&[member("a", &[1], &[])], &[(1, 3)], &["a 1:{0, 1, 2}"]);
    // The newcomer gets what is over.
    check(
        &[member("a", &[1], &[(1, &[0, 1, 2])]), member("b", &[1], &[])],
        &[(1, 3)],
        &["a 1:{0, 1}", "b 1:{2}"],
    );
    // Who has one more keeps it, whatever its name.
    check(
        &[member("a", &[1], &[(1, &[0])]), member("b", &[1], &[(1, &[1, 2])])],
        &[(1, 3)],
        &["a 1:{0}", "b 1:{1, 2}"],
    );
    // New partitions go where there are fewest.
    check(
        &[member("a", &[1, 2], &[(1, &[0, 1])]), member("b", &[1, 2], &[(1, &[2])])],
        &[(1, 3), (2, 1)],
        &["a 1:{0, 1}", "b 1:{2} 2:{0}"],
    );
    // What is gone is forgotten; more members than partitions.
    check(
        &[member("a", &[1], &[(9, &[0])]), member("b", &[1], &[(1, &[7])])],
        &[(1, 1)],
        &["a 1:{0}", "b "],
    );
}

#[test]
fn uniform_gives_different_wishes_what_they_allow() {
    let members = [
        member("a", &[1], &[(1, &[0, 1, 2, 3])]),
        member("b", &[1, 2], &[]),
        member("c", &[2], &[]),
    ];
    let targets = assign(Assignor::Uniform, &members, &counts(&[(1, 4), (2, 2)]));
    assert_eq!(show(&targets), ["a 1:{1, 2, 3}", "b 1:{0} 2:{0}", "c 2:{1}"]);
}

#[test]
fn range_gives_consecutive_partitions_alike_for_all_topics() {
    let mut of_a_name = member("c", &[1, 2], &[]);
    of_a_name.instance = Some("i".into());
    let members = [member("a", &[1, 2], &[]), member("b", &[1], &[]), of_a_name];
    let targets = assign(Assignor::Range, &members, &counts(&[(1, 5), (2, 3)]));
    assert_eq!(show(&targets), ["a 1:{2, 3} 2:{2}", "b 1:{4}", "c 1:{0, 1} 2:{0, 1}"]);
}

fn any_members() -> impl Strategy<Value = Vec<Subscriber>> {
    let wish = prop::collection::btree_set(1..5_u8, 0..4);
    let had = prop::collection::vec((1..6_u8, 0..8_i32), 0..10);
    prop::collection::vec((wish, had), 1..7).prop_map(|all| {
        let mut members = Vec::new();
        for (number, (wish, had)) in all.into_iter().enumerate() {
            let mut target = Assignment::new();
            for (of, index) in had {
                target.entry(topic(of)).or_default().insert(index);
            }
            let topics = wish.into_iter().map(topic).collect();
            let id = format!("m{number}").into();
            members.push(Subscriber { id, instance: None, topics, target: Arc::new(target) });
        }
        members
    })
}

/// The partitions of all topics that somebody wants.
fn wanted(members: &[Subscriber], all: &PartitionCounts) -> PartitionCounts {
    let wants = |topic: &TopicId| members.iter().any(|member| member.topics.contains(topic));
    all.iter().filter(|(topic, _)| wants(topic)).map(|(&topic, &count)| (topic, count)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_partition_has_one_owner_that_wants_it(
        members in any_members(),
        sizes in prop::collection::vec(0..7_i32, 4),
        range: bool,
    ) {
        let all: PartitionCounts = (1..).map(topic).zip(sizes).collect();
        let counts = wanted(&members, &all);
        let assignor = if range { Assignor::Range } else { Assignor::Uniform };
        let targets = assign(assignor, &members, &counts);
        prop_assert_eq!(targets.len(), members.len());
        let mut given = BTreeSet::new();
        for member in &members {
            for (topic, indexes) in &targets[&member.id] {
                prop_assert!(member.topics.contains(topic) && !indexes.is_empty());
                for index in indexes {
                    prop_assert!(given.insert((*topic, *index)), "given twice");
                }
            }
        }
        prop_assert_eq!(given, partitions(&counts).collect::<BTreeSet<_>>());
    }

    #[test]
    fn uniform_is_balanced_and_stays_as_it_is(
        members in any_members(),
        sizes in prop::collection::vec(0..7_i32, 4),
    ) {
        let all: PartitionCounts = (1..).map(topic).zip(sizes).collect();
        let counts = wanted(&members, &all);
        let targets = assign(Assignor::Uniform, &members, &counts);
        let load = |id: &MemberId| targets[id].values().map(BTreeSet::len).sum::<usize>();
        for owner in &members {
            for topic in targets[&owner.id].keys() {
                for other in members.iter().filter(|other| other.topics.contains(topic)) {
                    prop_assert!(load(&owner.id) <= load(&other.id) + 1);
                }
            }
        }
        let mut again = members.clone();
        for member in &mut again {
            member.target = Arc::new(targets[&member.id].clone());
        }
        prop_assert_eq!(assign(Assignor::Uniform, &again, &counts), targets);
    }
}
