//! Levels of features: what changes them, who is told, and what follows from them.

use crate::kafka::codec::messages::update_features_request::FeatureUpdateKey;
use crate::kafka::codec::messages::{
    ApiVersionsRequest, ApiVersionsResponse, ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    EndTxnRequest, EndTxnResponse, UpdateFeaturesRequest, UpdateFeaturesResponse,
};
use crate::testing::Bench;

const UPGRADE: i8 = 1;
const SAFE: i8 = 2;
const UNSAFE: i8 = 3;
const UNSUPPORTED_VERSION: i16 = 35;
const INVALID_UPDATE_VERSION: i16 = 95;

fn update(bench: &Bench, validate_only: bool, updates: &[(&str, i16, i8)]) -> (i16, String) {
    let key = |(feature, max_version_level, upgrade_type): &(&str, i16, i8)| FeatureUpdateKey {
        feature: (*feature).into(),
        max_version_level: *max_version_level,
        upgrade_type: *upgrade_type,
        ..FeatureUpdateKey::default()
    };
    let feature_updates = updates.iter().map(key).collect();
    let request = UpdateFeaturesRequest { feature_updates, validate_only, ..Default::default() };
    let answer: UpdateFeaturesResponse = bench.call(2, &request);
    (answer.error_code, answer.error_message.unwrap_or_default().to_string())
}

/// The levels in force, and which change of them this is.
fn told(bench: &Bench) -> (Vec<(String, i16)>, i64) {
    let request = ApiVersionsRequest {
        client_software_name: "a".into(),
        client_software_version: "1".into(),
    };
    let answer: ApiVersionsResponse = bench.call(4, &request);
    let levels = answer.finalized_features.iter();
    let levels = levels.map(|it| (it.name.to_string(), it.max_version_level)).collect();
    (levels, answer.finalized_features_epoch)
}

fn levels(group: i16, transaction: i16) -> Vec<(String, i16)> {
    let all =
        [("group.version".to_owned(), group), ("transaction.version".to_owned(), transaction)];
    all.into_iter().filter(|(_, level)| *level > 0).collect()
}

#[test]
fn levels_are_changed_told_and_kept() {
    let bench = Bench::new();
    assert_eq!(told(&bench), (levels(1, 2), 0));
    assert_eq!(update(&bench, true, &[("group.version", 0, SAFE)]).0, 0, "would be done");
    assert_eq!(told(&bench), (levels(1, 2), 0), "was not");
    assert_eq!(update(&bench, false, &[("group.version", 1, UPGRADE)]).0, 0);
    assert_eq!(told(&bench), (levels(1, 2), 0), "the same level is no change");
    let both = [("group.version", 0, SAFE), ("transaction.version", 1, UNSAFE)];
    assert_eq!(update(&bench, false, &both).0, 0);
    assert_eq!(told(&bench), (levels(0, 1), 1));
    let bench = bench.restart();
    assert_eq!(told(&bench), (levels(0, 1), 1));
    assert_eq!(update(&bench, false, &[("transaction.version", 2, UPGRADE)]).0, 0);
    assert_eq!(told(&bench), (levels(0, 2), 2));
}

/// As Kafka 4.3.1 answered the same requests.
#[test]
fn what_cannot_be_is_refused_whole_and_in_kafkas_words() {
    let bench = Bench::new();
    let downgrade = "Can't downgrade the version of this feature without setting the upgrade type \
                     to either safe or unsafe downgrade.";
    for (name, level, kind, reason) in [
        ("group.version", 5, UPGRADE, "Local controller 1 only supports versions 0-1"),
        ("transaction.version", 9, SAFE, "Local controller 1 only supports versions 0-2"),
        ("group.version", 0, UPGRADE, downgrade),
        ("group.version", 0, 0, "The controller does not support the given upgrade type."),
        ("group.version", 0, 7, "The controller does not support the given upgrade type."),
        ("group.version", -1, SAFE, "A feature version cannot be less than 0."),
        ("none.version", 1, UPGRADE, "Local controller 1 does not support this feature."),
        ("none.version", 0, UPGRADE, "Feature none.version not found."),
        ("", 0, UPGRADE, "Feature  not found."),
    ] {
        let good = ("transaction.version", 0, UNSAFE);
        let (code, text) = update(&bench, false, &[good, (name, level, kind)]);
        let wanted = format!(
            "The update failed for all features since the following feature had an error: Invalid \
             update version {level} for feature {name}. {reason}"
        );
        assert_eq!((code, text), (INVALID_UPDATE_VERSION, wanted));
    }
    assert_eq!(told(&bench), (levels(1, 2), 0), "nothing of them is done");
    assert_eq!(update(&bench, false, &[("share.version", 0, UPGRADE)]).0, 0, "it is off");
    let request = UpdateFeaturesRequest {
        feature_updates: vec![FeatureUpdateKey {
            feature: "group.version".into(),
            allow_downgrade: true,
            ..FeatureUpdateKey::default()
        }],
        ..UpdateFeaturesRequest::default()
    };
    let answer: UpdateFeaturesResponse = bench.call(0, &request);
    let results: Vec<_> = answer.results.iter().map(|it| (&*it.feature, it.error_code)).collect();
    assert_eq!((answer.error_code, results), (0, vec![("group.version", 0)]));
    assert_eq!(told(&bench).0, levels(0, 2));
}

#[test]
fn what_a_level_forbids_is_refused_until_it_is_raised() {
    let bench = Bench::new();
    let beat = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(Vec::new()),
        ..ConsumerGroupHeartbeatRequest::default()
    };
    let describe =
        ConsumerGroupDescribeRequest { group_ids: vec!["g".into()], ..Default::default() };
    let end = EndTxnRequest { transactional_id: "x".into(), ..EndTxnRequest::default() };
    let codes = || {
        let beat: ConsumerGroupHeartbeatResponse = bench.call(1, &beat);
        let described: ConsumerGroupDescribeResponse = bench.call(1, &describe);
        let (new, old): (EndTxnResponse, EndTxnResponse) =
            (bench.call(5, &end), bench.call(4, &end));
        let unsupported = |code: i16| code == UNSUPPORTED_VERSION;
        [beat.error_code, described.groups[0].error_code, new.error_code, old.error_code]
            .map(unsupported)
    };
    assert_eq!(codes(), [false; 4]);
    update(&bench, false, &[("group.version", 0, SAFE)]);
    assert_eq!(codes(), [true, true, false, false]);
    update(&bench, false, &[("group.version", 1, UPGRADE), ("transaction.version", 1, SAFE)]);
    assert_eq!(codes(), [false, false, true, false]);
    update(&bench, false, &[("transaction.version", 2, UPGRADE)]);
    assert_eq!(codes(), [false; 4]);
}
