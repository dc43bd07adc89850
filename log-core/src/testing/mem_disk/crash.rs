//! What is left after a power cut.

use super::state::{ContentChange, Inode, Names, State};

/// What a power cut does to what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// All of it is lost.
    ForgetUnsynced,
    /// Each write is kept, lost or torn, and the names of each folder up to some change, as the
    /// seed decides. A lost write before a kept one leaves zeros, as file systems do.
    Seeded(u64),
}

/// What a power cut did to the changes of contents that were not synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrashLosses {
    /// Of these nothing is left.
    pub lost: u64,
    /// Of these writes the first part is left.
    pub torn: u64,
}

/// The disk as the next start finds it.
pub(super) fn survivor(state: &State, how: Crash, losses: &mut CrashLosses) -> State {
    let mut next = state.clone_for_next_process();
    let mut seed = match how {
        Crash::ForgetUnsynced => None,
        Crash::Seeded(seed) => Some(Random(seed)),
    };
    for names in next.dirs.values_mut() {
        *names = surviving_names(names, seed.as_mut());
    }
    for inode in next.inodes.values_mut() {
        *inode = surviving_content(inode, seed.as_mut(), losses);
    }
    next.drop_unnamed();
    next
}

fn surviving_names(names: &Names, random: Option<&mut Random>) -> Names {
    let kept = random.map_or(0, |random| random.below(names.unsynced.len() + 1));
    let mut durable = names.durable.clone();
    for change in names.unsynced.iter().take(kept) {
        change.apply(&mut durable);
    }
    Names { seen: durable.clone(), durable, unsynced: Vec::new() }
}

fn surviving_content(
    inode: &Inode,
    random: Option<&mut Random>,
    losses: &mut CrashLosses,
) -> Inode {
    let mut durable = inode.durable.clone();
    let Some(random) = random else {
        losses.lost += inode.unsynced.len() as u64;
        return Inode {
            seen: durable.clone(),
            durable,
            modified_ms: inode.modified_ms,
            ..Inode::default()
        };
    };
    for change in &inode.unsynced {
        match (random.below(4), change) {
            (0, _) => losses.lost += 1,
            (1, ContentChange::Write { position, bytes }) => {
                let kept = random.below(bytes.len() + 1);
                losses.torn += u64::from(kept < bytes.len());
                let bytes = bytes.iter().take(kept).copied().collect();
                ContentChange::Write { position: *position, bytes }.apply(&mut durable);
            }
            _ => change.apply(&mut durable),
        }
    }
    Inode { seen: durable.clone(), durable, unsynced: Vec::new(), modified_ms: inode.modified_ms }
}

/// SplitMix64: the same seed, the same answers.
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// A number from 0 to `bound` (exclusive, above 0).
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound.max(1) as u64).unwrap_or(0)
    }
}
