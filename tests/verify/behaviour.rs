//! All cases of the behaviour suite, at short and at RocketMQ's own timings.

use duolog_tests::behaviour::{Settings, Verdicts, Wanted};
use duolog_tests::cluster::Launch;
use duolog_tests::stock::turn;

fn all(settings: Settings) {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = settings.apply(Launch::new(folder.path()).expect("ports"));
    let node = launch.start().expect("a node");
    let recorded = Verdicts::recorded(settings).expect("recorded verdicts");
    let verdicts = Verdicts::of(&node.namesrv(), settings, &[]).expect("verdicts");
    let differences = verdicts.differences(&recorded, Wanted::All);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn every_case_has_the_verdict_of_a_real_rocketmq() {
    all(Settings::Short);
}
