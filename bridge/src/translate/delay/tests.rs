use super::*;

const NOW_MS: i64 = 1_700_000_000_250;

fn rules() -> DelayRules {
    let levels_ms = DelayRules::levels_ms("1s 5s 1m 2h").expect("levels");
    DelayRules { levels_ms, max_delay_ms: 3 * 24 * 3_600_000, timers: true }
}

fn of(properties: &str) -> Result<Option<Delay>, DelayError> {
    let text = properties.replace('=', "\u{1}").replace(' ', "\u{2}");
    Delay::of(Properties(&text), NOW_MS, &rules())
}

fn wait_ms(properties: &str) -> Option<i64> {
    of(properties).expect("legal").map(|delay| delay.due_ms - NOW_MS)
}

#[test]
fn levels_are_read_as_the_original_writes_them() {
    assert_eq!(
        DelayRules::levels_ms("1s 5m  3h 1d"),
        Ok(vec![1_000, 300_000, 10_800_000, 86_400_000])
    );
    for bad in ["", " ", "1s x", "5", "1.5s", "-1s", "s", "9223372036854775807d", "1é"] {
        assert!(DelayRules::levels_ms(bad).is_err(), "{bad}");
    }
    let waits: Vec<_> = [1, 3, 4, 5, i32::MAX].map(|level| rules().level_ms(level)).into();
    assert_eq!(waits, [1_000, 60_000, 7_200_000, 7_200_000, 7_200_000]);
}

#[test]
fn a_level_goes_before_a_time_and_a_time_before_none() {
    for (properties, expected) in [
        ("", None),
        ("DELAY=0", None),
        ("DELAY=-1", None),
        ("DELAY=2", Some(5_000)),
        ("DELAY=99", Some(7_200_000)),
        ("TIMER_DELAY_SEC=7 DELAY=1", Some(1_000)),
        ("TIMER_DELAY_SEC=7", Some(7_000)),
        ("TIMER_DELAY_MS=7 TIMER_DELIVER_MS=1", Some(7)),
        ("TIMER_DELIVER_MS=1700000000251", Some(1)),
        ("TIMER_DELIVER_MS=1700000000250", None),
        ("TIMER_DELIVER_MS=5", None),
        ("TIMER_DELAY_SEC=-3", None),
        ("TIMER_DELAY_SEC=259200", Some(259_200_000)),
        ("TIMER_OUT_MS=5 TIMER_DELAY_SEC=7", None),
    ] {
        assert_eq!(wait_ms(properties), expected, "{properties}");
    }
}

#[test]
fn times_beyond_the_limit_and_what_is_no_time_are_refused_in_the_originals_words() {
    for bad in [
        "TIMER_DELAY_SEC=259201",
        "TIMER_DELAY_MS=259200001",
        "TIMER_DELAY_SEC=9223372036854775807",
        "TIMER_DELIVER_MS=9223372036854775807",
        "TIMER_DELAY_MS=x",
        "TIMER_DELIVER_MS=1.5",
    ] {
        assert_eq!(
            of(bad).expect_err(bad).to_string(),
            "timer message illegal, the delay time should not be bigger than the max delay \
             259200000ms; or if set del msg, the delay time should be bigger than the current time"
        );
    }
    assert_eq!(of("DELAY=x").expect_err("no level").to_string(), "For input string: \"x\"");
    let off = DelayRules { timers: false, ..rules() };
    let timed = Properties("TIMER_DELAY_SEC\u{1}7\u{2}");
    assert_eq!(Delay::of(timed, NOW_MS, &off), Err(DelayError::Disabled));
    assert!(
        Delay::of(Properties("DELAY\u{1}7\u{2}"), NOW_MS, &off).is_ok(),
        "levels are no timers"
    );
}

#[test]
fn a_recall_handles_time_finds_the_message() {
    for due_ms in [NOW_MS + 1, NOW_MS + 750, NOW_MS + 751, NOW_MS + 749] {
        let delay = of(&format!("TIMER_DELIVER_MS={due_ms}")).expect("legal").expect("later");
        let (from_ms, to_ms) = recalled_range(delay.recall_ms().expect("a time"));
        assert!((from_ms..to_ms).contains(&due_ms), "{due_ms} is not in {from_ms}..{to_ms}");
        let out_ms = due_ms - 1 - (due_ms - 1) % 1_000;
        assert!(delay.added("t", 3).contains(&(TIMER_OUT_MS, out_ms.to_string())));
    }
    assert_eq!(of("DELAY=1").expect("legal").expect("later").recall_ms(), None);
}

#[test]
fn what_drove_the_delay_is_gone_when_a_level_delivers() {
    let level = of("DELAY=1").expect("legal").expect("later");
    let time = of("TIMER_DELAY_SEC=1").expect("legal").expect("later");
    for (name, by_level, by_time) in [
        (DELAY, true, true),
        (TIMER_DELAY_SEC, false, true),
        (TIMER_DELIVER_MS, false, true),
        (TIMER_OUT_MS, true, false),
        ("TAGS", true, true),
    ] {
        assert_eq!((level.keeps(name), time.keeps(name)), (by_level, by_time), "{name}");
    }
    let added = [(REAL_TOPIC, "t".to_owned()), (REAL_QUEUE, "3".to_owned())];
    assert_eq!(level.added("t", 3), added);
}
