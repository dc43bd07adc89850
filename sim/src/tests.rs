//! A thousand seeds, the same seed twice, faults that must be found, and seeds that once found one.

use std::ops::Range;
use std::thread;

use crate::case;
use crate::coverage::{Coverage, SEEDS_FOR_ALL};
use crate::plan::{Blow, BlowKind, Planted};
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

fn run(seed: u64, planted: Option<Planted>) -> (Coverage, Option<Violation>) {
    let Report { coverage, violation, .. } = Builder { seed, planted, ..Builder::default() }.run();
    (coverage, violation)
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
    let half = |first: usize| {
        let mut coverage = Coverage::default();
        for seed in seeds.clone().skip(first).step_by(2) {
            coverage.add(&keeps_every_promise(seed));
        }
        coverage
    };
    // A run is the same on whichever thread: two of them for the time that it takes.
    let coverage = thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        let mut coverage = half(0);
        coverage.add(&odd.join().expect("every promise kept"));
        coverage
    });
    println!("seeds {seeds:?}\n{coverage}");
    let missed = coverage.missed(count);
    assert!(missed.is_empty(), "never exercised: {missed:?}");
}

#[test]
fn what_enough_seeds_never_exercised_is_named() {
    let coverage = Coverage { steps: 1, ..Coverage::default() };
    let missed = coverage.missed(SEEDS_FOR_ALL);
    assert_eq!(missed.len(), coverage.counts().len() - 1);
    assert!(missed.contains(&"truncations") && missed.contains(&"unsynced writes torn"));
    assert!(coverage.missed(SEEDS_FOR_ALL - 1).is_empty(), "too few to say");
}

/// A calm run, with another leader from every one of its steps on, in each way that there is.
#[test]
fn a_leader_may_change_at_every_step() {
    let mut coverage = Coverage::default();
    let beyond = Blow { step: u64::MAX, kind: BlowKind::MoveLeader };
    let calm = Builder { seed: 4, blow: Some(beyond), ..Builder::default() }.run();
    assert_eq!(calm.violation, None);
    assert!(calm.coverage.acknowledged > 3, "{}", calm.coverage);
    for kind in BlowKind::ALL {
        for step in 0..calm.coverage.steps {
            let blow = Some(Blow { step, kind });
            let report = Builder { seed: 4, blow, ..Builder::default() }.run();
            assert_eq!(report.violation, None, "{kind:?} before step {step}");
            coverage.add(&report.coverage);
        }
    }
    let changes = [
        coverage.moves,
        coverage.process_crashes,
        coverage.power_losses,
        coverage.sessions_expired,
        coverage.leaders_removed,
    ];
    println!("{} steps\n{coverage}", calm.coverage.steps);
    let enough = calm.coverage.steps * 8 / 10;
    assert!(changes.iter().all(|count| *count >= enough), "{changes:?} of {enough}");
}

/// What a seed once found, mended since. A change to what runs draw makes them other runs; they stay all the same.
const SEEDS_THAT_FOUND_SOMETHING: [(u64, &str); 19] = [
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
    (360, "after a clean stop a transaction whose marker was not replicated yet counted as ended"),
    (
        575,
        "a segment that retention could not rename was left behind a gap: a start kept only that",
    ),
    (592, "committed by a leader that wrote nothing in its epoch, lost to a longer log in doubt"),
    (608, "what retention could not rename came back in front of a log that had begun anew"),
    (1929, "a follower that ended inside a batch of its leader asked for it again and again"),
    (
        53390,
        "records that a crash brought back were there without their epochs, and hid a divergence",
    ),
    (78696, "a growth sent again named the run of a member that had restarted with less since"),
    (
        68332,
        "the checker, not the replicas: a leader elected uncleanly began after its replicas had changed",
    ),
    (
        80590,
        "what retention could not rename was flushed no more: a power cut left it empty before a gap",
    ),
    (
        94554,
        "the checker, not the replicas: a record was forgotten before a leader committed it by an old claim",
    ),
    (95589, "who ended where an empty leader began was in sync with records that nobody compared"),
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

#[test]
fn leaving_before_the_new_replicas_are_in_sync_is_found() {
    is_found(Planted::LeavesBeforeInSync);
}

#[test]
fn acting_on_a_lower_minimum_before_it_is_written_is_found() {
    is_found(Planted::MinimumBelievedAtOnce);
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
