use super::*;

/// Against times that the original printed, and the ends of years.
#[test]
fn times_read_as_in_the_original() {
    for (ms, expected) in [
        (1_795_982_477_207, "2026-11-29#20:01:17:207"),
        (-1, "1969-12-31#23:59:59:999"),
        (0, "1970-01-01#00:00:00:000"),
        (951_782_399_999, "2000-02-28#23:59:59:999"),
        (951_782_400_000, "2000-02-29#00:00:00:000"),
        (1_709_251_199_000, "2024-02-29#23:59:59:000"),
        (4_107_542_400_000, "2100-03-01#00:00:00:000"),
        (1_735_689_599_999, "2024-12-31#23:59:59:999"),
    ] {
        assert_eq!(human_time(ms), expected);
    }
    // Nonsense, but no panic.
    human_time(i64::MIN);
    human_time(i64::MAX);
}
