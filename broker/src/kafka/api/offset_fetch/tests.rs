use super::*;
use crate::testing::Bench;

#[test]
fn the_positions_of_one_request_are_bounded() {
    let bench = Bench::new();
    let of = |group: String| OffsetFetchRequestGroup {
        group_id: group.into(),
        topics: Some(vec![OffsetFetchRequestTopics {
            name: "t".into(),
            partition_indexes: (0..100_000).collect(),
            ..OffsetFetchRequestTopics::default()
        }]),
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest {
        groups: (0..12).map(|number| of(format!("g{number}"))).collect(),
        ..OffsetFetchRequest::default()
    };
    bench.run(bench.node.open_coordinators()).expect("coordinators");
    let answer = bench.until("every coordinator has loaded", |bench| {
        let answer: OffsetFetchResponse = bench.call(9, &request);
        let settled = |code: i16| [0, ErrorCode::PolicyViolation.code()].contains(&code);
        answer.groups.iter().all(|group| settled(group.error_code)).then_some(answer)
    });
    let refused = |group: &OffsetFetchResponseGroup| group.error_code != 0;
    let refused: Vec<_> = answer.groups.iter().map(refused).collect();
    assert_eq!(refused, [vec![false; 10], vec![true; 2]].concat());
    assert_eq!(answer.groups[9].topics[0].partitions.len(), 100_000);
}
