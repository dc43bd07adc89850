use proptest::prelude::*;

use super::*;

fn origin(host: &str) -> Origin {
    Origin {
        flag: -2,
        sys_flag: 257,
        born_host: host.parse().unwrap(),
        store_timestamp_ms: 1_700_000_000_456,
        reconsume_times: 3,
        born_timestamp_ms: None,
    }
}

/// The layout is for ever: it lies in logs.
#[test]
fn the_layout_is_fixed() {
    let bytes = origin("10.1.2.3:54321").encode();
    let expected = [
        0, 0xff, 0xff, 0xff, 0xfe, 0, 0, 1, 1, 4, 10, 1, 2, 3, 0xd4, 0x31, 0, 0, 1, 0x8b, 0xcf,
        0xe5, 0x69, 0xc8, 0, 0, 0, 3,
    ];
    assert_eq!(bytes.as_slice(), expected);
    assert_eq!(Origin::decode(&expected), Some(origin("10.1.2.3:54321")));
    let v6 = origin("[fe80::1]:9").encode();
    assert_eq!(Origin::decode(v6.as_slice()), Some(origin("[fe80::1]:9")));
    assert_eq!(origin("[::ffff:10.1.2.3]:54321").encode().as_slice(), expected);
}

#[test]
fn a_born_timestamp_of_its_own_makes_version_1() {
    let plain = origin("[fe80::1]:9").encode();
    let with_born = Origin { born_timestamp_ms: Some(-2), ..origin("[fe80::1]:9") };
    let bytes = with_born.encode();
    assert_eq!(bytes.as_slice().len(), ORIGIN_BYTES_MAX);
    let expected = [&[1], &plain.as_slice()[1..], &(-2_i64).to_be_bytes()].concat();
    assert_eq!(bytes.as_slice(), expected);
    assert_eq!(Origin::decode(&expected), Some(with_born));
    assert_eq!(Origin::decode(&expected[..expected.len() - 1]), None);
}

#[test]
fn another_version_or_length_is_none() {
    let good = origin("10.1.2.3:54321").encode();
    let good = good.as_slice();
    for length in 0..good.len() {
        assert_eq!(Origin::decode(&good[..length]), None, "{length} bytes");
    }
    let longer = [good, &[0]].concat();
    assert_eq!(Origin::decode(&longer), None);
    let mut other_version = good.to_vec();
    other_version[0] = 1;
    assert_eq!(Origin::decode(&other_version), None, "too short for it");
    other_version[0] = 2;
    assert_eq!(Origin::decode(&other_version), None);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Some(origin) = Origin::decode(&bytes) {
            let again = Origin::decode(origin.encode().as_slice());
            prop_assert!(again.is_some());
        }
    }
}
