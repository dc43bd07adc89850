//! Transfers between accounts, through twenty crashes: every moment with every victim.

use duolog_tests::cluster::Launch;
use duolog_tests::show;
use duolog_tests::stock::turn;
use duolog_tests::transfers::{Bank, Crash, Moment, Victim};

const CRASHES: usize = 20;

#[test]
fn no_transfer_is_lost_doubled_or_seen_aborted_through_twenty_crashes() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let mut bank = Bank::open(Launch::new(folder.path()).expect("ports")).expect("a bank");
    let moments = [Moment::Marking, Moment::Ending, Moment::Adding, Moment::Anywhere];
    let pairs = [Victim::Node, Victim::Worker, Victim::Both]
        .into_iter()
        .flat_map(|victim| moments.map(|moment| (victim, moment)));
    for (number, (victim, moment)) in pairs.cycle().take(CRASHES).enumerate() {
        let crash = Crash { victim, moment, nth: 1 + number as u64 % 3 };
        bank.survive(crash).unwrap_or_else(|error| panic!("crash {number}, {crash:?}: {error:#}"));
    }
    let told = bank.close().expect("every transfer is made once");
    show(&told).expect("standard error");
}
