use super::*;

#[test]
fn addresses_are_shown_as_java_shows_them() {
    for (address, shown) in [
        ("127.0.0.1", "/127.0.0.1"),
        ("::ffff:10.0.0.7", "/10.0.0.7"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("fe80::a0b:c", "/fe80:0:0:0:0:0:a0b:c"),
    ] {
        assert_eq!(java_address(address.parse().expect("an address")), shown);
    }
}
