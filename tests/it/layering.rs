//! Which crate may use which: coordinator and bridge stand side by side on log-core, broker joins them.

use std::collections::BTreeMap;
use std::process::Command;

/// Allowed dependencies among the workspace's own crates (design: a diamond with log-core as its ground).
const ALLOWED: [(&str, &[&str]); 6] = [
    ("duolog-log-core", &[]),
    ("duolog-sim", &["duolog-log-core"]),
    ("duolog-coordinator", &["duolog-log-core"]),
    ("duolog-bridge", &["duolog-log-core"]),
    // Only to print runs: `duolog sim`.
    ("duolog-broker", &["duolog-bridge", "duolog-coordinator", "duolog-log-core", "duolog-sim"]),
    ("duolog-tests", &["duolog-bridge", "duolog-broker", "duolog-coordinator", "duolog-log-core"]),
];

#[test]
fn crates_depend_only_downwards() {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let allowed: BTreeMap<_, _> = ALLOWED.into_iter().collect();
    let packages = metadata["packages"].as_array().expect("packages");
    assert_eq!(packages.len(), allowed.len(), "a crate was added: name its place in ALLOWED");
    for package in packages {
        let name = package["name"].as_str().expect("name");
        let allowed = allowed.get(name).unwrap_or_else(|| panic!("{name} has no place in ALLOWED"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let dependency = dependency["name"].as_str().expect("dependency name");
            assert!(
                !dependency.starts_with("duolog-") || allowed.contains(&dependency),
                "{name} must not depend on {dependency}"
            );
        }
    }
}
