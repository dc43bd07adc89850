use super::*;

const MINUTE: i64 = 60_000;
const ROOMY: usize = 1 << 30;

fn sessions(slots: usize) -> FetchSessions {
    FetchSessions::bounded(slots, ROOMY)
}

fn key(partition: i32) -> PartitionKey {
    PartitionKey { topic: TopicKey::Name("t".into()), partition }
}

fn ask(partition: i32, fetch_offset: i64) -> Ask {
    Ask {
        key: key(partition),
        name: Some("t".into()),
        fetch_offset,
        max_bytes: 100,
        leader_epoch: -1,
        last_fetched_epoch: -1,
    }
}

fn asks(partitions: std::ops::Range<i32>) -> Vec<Ask> {
    partitions.map(|partition| ask(partition, 0)).collect()
}

fn nothing(high_watermark: i64) -> Answered {
    let told = Told { high_watermark, log_start: 0 };
    Answered { told, content: Content::Nothing }
}

fn with(content: Content) -> Answered {
    Answered { content, ..nothing(7) }
}

fn request(id: i32, epoch: i32) -> SessionRequest {
    SessionRequest { id, epoch, naming: Naming::Names }
}

fn begin_at(
    sessions: &FetchSessions,
    request: SessionRequest,
    asks: Vec<Ask>,
    forgotten: &[PartitionKey],
    now_ms: i64,
) -> Result<Begun, SessionError> {
    sessions.begin(request, asks, forgotten, |_| None, now_ms)
}

fn begin(
    sessions: &FetchSessions,
    id: i32,
    epoch: i32,
    asks: Vec<Ask>,
    forgotten: &[PartitionKey],
) -> Result<Begun, SessionError> {
    begin_at(sessions, request(id, epoch), asks, forgotten, 0)
}

/// A full fetch of these partitions, all at a HW of 7; returns the session's id.
fn open_at(sessions: &FetchSessions, partitions: std::ops::Range<i32>, now_ms: i64) -> i32 {
    let asks = asks(partitions);
    let noted: Vec<_> = (0..asks.len()).map(|index| (index, nothing(7))).collect();
    let begun = begin_at(sessions, request(0, 0), asks, &[], now_ms).unwrap();
    assert!(begun.asks.iter().all(|(_, told)| told.is_none()), "a full fetch tells all");
    sessions.finish(begun, &noted, now_ms).unwrap()
}

fn open(sessions: &FetchSessions, partitions: std::ops::Range<i32>) -> i32 {
    open_at(sessions, partitions, 0)
}

/// The order in which an incremental fetch reads its partitions.
fn order(begun: &Begun) -> Vec<i32> {
    begun.asks.iter().map(|(ask, _)| ask.key.partition).collect()
}

#[test]
fn a_full_fetch_with_epoch_0_makes_a_session_that_goes_on_with_epoch_1() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..3);
    assert!(id > 0);
    for epoch in 1..4 {
        let begun = begin(&sessions, id, epoch, vec![], &[]).unwrap();
        assert_eq!(order(&begun), [0, 1, 2]);
        let told = Some(Told { high_watermark: 7, log_start: 0 });
        assert!(begun.asks.iter().all(|(_, before)| *before == told));
        assert_eq!(sessions.finish(begun, &[], 0), Ok(id));
    }
    // One without partitions is made too, and ends with its next fetch, as in Kafka.
    let empty = open(&sessions, 0..0);
    assert!(empty > 0);
    let begun = begin(&sessions, empty, 1, vec![], &[]).unwrap();
    assert_eq!(sessions.finish(begun, &[], 0), Ok(0));
    assert_eq!(begin(&sessions, empty, 2, vec![], &[]).unwrap_err(), SessionError::UnknownId);
}

#[test]
fn a_session_ends_by_epoch_minus_1_and_by_a_full_fetch_that_names_it() {
    let sessions = sessions(10);
    for epoch in [-1, 0] {
        let id = open(&sessions, 0..1);
        let begun = begin(&sessions, id, epoch, asks(0..1), &[]).unwrap();
        assert_eq!(begin(&sessions, id, 1, vec![], &[]).unwrap_err(), SessionError::UnknownId);
        let next = sessions.finish(begun, &[(0, nothing(7))], 0).unwrap();
        assert_eq!(next != 0, epoch == 0);
        assert_ne!(next, id);
    }
    assert_eq!(sessions.count(), 1);
    // Without a session epoch -1 is a plain fetch.
    let begun = begin(&sessions, 0, -1, asks(0..1), &[]).unwrap();
    assert_eq!(sessions.finish(begun, &[(0, nothing(7))], 0), Ok(0));
}

#[test]
fn a_wrong_epoch_or_name_is_refused_and_changes_nothing() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..2);
    for epoch in [2, 3, -2, i32::MIN, i32::MAX] {
        let refused = begin(&sessions, id, epoch, asks(5..6), &[key(0)]).unwrap_err();
        assert_eq!(refused, SessionError::InvalidEpoch);
    }
    let by_id = SessionRequest { naming: Naming::Ids, ..request(id, 1) };
    let refused = begin_at(&sessions, by_id, vec![], &[key(0)], 0).unwrap_err();
    assert_eq!(refused, SessionError::TopicIds);
    assert_eq!(begin(&sessions, 0, 1, vec![], &[]).unwrap_err(), SessionError::UnknownId);
    assert_eq!(order(&begin(&sessions, id, 1, vec![], &[]).unwrap()), [0, 1]);
}

#[test]
fn epochs_go_round_from_the_last_one_to_1() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..1);
    sessions.set_epoch(id, i32::MAX);
    // Case B27.
    let begun = begin(&sessions, id, i32::MAX, vec![], &[]).unwrap();
    assert_eq!(sessions.finish(begun, &[], 0), Ok(id));
    assert!(begin(&sessions, id, 1, vec![], &[]).is_ok());
    assert_eq!([next_epoch(-1), next_epoch(i32::MIN), next_epoch(0)], [-1, -1, 1]);
}

#[test]
fn a_fetch_that_another_one_overtook_is_not_answered() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..1);
    let slow = begin(&sessions, id, 1, vec![], &[]).unwrap();
    let fast = begin(&sessions, id, 2, vec![], &[]).unwrap();
    let news = [(0, nothing(8))];
    assert_eq!(sessions.finish(slow, &news, 0), Err((id, SessionError::InvalidEpoch)));
    assert_eq!(sessions.finish(fast, &[], 0), Ok(id));
    let told = begin(&sessions, id, 3, vec![], &[]).unwrap().asks[0].1;
    assert_eq!(told.unwrap().high_watermark, 7, "what was not answered was not told");
}

#[test]
fn what_is_asked_is_kept_changed_added_and_forgotten() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..3);
    let begun = begin(&sessions, id, 1, vec![ask(1, 9), ask(5, 2)], &[key(0), key(77)]).unwrap();
    // A forgotten partition never returns (case B27); a new one was told nothing.
    assert_eq!(order(&begun), [1, 2, 5]);
    assert_eq!(begun.asks[0].0.fetch_offset, 9);
    assert_eq!(begun.asks[1].0.fetch_offset, 0);
    assert_eq!(begun.asks[2].1, Some(Told { high_watermark: -1, log_start: -1 }));
    assert_eq!(sessions.finish(begun, &[(2, nothing(3))], 0), Ok(id));
    let begun = begin(&sessions, id, 2, vec![], &[]).unwrap();
    assert_eq!(begun.asks[2].1, Some(nothing(3).told));
    // Added and forgotten at once is forgotten.
    let begun = begin(&sessions, id, 3, vec![ask(8, 0)], &[key(8)]).unwrap();
    assert_eq!(order(&begun), [1, 2, 5]);
    // What asks for nothing any more ends.
    let begun = begin(&sessions, id, 4, vec![], &[key(1), key(2), key(5)]).unwrap();
    assert_eq!((begun.asks.len(), sessions.finish(begun, &[], 0)), (0, Ok(0)));
    assert_eq!((sessions.count(), sessions.bytes()), (0, 0));
}

#[test]
fn news_are_records_errors_divergence_and_other_offsets() {
    let before = Told { high_watermark: 7, log_start: 0 };
    for (answered, is_news) in [
        (nothing(7), false),
        (nothing(8), true),
        (nothing(6), true),
        (Answered { told: Told { log_start: 1, ..before }, content: Content::Nothing }, true),
        (with(Content::Records), true),
        (with(Content::Error), true),
        (with(Content::Divergence), true),
    ] {
        assert_eq!(answered.is_news(before), is_news, "{answered:?}");
    }
}

#[test]
fn a_partition_whose_error_has_gone_is_told_again() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..1);
    let begun = begin(&sessions, id, 1, vec![], &[]).unwrap();
    sessions.finish(begun, &[(0, with(Content::Error))], 0).unwrap();
    let begun = begin(&sessions, id, 2, vec![], &[]).unwrap();
    assert!(nothing(7).is_news(begun.asks[0].1.unwrap()));
}

#[test]
fn partitions_with_records_go_to_the_end_so_that_none_starves() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..4);
    let mut seen = Vec::new();
    for epoch in 1..9 {
        let begun = begin(&sessions, id, epoch, vec![], &[]).unwrap();
        seen.push(begun.asks[0].0.key.partition);
        // There is room for the records of the first one only; the second has other news.
        let noted = [(0, with(Content::Records)), (1, nothing(i64::from(epoch) + 7))];
        sessions.finish(begun, &noted, 0).unwrap();
    }
    assert_eq!(seen, [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn an_id_that_nobody_had_gets_its_name_when_somebody_has_it() {
    let sessions = sessions(10);
    let key = PartitionKey { topic: TopicKey::Id(TopicId([9; 16])), partition: 0 };
    let unknown = Ask { key, name: None, ..ask(0, 0) };
    let by_id = |id, epoch| SessionRequest { naming: Naming::Ids, ..request(id, epoch) };
    let begun = begin_at(&sessions, by_id(0, 0), vec![unknown.clone()], &[], 0).unwrap();
    let id = sessions.finish(begun, &[(0, with(Content::Error))], 0).unwrap();
    for (epoch, known, name) in
        [(1, None, None), (2, Some("t"), Some("t")), (3, Some("other"), Some("t"))]
    {
        let asked = if epoch == 3 { vec![unknown.clone()] } else { vec![] };
        let name_of = |_: &TopicKey| known.map(Str::from);
        let begun = sessions.begin(by_id(id, epoch), asked, &[], name_of, 0).unwrap();
        assert_eq!(begun.asks[0].0.name.as_deref(), name);
    }
}

#[test]
fn without_room_there_is_no_session_until_one_was_idle_for_two_minutes() {
    let sessions = sessions(2);
    let (first, second) = (open(&sessions, 0..3), open(&sessions, 0..3));
    assert_eq!(open_at(&sessions, 0..5, 2 * MINUTE), 0, "all are in use, none is old");
    let used = begin_at(&sessions, request(first, 1), vec![], &[], 2 * MINUTE).unwrap();
    sessions.finish(used, &[], 2 * MINUTE).unwrap();
    let third = open_at(&sessions, 0..1, 2 * MINUTE + 1);
    assert_ne!(third, 0);
    assert_eq!(begin(&sessions, second, 1, vec![], &[]).unwrap_err(), SessionError::UnknownId);
    assert!(begin_at(&sessions, request(first, 2), vec![], &[], 2 * MINUTE + 1).is_ok());
    assert_eq!(sessions.count(), 2);
    assert_eq!(open(&self::sessions(0), 0..1), 0);
}

#[test]
fn a_larger_session_takes_the_place_of_the_smallest_old_one() {
    let sessions = sessions(3);
    let old = 2 * MINUTE + 1;
    let (large, small) = (open(&sessions, 0..9), open(&sessions, 0..4));
    // Both are old and in use; a third one is young and smaller.
    for id in [large, small] {
        let begun = begin_at(&sessions, request(id, 1), vec![], &[], old).unwrap();
        sessions.finish(begun, &[], old).unwrap();
    }
    let young = open_at(&sessions, 0..1, old);
    assert_eq!(open_at(&sessions, 0..4, old + 1), 0, "no larger than the smallest old one");
    assert_ne!(open_at(&sessions, 0..5, old + 1), 0);
    let gone = begin_at(&sessions, request(small, 2), vec![], &[], old + 1).unwrap_err();
    assert_eq!(gone, SessionError::UnknownId);
    assert!(begin_at(&sessions, request(large, 2), vec![], &[], old + 1).is_ok());
    assert!(begin_at(&sessions, request(young, 1), vec![], &[], old + 1).is_ok());
}

#[test]
fn sessions_take_no_more_memory_than_they_may() {
    let one = {
        let sessions = sessions(10);
        open(&sessions, 0..10);
        sessions.bytes()
    };
    let sessions = FetchSessions::bounded(1000, one * 3 + one / 2);
    let ids: Vec<i32> = (0..5).map(|_| open(&sessions, 0..10)).collect();
    assert_eq!(ids.iter().filter(|id| **id != 0).count(), 3);
    assert_eq!(sessions.bytes(), one * 3);
    // One that grows too large goes; its client then asks for all it wants.
    let grown = begin(&sessions, ids[0], 1, asks(10..100), &[]).unwrap_err();
    assert_eq!(grown, SessionError::UnknownId);
    assert_eq!((sessions.count(), sessions.bytes()), (2, one * 2));
    // A long name is memory too.
    let long = TopicKey::Name("n".repeat(one).into());
    let long = Ask { key: PartitionKey { topic: long, partition: 0 }, ..ask(0, 0) };
    assert!(begin(&sessions, ids[1], 1, vec![long.clone()], &[]).is_ok());
    let begun = begin(&sessions, 0, 0, vec![long], &[]).unwrap();
    assert_eq!(sessions.finish(begun, &[(0, nothing(7))], 0), Ok(0));
}

#[test]
fn figures_tell_sessions_partitions_and_kinds_of_fetches() {
    let sessions = sessions(10);
    let id = open(&sessions, 0..3);
    let begun = begin(&sessions, id, 1, asks(3..5), &[]).unwrap();
    sessions.finish(begun, &[], 0).unwrap();
    let mut text = String::new();
    sessions.render(&mut text).unwrap();
    for line in [
        "duolog_fetch_sessions 1",
        "duolog_fetch_session_partitions 5",
        "duolog_fetch_session_evictions_total 0",
        "duolog_fetches_total{kind=\"full\"} 1",
        "duolog_fetches_total{kind=\"incremental\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}
