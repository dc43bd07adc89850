//! RMT: requests that wait for a reply, from one stock client version to another.

use std::time::Duration;

use anyhow::ensure;
use duolog_tests::cluster::Launch;
use duolog_tests::stock::{Client, Driver, turn};
use duolog_tests::topics::create_rocketmq_topic;
use duolog_tests::wait;

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn a_request_is_answered_by_a_client_of_another_version() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let namesrv = node.namesrv();
    let mut new = Driver::start(Client::Rocketmq550, &namesrv).expect("a driver");
    let mut old = Driver::start(Client::Rocketmq498, &namesrv).expect("a driver");
    for (place, topic) in ["to_old", "to_new"].into_iter().enumerate() {
        create_rocketmq_topic(&node.broker(), &namesrv, topic, 1).expect("a topic");
        let (requester, replier) =
            if place == 0 { (&mut new, &mut old) } else { (&mut old, &mut new) };
        requester.call("producer id=asking").expect("a producer");
        replier.call("producer id=replying").expect("a producer");
        let join = format!("join name=m group=g_{topic} topic={topic} reply=replying");
        replier.call(&join).expect("a member");
        for body in ["00ff", "61"] {
            let request = format!("request id=asking topic={topic} body={body}");
            let lines = requester.call(&request).expect("a reply");
            let reply = lines.first().expect("one line");
            assert_eq!(reply["body"], body, "{reply}");
            assert_eq!(reply["topic"], "DefaultCluster_REPLY_TOPIC");
            assert!(reply["properties"]["PUSH_REPLY_TIME"].is_string(), "{reply}");
        }
        // Both replies were told to be stored, each behind the one before.
        wait::until("the replies are stored", LIMIT, || {
            let events = replier.events();
            let replies: Vec<_> = events.iter().filter(|event| event["event"] == "reply").collect();
            ensure!(replies.len() == 2, "{replies:?}");
            let first = replies.iter().filter_map(|reply| reply["offset"].as_i64()).min();
            let offset = i64::try_from(place)? * 2;
            ensure!(first == Some(offset), "{replies:?}");
            ensure!(replies.iter().all(|reply| reply["status"] == "SEND_OK"), "{replies:?}");
            Ok(())
        })
        .expect("stored");
        replier.call("leave name=m").expect("the member leaves");
        requester.call("close id=asking").expect("the producer closes");
        replier.call("close id=replying").expect("the producer closes");
    }
}
