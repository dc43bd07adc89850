//! Transfers between accounts while node and worker are killed; `make verify` kills twenty times.

use duolog_tests::cluster::Launch;
use duolog_tests::show;
use duolog_tests::stock::turn;
use duolog_tests::transfers::{Bank, Crash, Moment, Victim};

/// KTX-01, KTX-03, KTX-04 as the readers of both protocols meet them.
#[test]
fn no_transfer_is_lost_doubled_or_seen_aborted_when_node_and_worker_are_killed() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let mut bank = Bank::open(Launch::new(folder.path()).expect("ports")).expect("a bank");
    for (victim, moment) in [(Victim::Node, Moment::Marking), (Victim::Both, Moment::Ending)] {
        bank.survive(Crash { victim, moment, nth: 2 }).expect("it goes on");
    }
    let told = bank.close().expect("every transfer is made once");
    show(&told).expect("standard error");
}
