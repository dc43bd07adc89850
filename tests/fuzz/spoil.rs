//! What happens to bytes: flipped, cut, doubled, moved in from others, lengths to their extremes.

use duolog_tests::seed::Seeded;

/// Numbers that lengths and counts break at.
const EXTREMES: [i64; 12] =
    [0, -1, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0x7FFF_FFFF, -0x8000_0000, i64::MAX, i64::MIN];
/// The greatest length of the flexible encoding, and one that never ends.
const VARINTS: [&[u8]; 3] =
    [&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F], &[0xFF, 0xFF, 0xFF, 0xFF, 0x07], &[0xFF; 10]];
const CHANGES_MAX: usize = 4;

/// One to four changes; `other` lends parts of itself.
pub fn spoil(random: &mut Seeded, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..random.within(1..CHANGES_MAX + 1) {
        change(random, bytes, other);
    }
}

fn change(random: &mut Seeded, bytes: &mut Vec<u8>, other: &[u8]) {
    if bytes.is_empty() {
        bytes.extend(other);
        return;
    }
    // Lengths and counts are near the beginning more often than not.
    let end = if random.within(0..3) == 0 { bytes.len().min(48) } else { bytes.len() };
    let at = random.within(0..end);
    match random.within(0..8) {
        0 => bytes[at] ^= 1 << random.within(0..8),
        1 => bytes[at] = random.bits() as u8,
        2 => bytes.truncate(at),
        3 => {
            let width = [1, 2, 4, 8][random.within(0..4)].min(bytes.len() - at);
            let value = EXTREMES[random.within(0..EXTREMES.len())].to_be_bytes();
            bytes[at..at + width].copy_from_slice(&value[8 - width..]);
        }
        4 => {
            let varint = VARINTS[random.within(0..VARINTS.len())];
            let end = (at + varint.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&varint[..end - at]);
        }
        5 => {
            let length = random.within(0..(bytes.len() - at).min(64)) + 1;
            let copy = bytes[at..at + length].to_vec();
            bytes.splice(at..at, copy);
        }
        6 => {
            let length = random.within(0..(bytes.len() - at).min(64)) + 1;
            bytes.drain(at..at + length);
        }
        _ => {
            let from = random.within(0..other.len().max(1)).min(other.len());
            let upto = (from + 64).min(other.len());
            let end = (at + upto - from).min(bytes.len());
            bytes.splice(at..end, other[from..upto].iter().copied());
        }
    }
}
