use super::*;

#[test]
fn entries_grow_sparser_but_never_wrong() {
    let recorded = RecordedTimes::starting_at(0);
    let appends = 200_000_u32;
    for offset in 0..appends {
        recorded.record(offset, i64::from(offset));
    }
    let entries = recorded.entries.len();
    assert!((50_000..70_000).contains(&entries), "{entries}");
    let times = AppendTimes { earlier: Bytes::new(), recorded: Some(&recorded) };
    for time_ms in (0..i64::from(appends)).step_by(97) {
        let found = times.first_at_or_after(time_ms).unwrap();
        assert!((found.time_ms - time_ms).abs() <= 8, "{time_ms} {found:?}");
        assert_eq!(i64::from(found.relative_offset), found.time_ms);
        let at = times.at(time_ms).unwrap();
        assert!(at.time_ms <= time_ms && time_ms - at.time_ms <= 8);
    }
    assert_eq!(times.newest_ms(), Some(i64::from(appends) - 1));
    assert_eq!(times.first_at_or_after(i64::from(appends)), None);
}

#[test]
fn what_lies_between_the_last_entry_and_the_newest_append_is_found() {
    let recorded = RecordedTimes::starting_at(0);
    for offset in 0..16_384 {
        recorded.record(offset, i64::from(offset));
    }
    recorded.record(16_384, 16_384);
    let times = AppendTimes { earlier: Bytes::new(), recorded: Some(&recorded) };
    assert_eq!(times.last().unwrap().time_ms, 16_383, "two milliseconds a step from here on");
    assert_eq!(times.first_at_or_after(16_384).unwrap().relative_offset, 16_383);
    assert_eq!(times.first_at_or_after(16_385), None);
}
