//! Clients are told what to push, and what they push is shown.

use super::super::find;
use crate::kafka::codec::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use crate::kafka::codec::messages::{
    DescribeConfigsRequest, DescribeConfigsResponse, GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, ListConfigResourcesRequest, ListConfigResourcesResponse,
    PushTelemetryRequest, PushTelemetryResponse, describe_configs_request::DescribeConfigsResource,
};
use crate::kafka::codec::{ApiKey, RequestHeader, Uuid};
use crate::telemetry::testing;
use crate::testing::Bench;
use duolog_log_core::record::{Compression, Compressor};

const CLIENT_METRICS: i8 = 16;
const NONE: i16 = 0;
const INVALID_REQUEST: i16 = 42;
const UNSUPPORTED_COMPRESSION: i16 = 76;
const INVALID_RECORD: i16 = 87;
const THROTTLED: i16 = 89;
const UNKNOWN_SUBSCRIPTION: i16 = 117;
const TOO_LARGE: i16 = 118;

fn receiver() -> Bench {
    Bench::with(&["telemetry.receiver=metrics", "telemetry.max.bytes=1000"])
}

fn set(bench: &Bench, name: &str, values: &[(&str, Option<&str>)]) -> (i16, String) {
    let config = |(key, value): &(&str, Option<&str>)| AlterableConfig {
        name: (*key).into(),
        config_operation: i8::from(value.is_none()),
        value: value.map(Into::into),
    };
    let resource = AlterConfigsResource {
        resource_type: CLIENT_METRICS,
        resource_name: name.into(),
        configs: values.iter().map(config).collect(),
    };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer: IncrementalAlterConfigsResponse = bench.call(1, &request);
    let answer = &answer.responses[0];
    (answer.error_code, answer.error_message.clone().unwrap_or_default().to_string())
}

fn get(bench: &Bench, client: Uuid) -> GetTelemetrySubscriptionsResponse {
    let request = GetTelemetrySubscriptionsRequest { client_instance_id: client };
    bench.call(0, &request)
}

fn push(bench: &Bench, push: PushTelemetryRequest) -> i16 {
    let answer: PushTelemetryResponse = bench.call(0, &push);
    answer.error_code
}

fn shown(bench: &Bench) -> String {
    let mut text = String::new();
    bench.node.telemetry.render(&mut text).expect("rendered");
    text
}

#[test]
fn settings_of_client_metrics_are_kept_described_and_listed() {
    let bench = Bench::new();
    assert_eq!(
        set(&bench, "m", &[("metrics", Some("a,b")), ("match", Some("client_id=x"))]).0,
        NONE
    );
    let refused = set(&bench, "m", &[("interval.ms", Some("99"))]);
    assert_eq!(refused.0, INVALID_REQUEST);
    assert!(refused.1.contains("must be between 100 and 3600000"), "{}", refused.1);
    assert_eq!(set(&bench, "", &[("metrics", Some("a"))]).0, INVALID_REQUEST);
    let bench = bench.restart();
    let resource = DescribeConfigsResource {
        resource_type: CLIENT_METRICS,
        resource_name: "m".into(),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        ..DescribeConfigsRequest::default()
    };
    let answer: DescribeConfigsResponse = bench.call(4, &request);
    let entries: Vec<_> = answer.results[0]
        .configs
        .iter()
        .map(|it| {
            let value = it.value.clone().unwrap_or_default().to_string();
            (it.name.to_string(), value, it.config_source, it.synonyms.len())
        })
        .collect();
    let entry = |name: &str, value: &str, source, synonyms| {
        (name.to_owned(), value.to_owned(), source, synonyms)
    };
    let expected = [
        entry("interval.ms", "300000", 5, 0),
        entry("match", "client_id=x", 7, 1),
        entry("metrics", "a,b", 7, 1),
    ];
    assert_eq!(entries, expected);
    let list = || {
        let answer: ListConfigResourcesResponse =
            bench.call(0, &ListConfigResourcesRequest::default());
        answer.config_resources.iter().map(|it| it.resource_name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(), ["m"]);
    assert_eq!(set(&bench, "m", &[("metrics", None), ("match", None)]).0, NONE);
    assert_eq!(list(), [""; 0]);
}

#[test]
fn without_a_receiver_both_keys_are_hidden() {
    let header = |key: ApiKey| RequestHeader {
        api_key: key as i16,
        api_version: 0,
        correlation_id: 0,
        client_id: None,
    };
    for (bench, is_served) in [(Bench::new(), false), (receiver(), true)] {
        for key in [ApiKey::GetTelemetrySubscriptions, ApiKey::PushTelemetry] {
            assert_eq!(find(&bench.node.config, &header(key)).is_ok(), is_served, "{key:?}");
        }
    }
}

#[test]
fn a_client_is_told_what_to_push_and_what_it_pushes_is_shown() {
    let bench = receiver();
    let values = [("metrics", Some("some.")), ("match", Some("client_id=bench"))];
    assert_eq!(set(&bench, "m", &values).0, NONE);
    let told = get(&bench, Uuid::ZERO);
    assert_eq!((told.error_code, told.push_interval_ms), (NONE, 300_000));
    assert_ne!(told.client_instance_id, Uuid::ZERO);
    assert_eq!(told.requested_metrics, ["some.".into()]);
    assert_eq!(told.accepted_compression_types, [4, 3, 1, 2]);
    assert_eq!((told.telemetry_max_bytes, told.delta_temporality), (1000, true));
    assert_eq!(get(&bench, told.client_instance_id).error_code, THROTTLED);
    let plain = testing::gauge("some.level", 2.5);
    let good = || PushTelemetryRequest {
        client_instance_id: told.client_instance_id,
        subscription_id: told.subscription_id,
        metrics: plain.clone().into(),
        ..PushTelemetryRequest::default()
    };
    assert_eq!(push(&bench, good()), NONE);
    let id = told.client_instance_id;
    let line = format!(
        "client_some_level{{client_id=\"bench\",client_instance_id=\"{id}\",\
         client_source_address=\"127.0.0.1\"}} 2.5"
    );
    assert!(shown(&bench).contains(&line), "{}", shown(&bench));
    assert_eq!(push(&bench, good()), THROTTLED);
    for compression in Compression::ALL {
        let mut compressed = Vec::new();
        Compressor::new().compress(compression, &plain, &mut compressed).expect("compressed");
        // Another setting makes a new subscription, so that nobody has to wait.
        set(
            &bench,
            "m",
            &[("interval.ms", Some(&format!("{}", 1000 + i32::from(compression.id()))))],
        );
        let told = get(&bench, id);
        let request = PushTelemetryRequest {
            subscription_id: told.subscription_id,
            compression_type: compression.id().cast_signed(),
            metrics: compressed.into(),
            ..good()
        };
        assert_eq!(push(&bench, request), NONE, "{compression}");
    }
    assert!(shown(&bench).contains("duolog_telemetry_pushes_total 6"), "{}", shown(&bench));
}

#[test]
fn pushes_that_cannot_be_are_refused_with_kafkas_codes() {
    let bench = receiver();
    let mut interval = 1000;
    let mut refused = |change: &dyn Fn(&mut PushTelemetryRequest)| {
        interval += 1;
        set(&bench, "m", &[("interval.ms", Some(&interval.to_string()))]);
        let told = get(&bench, duolog_log_core::ids::TopicId([9; 16]));
        let mut request = PushTelemetryRequest {
            client_instance_id: told.client_instance_id,
            subscription_id: told.subscription_id,
            metrics: testing::gauge("m", 1.0).into(),
            ..PushTelemetryRequest::default()
        };
        change(&mut request);
        push(&bench, request)
    };
    assert_eq!(refused(&|_| {}), NONE);
    assert_eq!(refused(&|push| push.client_instance_id = Uuid::ZERO), INVALID_REQUEST);
    assert_eq!(refused(&|push| push.subscription_id ^= 1), UNKNOWN_SUBSCRIPTION);
    assert_eq!(refused(&|push| push.compression_type = 9), UNSUPPORTED_COMPRESSION);
    assert_eq!(refused(&|push| push.metrics = vec![0; 1001].into()), TOO_LARGE);
    assert_eq!(refused(&|push| push.metrics = vec![0xFF; 10].into()), INVALID_RECORD);
    assert_eq!(refused(&|push| push.compression_type = 4), INVALID_RECORD, "not zstd");
    assert_eq!(refused(&|push| push.terminating = true), NONE);
    assert_eq!(refused(&|push| push.metrics = bytes::Bytes::new()), NONE, "nothing to say");
}
