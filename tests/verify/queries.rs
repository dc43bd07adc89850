//! How operators find RocketMQ's messages again, and set back those who read them: RAD-11 to 14, 23, 29, 50, 51 with
//! stock members of two generations.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::hex::hex;
use duolog_tests::stock::{Client, Driver, mqadmin, turn};
use duolog_tests::topics::create_rocketmq_topic;
use duolog_tests::wait;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);
const GENERATIONS: [Client; 2] = [Client::Rocketmq550, Client::Rocketmq498];

fn admin(node: &Node, command: &str, arguments: &[&str]) -> String {
    mqadmin(&node.namesrv(), command, arguments).expect(command)
}

/// Does a line hold these words in this order?
fn has_row(text: &str, words: &[&str]) -> bool {
    text.lines().any(|line| {
        let mut rest = line.split_whitespace();
        words.iter().all(|word| rest.any(|other| other == *word))
    })
}

#[track_caller]
fn must_have(text: &str, words: &[&str]) {
    assert!(has_row(text, words), "no row {words:?} in:\n{text}");
}

fn start(folder: &tempfile::TempDir) -> Node {
    Launch::new(folder.path()).expect("ports").start().expect("a node")
}

/// Sends a message; the answer.
fn send(driver: &mut Driver, message: &str) -> Value {
    driver.tell(&format!("send id=p {message}")).expect("a send");
    let answers = driver.call("flush id=p").expect("a flush");
    let [answer] = <[Value; 1]>::try_from(answers).expect("one answer");
    assert_eq!(answer["status"], "SEND_OK", "{answer}");
    answer
}

#[test]
fn mqadmin_finds_messages_by_key_id_offset_and_trace() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = start(&folder);
    let namesrv = node.namesrv();
    create_rocketmq_topic(&node.broker(), &namesrv, "asked", 2).expect("a topic");
    for (place, client) in GENERATIONS.into_iter().enumerate() {
        let mut driver = Driver::start(client, &namesrv).expect("a driver");
        driver.call("producer id=p trace=true").expect("a producer");
        let group = format!("g_{}", client.name().replace('.', "_"));
        driver.call(&format!("join name=m group={group} topic=asked trace=true")).expect("joins");
        let keys = hex(format!("{group} Shared"));
        let sent =
            send(&mut driver, &format!("topic=asked queue=1 keys={keys} body={}", hex(&group)));
        let text = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
        let (id, offset_id) = (text("msgId"), text("offsetMsgId"));
        let place = place.to_string();
        for (key, is_found) in [(group.as_str(), true), ("Shared", true), ("shared", false)] {
            let told = admin(&node, "queryMsgByKey", &["-t", "asked", "-k", key]);
            assert_eq!(has_row(&told, &[&id, "1", &place]), is_found, "{key}:\n{told}");
        }
        let early = ["-t", "asked", "-k", "Shared", "-b", "0", "-e", "1000"];
        let told = admin(&node, "queryMsgByKey", &early);
        assert!(!told.contains(&id) && told.contains("CODE: 208"), "none was stored then:\n{told}");
        let told = admin(&node, "queryMsgByUniqueKey", &["-t", "asked", "-i", &id]);
        assert!(told.contains(&format!("UNIQ_KEY={id}")), "{told}");
        must_have(&told, &["Keys:", &format!("[{group}"), "Shared]"]);
        must_have(&told, &["Queue", "Offset:", &place]);
        let told = admin(&node, "queryMsgById", &["-t", "asked", "-i", &offset_id]);
        must_have(&told, &["OffsetID:", &offset_id]);
        let at = ["-t", "asked", "-b", "broker-a", "-i", "1", "-o", &place];
        must_have(&admin(&node, "queryMsgByOffset", &at), &["OffsetID:", &offset_id]);
        wait::until("the whole trace", LIMIT, || {
            let told = admin(&node, "queryMsgTraceById", &["-i", &id]);
            ensure!(has_row(&told, &["Pub", "producer_p", "success"]), "{told}");
            ensure!(has_row(&told, &["Sub", &group, "success"]), "{told}");
            Ok(())
        })
        .expect("a trace");
        let direct = ["-t", "asked", "-i", &id, "-g", &group, "-d"];
        let clients = admin(&node, "consumerConnection", &["-g", &group]);
        let client_id = clients.split_whitespace().find(|word| word.contains("@m"));
        let client_id = client_id.unwrap_or_else(|| panic!("no member in {clients}"));
        let before = driver.events().len();
        let told = admin(&node, "queryMsgByUniqueKey", &[&direct[..], &[client_id]].concat());
        assert!(told.contains("consumeResult=CR_SUCCESS"), "{told}");
        assert!(driver.events().len() > before, "it was consumed once more");
    }
}

/// How often each body came to each member.
fn counts(driver: &Driver) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for event in driver.events().iter().filter(|event| event["event"] == "record") {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        *counts.entry((text("member"), text("value"))).or_default() += 1;
    }
    counts
}

/// Bodies that members whose names begin so have had, with how often.
fn of_member(drivers: &[Driver], member: &str) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for ((name, body), count) in drivers.iter().flat_map(counts) {
        if name.starts_with(member) {
            *all.entry(body).or_default() += count;
        }
    }
    all
}

#[test]
fn positions_are_set_back_under_members_that_consume() {
    const MESSAGES: usize = 8;
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = start(&folder);
    let namesrv = node.namesrv();
    create_rocketmq_topic(&node.broker(), &namesrv, "again", 4).expect("a topic");
    let offsets = format!("-Drocketmq.client.localOffsetStoreDir={}", folder.path().display());
    let mut drivers = Vec::from(
        GENERATIONS.map(|client| Driver::start_with(client, &namesrv, &offsets).expect("a driver")),
    );
    for (place, driver) in drivers.iter_mut().enumerate() {
        let join = |name: &str| format!("join name={name}_{place} group=g_{name} topic=again");
        driver.call(&join("shared")).expect("joins");
        driver.call(&format!("{} model=broadcast", join("all"))).expect("joins");
    }
    wait::until("both have queues", LIMIT, || {
        for (place, driver) in drivers.iter_mut().enumerate() {
            ensure!(driver.assignment(&format!("shared_{place}"))?.len() == 2);
            ensure!(driver.assignment(&format!("all_{place}"))?.len() == 4);
        }
        Ok(())
    })
    .expect("they share");
    drivers[0].call("producer id=p").expect("a producer");
    for number in 0..MESSAGES {
        let (queue, body) = (number % 4, hex(number.to_string()));
        send(&mut drivers[0], &format!("topic=again queue={queue} body={body}"));
    }
    // Each member of the broadcast has had every message once, those of the other group share them.
    let come = |drivers: &[Driver], shared: usize| {
        wait::until("they come", LIMIT, || {
            let (of_shared, of_all) = (of_member(drivers, "shared"), of_member(drivers, "all"));
            let whole = of_shared.len() == MESSAGES && of_all.len() == MESSAGES;
            ensure!(whole && of_shared.values().all(|count| *count >= shared), "{of_shared:?}");
            ensure!(of_all.values().all(|count| *count == 2), "{of_all:?}");
            Ok(())
        })
        .expect("all of them");
    };
    come(&drivers, 1);
    has_positions(&node, "g_shared");
    let reset = ["-g", "g_shared", "-t", "again", "-s", "0"];
    let told = admin(&node, "resetOffsetByTime", &reset);
    must_have(&told, &["broker-a", "0", "0"]);
    come(&drivers, 2);
    has_positions(&node, "g_shared");
    is_cloned(&node, &mut drivers);
}

/// Has the group read all of the first messages, as the tool tells?
fn has_positions(node: &Node, group: &str) {
    wait::until("the positions are told", LIMIT, || {
        let told = admin(node, "consumerProgress", &["-g", group]);
        for queue in ["0", "1", "2", "3"] {
            ensure!(has_row(&told, &["again", "broker-a", queue, "2", "2"]), "{told}");
        }
        Ok(())
    })
    .expect("positions");
}

/// A group that is there takes the positions of another.
fn is_cloned(node: &Node, drivers: &mut [Driver]) {
    let clone = ["-s", "g_shared", "-d", "g_copy", "-t", "again", "-o", "true"];
    admin(node, "updateSubGroup", &["-c", "DefaultCluster", "-g", "g_copy"]);
    let told = admin(node, "cloneGroupOffset", &clone);
    assert!(!told.contains("Exception"), "{told}");
    has_positions(node, "g_copy");
    drivers[1].call("join name=copy group=g_copy topic=again").expect("joins");
    send(&mut drivers[0], &format!("topic=again queue=0 body={}", hex("new")));
    wait::until("the new one comes", LIMIT, || {
        let came = of_member(drivers, "copy");
        ensure!(came.contains_key(&hex("new")), "{came:?}");
        Ok(())
    })
    .expect("it comes");
    assert_eq!(of_member(drivers, "copy").len(), 1, "what the other group had does not come again");
}
