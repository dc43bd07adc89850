use super::*;

#[test]
fn months_begin_where_they_do() {
    for (now, start) in [
        (0, 0),
        (1_709_251_199_999, 1_706_745_600_000), // 29 February 2024, last millisecond
        (1_709_251_200_000, 1_709_251_200_000), // 1 March 2024
        (1_735_689_599_999, 1_733_011_200_000), // 31 December 2024, last millisecond
        (951_868_800_000, 951_868_800_000),     // 1 March 2000
        (4_107_542_399_999, 4_105_123_200_000), // 28 February 2100, last millisecond: no leap year
    ] {
        assert_eq!(month_start_ms(now), start, "{now}");
    }
}

#[test]
fn keys_have_the_originals_form_and_differ() {
    let keys = UniqueKeys::default();
    let v4 = "127.0.0.1:10911".parse().expect("an address");
    let first = keys.next(v4, 5, 1_709_251_200_001);
    let second = keys.next(v4, 5, 1_709_251_200_001);
    assert_eq!(first.len(), 32);
    assert_eq!(&first[..8], "7F000001");
    assert_eq!(&first[12..], "0000000500000001".to_owned() + "0000");
    assert_ne!(first, second);
    let v6 = "[::1]:10911".parse().expect("an address");
    assert_eq!(keys.next(v6, 5, 0).len(), 56);
}
