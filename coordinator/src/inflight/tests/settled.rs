//! Many settled at once.

use super::super::event::OffsetSet;
use super::*;

/// These offsets.
pub(super) fn set(offsets: &[i64]) -> OffsetSet {
    let first = offsets.iter().min().copied().unwrap_or_default();
    let mut bits = Vec::new();
    for offset in offsets {
        let place = usize::try_from(offset - first).expect("above the least");
        bits.resize(bits.len().max(place / 8 + 1), 0);
        bits[place / 8] |= 1 << (place % 8);
    }
    OffsetSet { first, bits }
}

#[test]
fn a_set_holds_its_offsets_alone() {
    let offsets = [100, 102, 107, 108, 131];
    let all = set(&offsets);
    assert_eq!(all.range(), 100..132);
    assert!((90..200).all(|offset| all.contains(offset) == offsets.contains(&offset)));
    assert!(!all.contains(i64::MIN) && !all.contains(i64::MAX));
    let end = OffsetSet { first: i64::MAX - 2, bits: vec![0xff; 2] };
    assert!(end.contains(i64::MAX) && end.range().start < end.range().end);
    assert!(OffsetSet::default().range().is_empty());
}

#[test]
fn millions_of_bits_cost_what_is_in_hand() {
    let mut bench = Bench::new();
    bench.open(1 << 40);
    let taken = bench.take(4);
    bench.now.wall_ms += 1;
    let later = bench.take(2);
    let popped_ms = bench.now.wall_ms;
    // As many as fit a frame, none of which may be gone through with the lock held.
    let all = |first| OffsetSet { first, bits: vec![0xff; 12 << 20] };
    let state = DeliveryState::Acknowledged;
    let mut settle =
        |first, popped_ms| bench.ask(Ask::Settle { offsets: all(first), popped_ms, state });
    assert_eq!(settle(0, popped_ms), Ok(Response::Settled(0)), "below the window");
    assert_eq!(settle((1 << 40) + 6, popped_ms), Ok(Response::Settled(0)), "above it");
    assert_eq!(settle(1 << 40, popped_ms), Ok(Response::Settled(2)), "of this delivery");
    assert_eq!(settle((1 << 40) - 9, popped_ms - 1), Ok(Response::Settled(4)), "of the other");
    assert_eq!((taken.len(), later.len(), bench.window().len()), (4, 2, 0));
}
