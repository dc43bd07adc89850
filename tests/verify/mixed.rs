//! All kinds of RocketMQ's messages through kill -9 at random, in twenty runs.

use duolog_tests::mixed;
use duolog_tests::show;
use duolog_tests::stock::turn;

const SEEDS: u64 = 20;
const KILLS: usize = 3;

#[test]
fn every_kind_of_message_lives_through_kills_in_twenty_seeds() {
    let _turn = turn();
    for seed in 1..=SEEDS {
        let told = mixed::survive(seed, KILLS);
        let told = told.unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        show(&told).expect("standard error");
    }
}
