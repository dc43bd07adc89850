//! Transactions that hang are found and ended by hand; `make verify` runs the same on a real Kafka.

use duolog_tests::hanging;
use duolog_tests::stock::workspace;

use super::stage;

/// KTX-03, KCL-01: the tool prints what it prints of a real Kafka.
#[test]
fn hanging_transactions_are_found_and_ended_as_on_a_real_kafka() {
    let settings = hanging::SETTINGS;
    let stage =
        stage(|launch| settings.iter().fold(launch, |launch, (key, value)| launch.set(key, value)));
    let told = hanging::script(&stage.node.kafka()).expect("the script");
    let golden = std::fs::read_to_string(workspace().join(hanging::GOLDEN)).expect("a golden file");
    assert!(told == golden, "{}", hanging::difference(&golden, &told));
}
