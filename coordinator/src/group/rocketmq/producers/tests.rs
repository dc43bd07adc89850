use crate::group::event::*;
use crate::group::response::*;
use crate::group::testing::*;

fn beat(bench: &mut Bench, group: &str, id: &str, channel: u64) {
    let heartbeat = ProducerHeartbeat { group: group.into(), client: client(id, channel) };
    bench.ask(Event::ProducerHeartbeat(heartbeat)).expect("live");
}

fn members(bench: &mut Bench, group: &str) -> Vec<String> {
    match bench.ask(Event::ProducerGroup(group.into())) {
        Ok(Response::ProducerGroup(members)) => {
            members.into_iter().map(|member| member.client.id.to_string()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn producers_come_by_heartbeat_and_go_by_leaving_closing_and_silence() {
    let mut bench = Bench::new();
    assert_eq!(members(&mut bench, "p"), [""; 0]);
    for (id, channel) in [("d@1", 4), ("c@1", 3), ("b@1", 2), ("a@1", 1)] {
        beat(&mut bench, "p", id, channel);
    }
    beat(&mut bench, "q", "b@1", 2);
    assert_eq!(members(&mut bench, "p"), ["a@1", "b@1", "c@1", "d@1"]);
    let leave = ProducerLeave { group: "p".into(), client: "a@1".into() };
    bench.ask(Event::ProducerLeave(leave)).expect("left");
    bench.notify(Event::ChannelClosed(ChannelId(2)));
    assert_eq!(members(&mut bench, "p"), ["c@1", "d@1"]);
    assert_eq!(members(&mut bench, "q"), [""; 0]);
    bench.pass(60_000);
    beat(&mut bench, "p", "c@1", 3);
    bench.pass(60_000);
    assert_eq!(members(&mut bench, "p"), ["c@1"]);
    assert_eq!(bench.notices, [Notice::ChannelExpired(ChannelId(4))]);
    bench.pass(60_000);
    assert_eq!(members(&mut bench, "p"), [""; 0]);
    beat(&mut bench, "p", "c@1", 3);
    bench.pass(119_999);
    assert_eq!(members(&mut bench, "p"), ["c@1"]);
    bench.pass(1);
    assert_eq!(members(&mut bench, "p"), [""; 0], "the timer runs again");
}

#[test]
fn producer_groups_leave_no_record_and_are_no_consumer_groups() {
    let mut bench = Bench::new();
    beat(&mut bench, "p", "a@1", 1);
    assert!(bench.log.is_empty());
    assert_eq!(bench.listed(&[], &[]), [""; 0]);
    let leave = ProducerLeave { group: "nobody".into(), client: "a@1".into() };
    assert_eq!(bench.ask(Event::ProducerLeave(leave)), Ok(Response::Done));
}
