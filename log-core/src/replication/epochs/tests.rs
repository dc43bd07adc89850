use super::*;

fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
    LeaderEpochs::from_entries(
        entries.iter().map(|&(e, o)| EpochEntry { epoch: LeaderEpoch(e), start_offset: Offset(o) }),
    )
}

fn pairs(epochs: &LeaderEpochs) -> Vec<(i32, i64)> {
    epochs.entries().iter().map(|e| (e.epoch.0, e.start_offset.0)).collect()
}

/// Case B66: the answer for every kind of epoch; -1/-1 on the wire is `None` here.
#[test]
fn end_offset_for_past_present_missing_and_future_epochs() {
    let log = epochs(&[(2, 0), (5, 10), (9, 20)]);
    let rows = [
        (-1, None),
        (0, None),
        (1, None),
        (2, Some((2, 10))),
        (3, Some((2, 10))),
        (5, Some((5, 20))),
        (8, Some((5, 20))),
        (9, Some((9, 30))),
        (10, None),
        (1000, None),
    ];
    for (asked, expected) in rows {
        let found = log.end_offset_for(LeaderEpoch(asked), Offset(30));
        assert_eq!(found.map(|e| (e.epoch.0, e.end_offset.0)), expected, "epoch {asked}");
    }
    assert_eq!(epochs(&[]).end_offset_for(LeaderEpoch(0), Offset(0)), None);
}

#[test]
fn assign_keeps_epochs_and_offsets_increasing() {
    let mut log = epochs(&[(1, 0)]);
    assert!(!log.assign(LeaderEpoch(1), Offset(5)), "known epoch");
    assert!(!log.assign(LeaderEpoch(0), Offset(5)), "older epoch");
    assert!(!log.assign(LeaderEpoch(-1), Offset(5)), "no epoch");
    assert!(log.assign(LeaderEpoch(2), Offset(5)));
    assert!(log.assign(LeaderEpoch(4), Offset(5)), "a leader that wrote nothing is replaced");
    assert_eq!(pairs(&log), [(1, 0), (4, 5)]);
}

#[test]
fn truncations_follow_the_log() {
    let rows = [
        ("end", 20, vec![(2, 0), (5, 10)]),
        ("end", 30, vec![(2, 0), (5, 10), (9, 20)]),
        ("start", 15, vec![(5, 15), (9, 20)]),
        ("start", 20, vec![(9, 20)]),
    ];
    for (side, offset, expected) in rows {
        let mut log = epochs(&[(2, 0), (5, 10), (9, 20)]);
        let changed = match side {
            "end" => log.truncate_from_end(Offset(offset)),
            _ => log.truncate_from_start(Offset(offset)),
        };
        assert_eq!(pairs(&log), expected, "{side} {offset}");
        assert_eq!(changed, expected != [(2, 0), (5, 10), (9, 20)], "{side} {offset}");
    }
}

#[test]
fn epoch_of_an_offset() {
    let log = epochs(&[(2, 3), (5, 10)]);
    let rows = [(0, None), (3, Some(2)), (9, Some(2)), (10, Some(5)), (99, Some(5))];
    for (offset, epoch) in rows {
        assert_eq!(log.epoch_of(Offset(offset)).map(|e| e.0), epoch, "offset {offset}");
    }
}
