//! Valid frames, records and files of the peers, spoilt: no decoder and no recovery panics, and none takes more
//! memory than what it was given explains.
//!
//! `DUOLOG_FUZZ_SEED` and `DUOLOG_FUZZ_CASES` (of each kind) choose the run; what fails says both, and the
//! seed alone repeats it. A binary of its own, since its allocator counts for the whole process.

mod logs;
mod records;
mod remoting;
mod requests;
mod spoil;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use duolog_tests::seed::Seeded;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// One test at a time, so that the memory counted is its own.
static TURN: Mutex<()> = Mutex::new(());

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: not a number")))
}

/// The cases of one kind; says where it was when one of them panics.
struct Run {
    kind: &'static str,
    seed: u64,
    cases: u64,
    case: u64,
    _turn: MutexGuard<'static, ()>,
}

impl Run {
    /// `cases` unless the environment says how many. To be the first thing in a test: what is made while another one
    /// has its turn counts as that one's memory.
    fn of(kind: &'static str, cases: u64) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let seed = number("DUOLOG_FUZZ_SEED", 1);
        Self { kind, seed, cases: number("DUOLOG_FUZZ_CASES", cases), case: 0, _turn: turn }
    }

    /// The random numbers of the next case.
    fn next(&mut self) -> Option<Seeded> {
        if self.case == self.cases {
            return None;
        }
        self.case += 1;
        let mut random = Seeded::new(self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(self.case));
        random.bits();
        Some(random)
    }

    /// Does `work` on `given` bytes and holds it to `each` bytes of memory for each of them, and `at_most` more.
    fn bounded<T>(&self, given: usize, each: usize, at_most: usize, work: impl FnOnce() -> T) -> T {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let done = work();
        let taken = MEMORY.peak_usage().saturating_sub(before);
        let bound = given * each + at_most;
        assert!(taken <= bound, "{given} bytes took {taken} bytes of memory, expected {bound}");
        done
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { kind, seed, case, .. } = self;
            eprintln!("{kind}: DUOLOG_FUZZ_SEED={seed} DUOLOG_FUZZ_CASES={case} ends here");
        }
    }
}

/// A folder of golden files.
fn golden(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(folder)
}

/// Every run of hexadecimal digits in a text that may be bytes.
fn hex_words(text: &str) -> Vec<Vec<u8>> {
    let words = text.split(|character: char| character.is_whitespace());
    let is_hex = |word: &&str| {
        word.len() >= 8
            && word.len().is_multiple_of(2)
            && word.bytes().all(|it| it.is_ascii_hexdigit())
    };
    words.filter(is_hex).map(duolog_tests::differential::wire::bytes_of_hex).collect()
}
