//! Rows "members, event, notices, members" of a RocketMQ consumer group, through the runtime.

use std::sync::Arc;

use crate::group::event::*;
use crate::group::response::*;
use crate::group::testing::*;

/// Client ids and topics, as the members' view has them.
fn view(bench: &mut Bench) -> Option<(Vec<String>, Vec<String>)> {
    let Ok(Response::ConsumerGroup(view)) = bench.ask(Event::ConsumerGroup("g".into())) else {
        panic!("a view or none");
    };
    view.map(|view| {
        let ids = view.members.iter().map(|member| member.client.id.to_string()).collect();
        (ids, view.subscriptions.keys().map(ToString::to_string).collect())
    })
}

/// The notices since the last look, in short.
fn notices(bench: &mut Bench) -> Vec<String> {
    std::mem::take(&mut bench.notices)
        .into_iter()
        .map(|notice| match notice {
            Notice::ConsumerGroup { view: None, .. } => "gone".to_owned(),
            Notice::ConsumerGroup { view: Some(view), .. } => {
                format!("{} members, {} topics", view.members.len(), view.subscriptions.len())
            }
            Notice::MembersChanged { channels, .. } => {
                let channels: Vec<_> = channels.iter().map(|channel| channel.0).collect();
                format!("tell {channels:?}")
            }
            Notice::ChannelExpired(channel) => format!("close {}", channel.0),
        })
        .collect()
}

fn heartbeat(bench: &mut Bench, heartbeat: ConsumerHeartbeat) -> GroupChange {
    match bench.ask(beat(heartbeat)) {
        Ok(Response::ConsumerHeartbeat(change)) => change,
        other => panic!("{other:?}"),
    }
}

fn leave(bench: &mut Bench, id: &str) {
    let notices = MemberNotices::On;
    let leave = ConsumerLeave { group: "g".into(), client: id.into(), notices };
    bench.ask(Event::ConsumerLeave(leave)).expect("left");
}

const NOTHING: GroupChange = GroupChange { members: false, subscriptions: false };
const BOTH: GroupChange = GroupChange { members: true, subscriptions: true };

#[test]
fn every_node_sees_one_list_sorted_by_client_id_and_all_are_told_of_changes() {
    let mut bench = Bench::new();
    assert_eq!(view(&mut bench), None);
    assert_eq!(heartbeat(&mut bench, consumer("b@1", 2, &["t", "%RETRY%g"])), BOTH);
    assert_eq!(notices(&mut bench), ["1 members, 2 topics", "tell [2]"]);
    let only_members = GroupChange { members: true, subscriptions: false };
    assert_eq!(heartbeat(&mut bench, consumer("a@1", 1, &["t", "%RETRY%g"])), only_members);
    assert_eq!(notices(&mut bench), ["2 members, 2 topics", "tell [1, 2]"]);
    assert_eq!(heartbeat(&mut bench, consumer("a@1", 1, &["t", "%RETRY%g"])), NOTHING);
    assert_eq!(notices(&mut bench), [""; 0], "a renewal is no news");
    let (ids, topics) = view(&mut bench).expect("live");
    assert_eq!(ids, ["a@1", "b@1"]);
    assert_eq!(topics, ["%RETRY%g", "t"]);
    leave(&mut bench, "b@1");
    assert_eq!(notices(&mut bench), ["1 members, 2 topics", "tell [1]"]);
    leave(&mut bench, "b@1");
    assert_eq!(notices(&mut bench), [""; 0], "not a member");
}

#[test]
fn a_client_on_a_new_connection_is_one_member_and_outlives_the_old_connection() {
    let mut bench = Bench::new();
    heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    assert!(heartbeat(&mut bench, consumer("a@1", 5, &["t"])).members);
    assert_eq!(view(&mut bench).expect("live").0, ["a@1"]);
    notices(&mut bench);
    bench.notify(Event::ChannelClosed(ChannelId(1)));
    assert_eq!(notices(&mut bench), [""; 0]);
    assert_eq!(view(&mut bench).expect("live").0, ["a@1"]);
    bench.notify(Event::ChannelClosed(ChannelId(5)));
    assert_eq!(view(&mut bench), None);
    bench.notify(Event::ChannelClosed(ChannelId(5)));
}

#[test]
fn a_closed_connection_takes_all_its_clients_out_of_all_their_groups() {
    let mut bench = Bench::new();
    heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    heartbeat(&mut bench, consumer("b@1", 1, &["t"]));
    heartbeat(&mut bench, consumer("c@1", 2, &["t"]));
    let mut other = consumer("a@1", 1, &["t"]);
    other.group = "h".into();
    heartbeat(&mut bench, other);
    notices(&mut bench);
    bench.notify(Event::ChannelClosed(ChannelId(1)));
    assert_eq!(notices(&mut bench), ["1 members, 1 topics", "tell [2]", "0 members, 1 topics"]);
    assert_eq!(view(&mut bench).expect("live").0, ["c@1"]);
}

#[test]
fn a_client_that_leaves_a_shared_connection_does_not_hide_the_others_from_its_closing() {
    let mut bench = Bench::new();
    heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    heartbeat(&mut bench, consumer("b@1", 1, &["t"]));
    leave(&mut bench, "a@1");
    bench.notify(Event::ChannelClosed(ChannelId(1)));
    assert_eq!(view(&mut bench), None);
}

#[test]
fn silence_for_two_minutes_ends_a_membership_closes_the_connection_and_is_told() {
    let mut bench = Bench::new();
    heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    bench.pass(60_000);
    heartbeat(&mut bench, consumer("b@1", 2, &["t"]));
    bench.pass(59_999);
    notices(&mut bench);
    assert_eq!(view(&mut bench).expect("live").0, ["a@1", "b@1"]);
    bench.pass(1);
    assert_eq!(notices(&mut bench), ["1 members, 1 topics", "tell [2]", "close 1"]);
    heartbeat(&mut bench, consumer("b@1", 2, &["t"]));
    bench.pass(119_999);
    assert_eq!(view(&mut bench).expect("renewed").0, ["b@1"]);
    bench.pass(1);
    assert_eq!(view(&mut bench), None);
}

#[test]
fn subscriptions_are_kept_for_ten_minutes_after_the_last_member() {
    let mut bench = Bench::new();
    heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    leave(&mut bench, "a@1");
    assert_eq!(notices(&mut bench).last().map(String::as_str), Some("0 members, 1 topics"));
    bench.pass(599_999);
    assert_eq!(notices(&mut bench), [""; 0]);
    bench.pass(1);
    assert_eq!(notices(&mut bench), ["gone"]);
    heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    leave(&mut bench, "a@1");
    bench.pass(300_000);
    let back = heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    assert_eq!(back, GroupChange { members: true, subscriptions: false }, "it was kept");
    for _ in 0..10 {
        bench.pass(100_000);
        heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    }
    assert_eq!(view(&mut bench).expect("live").1, ["t"]);
}

#[test]
fn topics_come_and_go_with_a_word_and_newer_expressions_replace_older_ones_without() {
    let with = |version, expression: &str, topics: &[&str]| {
        let mut heartbeat = consumer("a@1", 1, topics);
        for subscription in heartbeat.subscriptions.iter_mut().flatten() {
            let subscription = Arc::make_mut(subscription);
            subscription.version = version;
            subscription.expression = expression.to_owned();
        }
        heartbeat
    };
    // Version, expression, topics; change; expression kept for t; members told.
    type Row = (i64, &'static str, &'static [&'static str], bool, &'static str, bool);
    let rows: [Row; 6] = [
        (5, "A", &["t"], true, "A", true),
        (5, "B", &["t"], false, "A", false),
        (4, "B", &["t"], false, "A", false),
        (6, "B", &["t"], true, "B", false),
        (6, "B", &["t", "u"], true, "B", true),
        (6, "B", &["t"], true, "B", true),
    ];
    let mut bench = Bench::new();
    for (version, expression, topics, changed, kept, told) in rows {
        let change = heartbeat(&mut bench, with(version, expression, topics));
        assert_eq!(change.subscriptions, changed, "{version} {expression} {topics:?}");
        let notices = std::mem::take(&mut bench.notices);
        let tells = |notice: &Notice| matches!(notice, Notice::MembersChanged { .. });
        assert_eq!(notices.iter().any(tells), told, "{version} {expression} {topics:?}");
        let publishes = |notice: &Notice| matches!(notice, Notice::ConsumerGroup { .. });
        assert_eq!(notices.iter().any(publishes), changed);
        let Ok(Response::ConsumerGroup(Some(view))) = bench.ask(Event::ConsumerGroup("g".into()))
        else {
            panic!("live");
        };
        assert_eq!(view.subscriptions["t"].expression, kept);
    }
    let mut without = consumer("a@1", 1, &[]);
    without.subscriptions = None;
    assert_eq!(heartbeat(&mut bench, without), NOTHING, "heartbeat v2 leaves them alone");
    assert_eq!(view(&mut bench).expect("live").1, ["t"]);
}

#[test]
fn members_of_quiet_and_broadcast_groups_are_not_told() {
    for (notices_wanted, model) in [
        (MemberNotices::Off, MessageModel::Clustering),
        (MemberNotices::On, MessageModel::Broadcasting),
    ] {
        let mut bench = Bench::new();
        for (id, channel) in [("a@1", 1), ("b@1", 2)] {
            let mut consumer = consumer(id, channel, &["t"]);
            consumer.notices = notices_wanted;
            consumer.message_model = model;
            heartbeat(&mut bench, consumer);
        }
        bench.notify(Event::ChannelClosed(ChannelId(1)));
        assert!(notices(&mut bench).iter().all(|notice| notice.ends_with("topics")));
    }
}

#[test]
fn the_latest_heartbeat_speaks_for_the_group() {
    let mut bench = Bench::new();
    heartbeat(&mut bench, consumer("a@1", 1, &["t"]));
    notices(&mut bench);
    let mut pulls = consumer("a@1", 1, &["t"]);
    pulls.consume_type = ConsumeType::Actively;
    assert_eq!(heartbeat(&mut bench, pulls), NOTHING);
    assert_eq!(notices(&mut bench), ["1 members, 1 topics"], "published, not told");
    let answer = bench.ask(Event::ConsumerGroup("g".into()));
    let Ok(Response::ConsumerGroup(Some(view))) = answer else { panic!("live") };
    assert_eq!(view.consume_type, ConsumeType::Actively);
    assert_eq!(view.members[0].last_heartbeat_ms, bench.now.wall_ms);
}

#[test]
fn a_group_needs_a_name() {
    let mut nameless = consumer("a@1", 1, &["t"]);
    nameless.group = "".into();
    let refused = Bench::new().ask(beat(nameless));
    assert_eq!(refused, Err(crate::error::GroupError::InvalidGroupId));
}

#[test]
fn a_full_group_takes_no_further_client_and_keeps_those_it_has() {
    use crate::error::GroupError;
    use crate::limits::ROCKETMQ_MEMBERS_MAX;
    let mut bench = Bench::new();
    for number in 0..ROCKETMQ_MEMBERS_MAX {
        heartbeat(&mut bench, consumer(&format!("c{number}"), 1, &["t"]));
        bench.notices.clear();
    }
    let refused = bench.ask(beat(consumer("one more", 1, &["t"])));
    assert!(matches!(refused, Err(GroupError::GroupMaxSizeReached)), "{refused:?}");
    assert_eq!(heartbeat(&mut bench, consumer("c7", 1, &["t"])), NOTHING);
    leave(&mut bench, "c7");
    assert!(heartbeat(&mut bench, consumer("one more", 1, &["t"])).members);
}
