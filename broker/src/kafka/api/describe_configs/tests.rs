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
