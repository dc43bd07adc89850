use super::*;
use crate::testing::Bench;

#[test]
fn what_one_request_has_described_is_bounded() {
    let bench = Bench::new();
    let resource = |name: &str| DescribeConfigsResource {
        resource_type: BROKER,
        resource_name: name.into(),
        configuration_keys: None,
    };
    let ask = |count: usize| {
        let request = DescribeConfigsRequest {
            resources: (0..count).map(|_| resource("1")).collect(),
            include_synonyms: true,
            ..DescribeConfigsRequest::default()
        };
        bench.call::<_, DescribeConfigsResponse>(4, &request).results
    };
    let one = ask(1);
    let each = bytes(&one[0]);
    assert!(each > 20_000, "all settings of a node: {each}");
    let count = DESCRIBED_BYTES_MAX / each + 10;
    let results = ask(count);
    assert_eq!(results.len(), count);
    let is_refused = |result: &DescribeConfigsResult| {
        result.error_code == ErrorCode::PolicyViolation.code() && result.configs.is_empty()
    };
    assert_eq!(results.iter().filter(|it| is_refused(it)).count(), 9, "those behind the bound");
    assert!(results[..count - 9].iter().all(|it| it.error_code == ErrorCode::None.code()));
}

#[test]
fn a_resource_of_an_unknown_kind_spoils_the_whole_request() {
    let bench = Bench::new();
    let codes = |kinds: &[i8]| {
        let resource = |&resource_type: &i8| DescribeConfigsResource {
            resource_type,
            resource_name: "1".into(),
            configuration_keys: None,
        };
        let request = DescribeConfigsRequest {
            resources: kinds.iter().map(resource).collect(),
            ..DescribeConfigsRequest::default()
        };
        let results = bench.call::<_, DescribeConfigsResponse>(4, &request).results;
        results.iter().map(|it| it.error_code).collect::<Vec<_>>()
    };
    assert_eq!(codes(&[BROKER, BROKER, GROUP]), [0, 0, 0], "twice is no fault");
    for unknown in [0, 3, 99, -1] {
        assert_eq!(codes(&[BROKER, unknown, GROUP]), [42, 42, 42], "{unknown}");
    }
    assert_eq!(codes(&[BROKER, BROKER_LOGGER]), [0, 42], "known, but not served");
}
