//! The quick cases of the behaviour suite: a stock client sees of a node what it saw of a real RocketMQ 5.5.0.

use duolog_tests::behaviour::{Settings, Verdicts, Wanted, known};
use duolog_tests::cluster::Launch;
use duolog_tests::stock::turn;

#[test]
fn the_quick_cases_have_the_verdicts_of_a_real_rocketmq() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Settings::Short.apply(Launch::new(folder.path()).expect("ports"));
    let node = launch.start().expect("a node");
    let recorded = Verdicts::recorded(Settings::Short).expect("recorded verdicts");
    let verdicts = Verdicts::of(&node.namesrv(), Settings::Short, &["--quick"]).expect("verdicts");
    let differences = verdicts.differences(&recorded, Wanted::Some);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(verdicts.count() >= 60, "{} cases", verdicts.count());
}

#[test]
fn what_differs_on_purpose_was_recorded() {
    let recorded = Verdicts::recorded(Settings::Short).expect("recorded verdicts");
    let stale = known::stale(|case, statement| recorded.says(case, statement));
    assert_eq!(stale, Vec::<String>::new());
}
