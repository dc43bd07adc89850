//! The codec's table of Kafka messages against the schemas inside the stock client's jar.

use std::fs;
use std::path::Path;
use std::process::Command;

use duolog_tests::stock;

#[test]
fn the_message_table_agrees_with_the_clients_jar() {
    let class_path = stock::interop().join("kafka-4.3.1/classpath.txt");
    let class_path = fs::read_to_string(class_path).expect("a class path");
    let jar = class_path.trim().split(':').find(|jar| jar.ends_with("kafka-clients-4.3.1.jar"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/kafka-codec/check_schema.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(jar.expect("the client's jar"))
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.trim(), "schema.txt agrees with the jar");
}
