//! Rows of the table in the module's head.

use std::sync::Arc;

use super::*;
use crate::group::testing::{offset_value, subscription};
use crate::record::{Family, FamilyValue, GroupValue, MemberValue};

const RETENTION_MS: i64 = 1_000;

/// A group that became what it is at 500 and has positions committed at 100 on `t` and `u`.
fn image(protocol_type: Option<&str>, members: &[&[&str]]) -> GroupImage {
    let mut image = GroupImage::default();
    for topic in ["t", "u"] {
        let positions = image.offsets.entry(topic.into()).or_default();
        positions.insert(0, offset_value(7, 100));
    }
    image.classic = protocol_type.map(|protocol_type| GroupValue {
        protocol_type: protocol_type.into(),
        generation: 1,
        protocol: Some("range".into()),
        leader: None,
        state_ms: 500,
        members: members
            .iter()
            .map(|topics| MemberValue { subscription: subscription(topics), ..Default::default() })
            .collect(),
    });
    image
}

/// What goes at `wall_ms`, in short.
fn gone(image: &GroupImage, state: GroupState, wall_ms: i64) -> Vec<String> {
    gone_beside(&PendingPositions::default(), image, state, wall_ms)
}

fn gone_beside(
    pending: &PendingPositions,
    image: &GroupImage,
    state: GroupState,
    wall_ms: i64,
) -> Vec<String> {
    let gone = expired(&"g".into(), image, state, pending, RETENTION_MS, wall_ms);
    assert!(!gone.more);
    gone.records
        .into_iter()
        .map(|record| match record {
            Record::Offset { topic, partition, value: None, .. } => format!("{topic}-{partition}"),
            Record::Group { value: None, .. } => "group".to_owned(),
            other => panic!("not a tombstone: {other:?}"),
        })
        .collect()
}

#[test]
fn rows() {
    use GroupState::{CompletingRebalance, Empty, PreparingRebalance, Stable};
    type Row<'a> = (&'a str, GroupImage, GroupState, i64, &'a [&'a str]);
    let both: &[&str] = &["t-0", "u-0"];
    let all: &[&str] = &["t-0", "u-0", "group"];
    let rows: [Row<'_>; 13] = [
        ("simple, young", image(None, &[]), Empty, 1_099, &[]),
        ("simple, old", image(None, &[]), Empty, 1_100, both),
        ("no type, old", image(Some(""), &[]), Empty, 1_100, all),
        ("empty, young", image(Some("consumer"), &[]), Empty, 1_499, &[]),
        ("empty, old", image(Some("consumer"), &[]), Empty, 1_500, all),
        ("connect, empty, old", image(Some("connect"), &[]), Empty, 1_500, all),
        ("stable, all wanted", image(Some("consumer"), &[&["t"], &["u"]]), Stable, 9_000, &[]),
        ("stable, one wanted", image(Some("consumer"), &[&["t"]]), Stable, 1_100, &["u-0"]),
        ("stable, young", image(Some("consumer"), &[&["t"]]), Stable, 1_099, &[]),
        ("connect, stable", image(Some("connect"), &[&[]]), Stable, 9_000, &[]),
        ("preparing", image(Some("consumer"), &[&["t"]]), PreparingRebalance, 9_000, &[]),
        ("completing", image(Some("consumer"), &[&["t"]]), CompletingRebalance, 9_000, &[]),
        ("simple group that is joined", image(None, &[]), PreparingRebalance, 1_100, both),
    ];
    for (what, image, state, wall_ms, expected) in rows {
        assert_eq!(gone(&image, state, wall_ms), expected, "{what}");
    }
}

#[test]
fn without_a_known_time_of_becoming_empty_the_commit_counts() {
    let mut image = image(Some("consumer"), &[]);
    image.classic.as_mut().expect("classic").state_ms = -1;
    assert_eq!(gone(&image, GroupState::Empty, 1_099), [""; 0]);
    assert_eq!(gone(&image, GroupState::Empty, 1_100), ["t-0", "u-0", "group"]);
}

#[test]
fn a_subscription_that_cannot_be_read_spares_all() {
    let mut image = image(Some("consumer"), &[&["t"]]);
    let member = &mut image.classic.as_mut().expect("classic").members[0];
    for broken in [&b""[..], b"\0", b"\0\x01\x7f\xff\xff\xff", b"\0\x01\0\0\0\x01\0\x05t"] {
        member.subscription = bytes::Bytes::copy_from_slice(broken);
        let image = image_with(member.clone());
        assert_eq!(gone(&image, GroupState::Stable, 9_000), [""; 0]);
        assert!(is_subscribed(&image, &"anything".into()));
    }
    fn image_with(member: MemberValue) -> GroupImage {
        let mut image = super::tests::image(Some("consumer"), &[]);
        image.classic.as_mut().expect("classic").members = vec![member];
        image
    }
}

#[test]
fn an_expiry_time_of_its_own_counts_where_positions_expire_at_all() {
    let mut image = image(None, &[]);
    let own = |image: &mut GroupImage| {
        let topic: Arc<str> = "t".into();
        let positions = image.offsets.get_mut(&topic).expect("topic");
        positions.get_mut(&0).expect("position").expire_ms = Some(300);
    };
    own(&mut image);
    assert_eq!(gone(&image, GroupState::Empty, 299), [""; 0]);
    assert_eq!(gone(&image, GroupState::Empty, 300), ["t-0"]);
    let mut wanted = super::tests::image(Some("consumer"), &[&["t", "u"]]);
    own(&mut wanted);
    assert_eq!(gone(&wanted, GroupState::Stable, 300), [""; 0], "members want it");
}

#[test]
fn an_empty_group_without_positions_goes_at_once_rocketmq_groups_never() {
    let mut image = image(Some("consumer"), &[]);
    image.offsets.clear();
    assert_eq!(gone(&image, GroupState::Empty, 501), ["group"]);
    assert_eq!(gone(&image, GroupState::PreparingRebalance, 9_000), [""; 0]);
    let mut image = super::tests::image(None, &[]);
    image.family = Some(FamilyValue { family: Family::RocketMq, since_ms: 0 });
    assert_eq!(gone(&image, GroupState::Empty, i64::MAX), [""; 0]);
}

/// KCO-08, with positions in transactions.
#[test]
fn a_position_that_a_transaction_would_replace_stays_and_keeps_its_group() {
    let mut pending = PendingPositions::default();
    let group: GroupId = "g".into();
    let record = Record::Offset {
        group: group.clone(),
        topic: "t".into(),
        partition: 0,
        value: Some(offset_value(8, 100)),
    };
    pending.keep(1, record, duolog_log_core::ids::Offset(0));
    let mut image = image(Some("consumer"), &[]);
    assert_eq!(gone_beside(&pending, &image, GroupState::Empty, 9_000), ["u-0"]);
    image.offsets.clear();
    assert_eq!(gone_beside(&pending, &image, GroupState::Empty, 9_000), [""; 0]);
    pending.end(1, duolog_log_core::record::TransactionOutcome::Abort);
    assert_eq!(gone_beside(&pending, &image, GroupState::Empty, 9_000), ["group"]);
}

#[test]
fn a_step_is_bounded() {
    let mut image = GroupImage::default();
    let positions = image.offsets.entry("t".into()).or_default();
    for partition in 0..=TOMBSTONES_MAX as i32 {
        positions.insert(partition, offset_value(1, 0));
    }
    let (state, none) = (GroupState::Empty, PendingPositions::default());
    let first = expired(&"g".into(), &image, state, &none, RETENTION_MS, 5_000);
    assert_eq!((first.records.len(), first.more), (TOMBSTONES_MAX, true));
}
