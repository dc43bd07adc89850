//! A thousand seeds, the same seed twice, faults that must be found, and seeds that once found one.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::case;
use crate::coverage::Coverage;
use crate::plan::Planted;
use crate::run::{Builder, Report, Violation};
use crate::trace::Recording;

/// Each planted fault is found within so many seeds.
const SEEDS_TO_FIND_A_FAULT: u64 = 200;

/// `DUOLOG_SIM_SEEDS=FROM..TO`, or the first thousand.
fn seeds() -> Range<u64> {
    let Ok(given) = std::env::var("DUOLOG_SIM_SEEDS") else { return 0..1_000 };
    let (from, to) = given.split_once("..").expect("DUOLOG_SIM_SEEDS=FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// Runs `seed`; an assertion of the core that fails is told like a broken promise.
fn run(seed: u64, planted: Option<Planted>) -> (Coverage, Option<Violation>) {
    let builder = Builder { seed, planted, recording: Recording::Off };
    match catch_unwind(AssertUnwindSafe(|| builder.run())) {
        Ok(Report { coverage, violation, .. }) => (coverage, violation),
        Err(_) => (Coverage::default(), Some(Violation::Broken("a core asserted".to_owned()))),
    }
}

fn keeps_every_promise(seed: u64) -> Coverage {
    let (coverage, violation) = run(seed, None);
    if let Some(violation) = violation {
        panic!("seed {seed}: {violation}\nreplay it with: duolog sim replay {seed}");
    }
    coverage
}

#[test]
fn a_thousand_seeds_keep_every_promise() {
    let seeds = seeds();
    let count = seeds.end.saturating_sub(seeds.start);
    let mut coverage = Coverage::default();
    for seed in seeds.clone() {
        coverage.add(&keeps_every_promise(seed));
    }
    println!("seeds {seeds:?}\n{coverage}");
    let missed: Vec<_> = coverage.counts().into_iter().filter(|(_, count)| *count == 0).collect();
    assert!(count < 1_000 || missed.is_empty(), "never exercised: {missed:?}");
}

/// What a seed once found, mended since. A change to what runs draw makes them other runs; they stay all the same.
const SEEDS_THAT_FOUND_SOMETHING: [(u64, &str); 8] = [
    (2, "records below the leader's start that nobody committed answered a repeated send"),
    (13, "a roll that fails half way leaves a segment that hides synced records at the next start"),
    (14, "a truncation that fails half way leaves later segments behind a gap"),
    (60, "names made before a process died were not synced by the flush after its restart"),
    (
        358,
        "a power cut forgets a truncation but not the append after it: old batches behind new ones",
    ),
    (595, "the same, and the mixed log had the highest epoch and was elected"),
    (
        685,
        "below the HW of a leader that was superseded uncleanly lie records that nobody else has",
    ),
    (1928, "a follower of records older than the leader's first epoch begins anew for ever"),
];

#[test]
fn seeds_that_once_found_a_fault_find_none() {
    for (seed, found) in SEEDS_THAT_FOUND_SOMETHING {
        let violation = run(seed, None).1;
        assert_eq!(violation, None, "seed {seed}, which found: {found}");
    }
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    for seed in [0, 1, 2, 77, 500] {
        let first = Builder { seed, ..Builder::default() }.run();
        let again = Builder { seed, recording: Recording::On, ..Builder::default() }.run();
        assert_eq!(first.trace_hash, again.trace_hash, "seed {seed}");
        assert_eq!(first.coverage, again.coverage, "seed {seed}");
        assert!(!again.lines.is_empty(), "a recorded run has its events");
        let other = Builder { seed: seed + 1, ..Builder::default() }.run();
        assert_ne!(first.trace_hash, other.trace_hash, "seed {seed} and the next");
    }
}

/// Found is a promise that was broken; replicas that do not get well would be too little.
fn is_found(planted: Planted) {
    let breaks = |seed: &u64| matches!(run(*seed, Some(planted)).1, Some(Violation::Broken(_)));
    let found = (0..SEEDS_TO_FIND_A_FAULT).find(breaks);
    let name = planted.name();
    assert!(found.is_some(), "{name} was not found within {SEEDS_TO_FIND_A_FAULT} seeds");
}

#[test]
fn truncating_to_the_high_watermark_is_found() {
    is_found(Planted::TruncateToHighWatermark);
}

#[test]
fn advancing_over_a_shrink_before_it_is_committed_is_found() {
    is_found(Planted::ShrinkBelievedAtOnce);
}

#[test]
fn acknowledging_after_a_newer_epoch_is_found() {
    is_found(Planted::AcknowledgeAfterNewerEpoch);
}

#[test]
fn counting_a_replica_before_its_growth_is_confirmed_is_found() {
    is_found(Planted::GrowthBelievedAtOnce);
}

#[test]
fn forgetting_the_epochs_after_a_crash_is_found() {
    is_found(Planted::EpochsForgottenAfterCrash);
}

/// KRE-05 to KRE-07, and what KIP-101 mends.
#[test]
fn the_course_example_loses_what_it_should_and_nothing_else() {
    let scenes = case::hw_truncation();
    let lost: Vec<_> = scenes.iter().map(case::Scene::lost).collect();
    assert_eq!(lost, [vec![5, 6, 7], vec![], vec![5, 6, 7], vec![]]);
    for scene in &scenes {
        assert_eq!(scene.acknowledged.len(), 8, "{}: all are acknowledged in the end", scene.title);
        assert!(scene.kept.starts_with(&[1, 2, 3, 4]), "{}: {:?}", scene.title, scene.kept);
    }
    let broken: Vec<_> = scenes.iter().map(|scene| scene.violation.is_some()).collect();
    assert_eq!(broken, [false, false, true, false], "acks=1 promises nothing; the third is a bug");
}
