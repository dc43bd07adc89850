//! All kinds of RocketMQ's messages through two kills; twenty seeds of it are in `tests/verify`.

use duolog_tests::mixed;
use duolog_tests::show;
use duolog_tests::stock::turn;

#[test]
fn every_kind_of_message_lives_through_kills() {
    let _turn = turn();
    let told = mixed::survive(0, 2).expect("every promise is kept");
    show(&told).expect("standard error");
}
