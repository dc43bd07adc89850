use proptest::prelude::*;

use super::*;

/// golden-0/00000000000000015193.snapshot of Kafka 4.3.1 after a controlled shutdown: an
/// idempotent producer and a transactional one whose last transaction was committed.
const GOLDEN: &str = "0001d0e53f45000000020000000000000000000000003ac30000000000003ac300000044\
    000001a228399db0ffffffffffffffffffffffff00000000000000010004ffffffffffffffffffffffff\
    00000000000001a22839b1c000000000ffffffffffffffff";

fn golden() -> Vec<u8> {
    let digits: Vec<u8> = GOLDEN.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn a_snapshot_of_kafkas_is_read_and_written_alike() {
    let producers = decode(&golden(), 15_193, 0, i64::MAX).unwrap();
    let first = producers.producer(0).unwrap().last_batch().unwrap();
    assert_eq!((first.last_sequence, first.first_offset()), (15_043, 14_975));
    let second = producers.producer(1).unwrap();
    assert_eq!((second.epoch, second.coordinator_epoch), (4, 0));
    assert_eq!((second.last_batch(), second.txn_first_offset), (None, None));
    assert_eq!(producers.end_offset(), 15_193);
    assert_eq!(encode(&producers), golden());
}

#[test]
fn expired_producers_stay_out() {
    let last = 1_795_971_199_424; // of producer 1
    let producers = decode(&golden(), 15_193, last + 1000, 1001).unwrap();
    assert_eq!(producers.iter().map(|(id, _)| id).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_flipped_bit_or_a_cut_is_noticed() {
    let golden = golden();
    for at in 0..golden.len() {
        assert_eq!(decode(&golden[..at], 0, 0, 1), None);
        let mut spoilt = golden.clone();
        spoilt[at] ^= 1;
        assert_eq!(decode(&spoilt, 0, 0, 1), None, "{at}");
    }
    assert_eq!(decode(&[golden.as_slice(), &[0]].concat(), 0, 0, 1), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let body = bytes.get(4..).unwrap_or_default();
        let crc = crc32c::crc32c(body);
        let with_crc = [&VERSION.to_be_bytes()[..], &crc.to_be_bytes(), body].concat();
        _ = decode(&with_crc, 0, 0, i64::MAX);
        _ = decode(&bytes, 0, 0, 1);
    }
}
