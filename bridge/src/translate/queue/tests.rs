use proptest::prelude::*;

use super::*;
use crate::golden::rows;

/// An address at 2^40 - 1 is the last; nothing wraps.
#[test]
fn addresses_end_at_40_bits_of_offset_and_23_of_number() {
    let last = PseudoAddress::new(NUMBER_END - 1, OFFSET_END - 1).unwrap();
    assert_eq!(last.physical(), i64::MAX);
    assert_eq!((last.partition_number(), last.offset()), (NUMBER_END - 1, OFFSET_END - 1));
    for (number, offset) in [(0, OFFSET_END), (0, i64::MAX), (0, -1), (NUMBER_END, 0)] {
        assert_eq!(PseudoAddress::new(number, offset), Err(AddressError { number, offset }));
    }
    assert_eq!(PseudoAddress::from_physical(-1), None);
}

/// Pitfalls 8 and 9.
#[test]
fn ids_are_those_of_the_original() {
    for row in rows("5.5.0/ids.tsv") {
        let [host, port, physical, text] = &row[..] else { panic!("{row:?}") };
        let id = MessageId {
            store_host: SocketAddr::new(host.parse().unwrap(), port.parse().unwrap()),
            address: PseudoAddress::from_physical(physical.parse().unwrap()).unwrap(),
        };
        assert_eq!(id.to_string(), *text);
        assert_eq!(MessageId::parse(text), Some(id));
    }
}

/// Case B118: an IPv4 host in IPv6 form has an id of 32 characters.
#[test]
fn a_mapped_host_has_a_short_id() {
    let store_host = "[::ffff:1.2.3.4]:10911".parse().unwrap();
    let id = MessageId { store_host, address: PseudoAddress::new(1, 2).unwrap() };
    assert_eq!(id.to_string(), "0102030400002A9F0000010000000002");
}

#[test]
fn what_is_no_id_is_refused() {
    for text in ["", "7F00000100002A9F000005000000004", "7F00000100002A9F000005000000004g"] {
        assert_eq!(MessageId::parse(text), None, "{text}");
    }
    // Port 65536 and a negative offset.
    assert_eq!(MessageId::parse("7F000001000100000000000000000001"), None);
    assert_eq!(MessageId::parse("7F00000100002A9FFFFFFFFFFFFFFFFF"), None);
    assert_eq!(MessageId::parse("+F00000100002A9F000005000000004D"), None);
}

proptest! {
    #[test]
    fn every_address_comes_back(number in 0..NUMBER_END, offset in 0..OFFSET_END) {
        let address = PseudoAddress::new(number, offset).unwrap();
        prop_assert_eq!(PseudoAddress::from_physical(address.physical()), Some(address));
        prop_assert_eq!((address.partition_number(), address.offset()), (number, offset));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let _any = MessageId::parse(&text);
    }
}
