use std::collections::BTreeMap;

use super::*;
use duolog_log_core::log::Verified;

use crate::record::transaction::{ProducerIdAndEpoch, TxnVersion};
use crate::shard::{Answer, TransactionEnd, Undo};
use sums::{Ask, FIRST_OF_TWO, FOR_EVER, SECOND_OF_TWO, Sums};

mod sums;

const NOW: Now = Now { wall_ms: 1_000, tick_ms: 0 };

fn active() -> Runtime<Sums> {
    let mut runtime = Runtime::loading(Sums::default());
    runtime.finish_load(Offset(10), Offset(10), NOW);
    runtime
}

/// All effects so far, in words.
fn effects(runtime: &mut Runtime<Sums>) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(effect) = runtime.poll_effect() {
        told.push(match effect {
            Effect::Append { id, records, batch, timestamp_ms } => {
                assert_eq!(timestamp_ms, NOW.wall_ms);
                let pair = |record: RecordBytes| {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    text(&record.key) + &text(&record.value.unwrap_or_default())
                };
                let records: Vec<_> = records.into_iter().map(pair).collect();
                let form = match batch {
                    BatchForm::Plain => String::new(),
                    BatchForm::InTransaction { producer, .. } => format!("of {} ", producer.id),
                    BatchForm::End(end) => format!("end {}", end.producer.id),
                };
                format!("append {} {form}{}", id.0, records.join(" "))
            }
            Effect::Reply { request, answer } => reply(request, answer),
            Effect::Notice(notice) => format!("notice {notice}"),
        });
    }
    told
}

fn reply(request: RequestId, answer: Answer<Sums>) -> String {
    match answer {
        Ok(sum) => format!("reply {} {sum}", request.0),
        Err(error) => format!("refuse {} {error:?}", request.0),
    }
}

fn submit(runtime: &mut Runtime<Sums>, request: u64, ask: Ask) {
    runtime.submit(RequestId(request), ask, NOW);
}

#[test]
fn an_answer_waits_until_its_records_are_committed() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Add("a", 5));
    assert_eq!(effects(&mut runtime), ["append 0 a5"]);
    assert_eq!(runtime.shard().stored.get("a"), None, "replayed only once appended");
    runtime.appended(AppendId(0), Offset(10), NOW);
    assert_eq!(runtime.shard().stored["a"], 5);
    assert_eq!(effects(&mut runtime), [""; 0]);
    runtime.advance_high_watermark(Offset(10));
    assert_eq!(effects(&mut runtime), [""; 0], "the HW is exclusive");
    runtime.advance_high_watermark(Offset(11));
    assert_eq!(effects(&mut runtime), ["reply 1 5"]);
}

#[test]
fn a_read_is_answered_at_once_only_if_all_it_saw_is_committed() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Read("b"));
    assert_eq!(effects(&mut runtime), ["reply 1 0"]);
    submit(&mut runtime, 2, Ask::Add("a", 5));
    runtime.appended(AppendId(0), Offset(10), NOW);
    submit(&mut runtime, 3, Ask::Read("a"));
    submit(&mut runtime, 4, Ask::Count);
    assert_eq!(effects(&mut runtime), ["append 0 a5"]);
    runtime.advance_high_watermark(Offset(11));
    assert_eq!(effects(&mut runtime), ["reply 2 5", "reply 3 5", "reply 4 1"]);
}

#[test]
fn a_group_waits_for_its_own_records_while_others_go_on_in_the_next_batch() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Add("a", 1));
    submit(&mut runtime, 2, Ask::Add("a", 2));
    submit(&mut runtime, 3, Ask::Read("a"));
    submit(&mut runtime, 4, Ask::Add("b", 3));
    submit(&mut runtime, 5, Ask::Add("c", 4));
    assert_eq!(effects(&mut runtime), ["append 0 a1"], "one append at a time");
    runtime.appended(AppendId(0), Offset(10), NOW);
    assert_eq!(effects(&mut runtime), ["append 1 b3 c4 a2"], "gathered meanwhile");
    runtime.appended(AppendId(1), Offset(11), NOW);
    runtime.advance_high_watermark(Offset(14));
    assert_eq!(
        effects(&mut runtime),
        ["reply 1 1", "reply 4 3", "reply 5 4", "reply 2 3", "reply 3 3"]
    );
}

#[test]
fn a_refused_append_leaves_the_stored_state_alone_and_reverts_its_groups_only() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Park("a"));
    submit(&mut runtime, 2, Ask::Park("b"));
    submit(&mut runtime, 3, Ask::Add("a", 1));
    submit(&mut runtime, 4, Ask::Add("b", 1));
    submit(&mut runtime, 5, Ask::Read("a"));
    assert_eq!(effects(&mut runtime), ["append 0 a1"]);
    runtime.append_failed(AppendId(0), AppendError::NotEnoughReplicas, NOW);
    assert_eq!(
        effects(&mut runtime),
        ["refuse 1 NotEnoughReplicas", "refuse 3 NotEnoughReplicas", "reply 5 0", "append 1 b1"]
    );
    assert!(runtime.shard().stored.is_empty());
    assert_eq!(runtime.shard().live, BTreeMap::from([("b", 1)]));
    runtime.appended(AppendId(1), Offset(10), NOW);
    runtime.advance_high_watermark(Offset(11));
    assert_eq!(effects(&mut runtime), ["reply 2 1", "reply 4 1"]);
}

#[test]
fn what_cannot_be_encoded_is_refused_without_an_append() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Oversize("a"));
    assert_eq!(effects(&mut runtime), ["refuse 1 TooLarge"]);
    submit(&mut runtime, 2, Ask::Add("a", 1));
    assert_eq!(effects(&mut runtime), ["append 0 a1"], "the group is free");
}

#[test]
fn a_decision_in_steps_goes_on_once_each_step_is_in_the_log_before_what_came_later() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Climb("a", 3));
    submit(&mut runtime, 2, Ask::Read("a"));
    for step in 0..3 {
        assert_eq!(effects(&mut runtime), [format!("append {step} a1")]);
        runtime.appended(AppendId(step), Offset(10 + step as i64), NOW);
    }
    runtime.advance_high_watermark(Offset(13));
    assert_eq!(effects(&mut runtime), ["reply 1 0", "reply 2 3"]);
}

#[test]
fn a_decision_in_steps_ends_with_the_step_that_fails() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Climb("a", 3));
    runtime.appended(AppendId(0), Offset(10), NOW);
    runtime.append_failed(AppendId(1), AppendError::TooLarge, NOW);
    assert_eq!(effects(&mut runtime), ["append 0 a1", "append 1 a1", "refuse 1 TooLarge"]);
    runtime.advance_high_watermark(Offset(11));
    assert_eq!(effects(&mut runtime), [""; 0]);
}

#[test]
fn a_batch_ends_before_it_is_too_large() {
    let mut runtime = active();
    let keys: Vec<&'static str> =
        (0..40_000).map(|n| &*String::leak(format!("key-{n:030}"))).collect();
    submit(&mut runtime, 0, Ask::Add("a", 1));
    for (n, key) in keys.iter().enumerate() {
        submit(&mut runtime, n as u64 + 1, Ask::Add(key, 1));
    }
    let mut end = Offset(10);
    let mut batches = 0;
    while let Some(effect) = runtime.poll_effect() {
        let Effect::Append { id, records, .. } = effect else { panic!("nothing is committed") };
        let bytes: usize =
            records.iter().map(|r| r.key.len() + r.value.as_ref().map_or(0, Bytes::len)).sum();
        assert!(bytes <= crate::limits::APPEND_BYTES_MAX);
        runtime.appended(id, end, NOW);
        end = end.plus(records.len() as i64);
        batches += 1;
    }
    assert_eq!(end, Offset(10 + 40_001));
    assert_eq!(batches, 4, "the first one alone, then as much as fits");
}

#[test]
fn a_batch_is_no_larger_than_what_the_partition_takes() {
    let mut runtime = active();
    submit(&mut runtime, 0, Ask::Add("a", 1));
    for (request, key) in (1..).zip(["b", "c", "d", "e", "f"]) {
        submit(&mut runtime, request, Ask::Add(key, 1));
    }
    // Of two records each.
    runtime.bound_batches(61 + 2 * 22);
    for append in 0..3 {
        runtime.appended(AppendId(append), Offset(10 + 2 * append as i64), NOW);
    }
    let told = effects(&mut runtime);
    assert_eq!(told, ["append 0 a1", "append 1 b1 c1", "append 2 d1 e1", "append 3 f1"]);
}

#[test]
fn what_is_too_large_together_is_tried_one_by_one_in_order() {
    let mut runtime = active();
    submit(&mut runtime, 0, Ask::Add("a", 1));
    for (request, key) in (1..).zip(["b", "c", "d"]) {
        submit(&mut runtime, request, Ask::Add(key, 1));
    }
    submit(&mut runtime, 4, Ask::Add("b", 2));
    runtime.appended(AppendId(0), Offset(10), NOW);
    runtime.advance_high_watermark(Offset(11));
    assert_eq!(effects(&mut runtime), ["append 0 a1", "append 1 b1 c1 d1", "reply 0 1"]);
    runtime.append_failed(AppendId(1), AppendError::TooLarge, NOW);
    submit(&mut runtime, 5, Ask::Add("e", 1));
    assert_eq!(effects(&mut runtime), ["append 2 b1"]);
    runtime.appended(AppendId(2), Offset(11), NOW);
    runtime.advance_high_watermark(Offset(12));
    assert_eq!(effects(&mut runtime), ["append 3 c1", "reply 1 1"]);
    runtime.append_failed(AppendId(3), AppendError::TooLarge, NOW);
    assert_eq!(effects(&mut runtime), ["refuse 2 TooLarge", "append 4 d1"]);
    runtime.appended(AppendId(4), Offset(12), NOW);
    runtime.advance_high_watermark(Offset(13));
    assert_eq!(effects(&mut runtime), ["append 5 e1 b2", "reply 3 1"]);
    assert_eq!(runtime.shard().live.get("c"), None, "taken back, alone");
}

#[test]
fn requests_are_refused_while_loading_and_after_resignation() {
    let mut runtime = Runtime::loading(Sums::default());
    submit(&mut runtime, 1, Ask::Read("a"));
    submit(&mut runtime, 2, Ask::Count);
    runtime.notify(Ask::Add("a", 1), NOW);
    assert_eq!(effects(&mut runtime), ["refuse 1 NotEnoughReplicas", "reply 2 -1"]);
    let key = Bytes::from_static(b"a");
    let load = |runtime: &mut Runtime<Sums>, offset, value: Option<&'static [u8]>| {
        runtime.load(Offset(offset), Some(&key), value.map(Bytes::from_static).as_ref())
    };
    assert_eq!(load(&mut runtime, 0, Some(b"7")), Ok(true));
    assert_eq!(load(&mut runtime, 1, Some(b"?")), Err(RecordError::NotUtf8("amount")));
    assert_eq!(load(&mut runtime, 2, Some(b"1")), Ok(true));
    assert_eq!(runtime.load(Offset(3), None, None), Err(RecordError::NoKey));
    assert_eq!(runtime.load(Offset(4), Some(&Bytes::from_static(b"z")), None), Ok(false));
    runtime.finish_load(Offset(5), Offset(3), NOW);
    submit(&mut runtime, 3, Ask::Read("a"));
    assert_eq!(effects(&mut runtime), [""; 0], "what was loaded may not be committed yet");
    runtime.advance_high_watermark(Offset(5));
    submit(&mut runtime, 4, Ask::Park("a"));
    submit(&mut runtime, 5, Ask::Add("b", 1));
    submit(&mut runtime, 6, Ask::Read("b"));
    assert_eq!(effects(&mut runtime), ["reply 3 8", "append 0 b1"]);
    runtime.resign();
    assert_eq!(
        effects(&mut runtime),
        ["refuse 4 NotLeader", "refuse 5 NotLeader", "refuse 6 NotLeader"]
    );
    submit(&mut runtime, 7, Ask::Read("b"));
    runtime.appended(AppendId(0), Offset(5), NOW);
    runtime.append_failed(AppendId(0), AppendError::NotLeader, NOW);
    assert_eq!(effects(&mut runtime), ["refuse 7 NotLeader"]);
    assert_eq!(runtime.next_deadline(), None);
}

#[test]
fn too_many_waiting_requests_are_refused() {
    let mut runtime = active();
    for request in 0..=WAITING_MAX as u64 {
        submit(&mut runtime, request, Ask::Add("a", 1));
    }
    assert_eq!(effects(&mut runtime), ["append 0 a1"]);
    submit(&mut runtime, u64::MAX, Ask::Read("b"));
    assert_eq!(effects(&mut runtime), [format!("refuse {} NotEnoughReplicas", u64::MAX)]);
    // Nor is there room for what clients send without waiting; news are heard all the same.
    runtime.offer(Ask::Add("b", 1), NOW);
    runtime.notify(Ask::Add("c", 1), NOW);
    runtime.notify(Ask::Add("a", 1), NOW);
    runtime.appended(AppendId(0), Offset(10), NOW);
    let appended = effects(&mut runtime);
    assert_eq!(appended.len(), 1);
    assert!(appended[0].starts_with("append 1 c1 a1"), "{appended:?}");
}

#[test]
fn timers_fire_once_at_their_last_setting_in_order_of_time() {
    let at = |tick_ms| Now { tick_ms, ..NOW };
    let mut runtime = active();
    runtime.notify(Ask::Wind("a", 50), NOW);
    runtime.notify(Ask::Wind("b", 20), NOW);
    runtime.notify(Ask::Wind("a", 10), NOW);
    assert_eq!(runtime.next_deadline(), Some(10));
    runtime.tick(at(9));
    assert_eq!(effects(&mut runtime), [""; 0]);
    runtime.tick(at(100));
    assert_eq!(effects(&mut runtime), ["notice a", "notice b"]);
    assert_eq!(runtime.next_deadline(), None);
    let mut timers = Timers::default();
    timers.change(TimerChange::Set("x", 5));
    timers.change(TimerChange::Cancel("x"));
    assert_eq!(timers.pop_due(100), None);
    timers.change(TimerChange::Set("put off", 5));
    timers.change(TimerChange::Set("y", 7));
    timers.change(TimerChange::Set("put off", 8));
    assert_eq!(timers.pop_due(6), None);
    assert_eq!(timers.pop_due(100), Some("y"));
    assert_eq!(timers.pop_due(7), None);
    timers.change(TimerChange::Set("put off", 20));
    timers.change(TimerChange::Set("put off", 9));
    assert_eq!(timers.pop_due(100), Some("put off"));
    assert_eq!((timers.pop_due(100), timers.next_deadline()), (None, None));
    timers.change(TimerChange::Set("z", 5));
    timers.change(TimerChange::Set("z", 9));
    timers.change(TimerChange::Cancel("z"));
    assert_eq!(timers.next_deadline(), None);
}

#[test]
fn a_timer_that_sets_itself_anew_at_once_rings_once_in_a_tick() {
    let mut runtime = active();
    runtime.notify(Ask::Wind(FOR_EVER, 0), NOW);
    for _ in 0..2 {
        runtime.tick(NOW);
        assert_eq!(effects(&mut runtime), [format!("notice {FOR_EVER}")]);
        assert_eq!(runtime.next_deadline(), Some(NOW.tick_ms));
    }
}

#[test]
fn a_timer_that_an_earlier_one_of_the_same_tick_stops_does_not_ring() {
    let mut runtime = active();
    runtime.notify(Ask::Wind(SECOND_OF_TWO, 2), NOW);
    runtime.notify(Ask::Wind(FIRST_OF_TWO, 1), NOW);
    runtime.tick(Now { tick_ms: 5, ..NOW });
    assert_eq!(effects(&mut runtime), [format!("notice {FIRST_OF_TWO}")]);
}

#[test]
fn a_timer_that_waited_for_an_append_is_dropped_if_it_was_set_anew_or_stopped_meanwhile() {
    let at = |tick_ms| Now { tick_ms, ..NOW };
    let changes: [(Option<Ask>, &[&str]); 4] = [
        (None, &["notice a"]),
        (Some(Ask::Wind("a", 50)), &["reply 2 0"]),
        (Some(Ask::Unwind("a")), &["reply 2 0"]),
        (Some(Ask::Read("a")), &["reply 2 1", "notice a"]),
    ];
    for (change, told) in changes {
        let mut runtime = active();
        runtime.notify(Ask::Wind("a", 10), NOW);
        submit(&mut runtime, 1, Ask::Add("a", 1));
        if let Some(change) = change.clone() {
            submit(&mut runtime, 2, change);
        }
        runtime.tick(at(20));
        assert_eq!(effects(&mut runtime), ["append 0 a1"], "all waits");
        runtime.appended(AppendId(0), Offset(10), at(30));
        runtime.advance_high_watermark(Offset(11));
        let mut answers = effects(&mut runtime);
        answers.retain(|answer| answer != "reply 1 1");
        answers.sort_by_key(|answer| answer.starts_with("notice"));
        assert_eq!(answers, told, "{change:?}");
        // What was set anew rings in its time, once.
        runtime.tick(at(90));
        let again = matches!(change, Some(Ask::Wind(..)));
        assert_eq!(effects(&mut runtime), vec!["notice a"; usize::from(again)], "{change:?}");
    }
}

#[test]
fn of_two_firings_that_wait_the_one_of_the_last_setting_counts() {
    let at = |tick_ms| Now { tick_ms, ..NOW };
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Add("a", 1));
    runtime.advance_high_watermark(Offset(11));
    runtime.notify(Ask::Wind("a", 0), NOW);
    runtime.notify(Ask::Wind("a", 10), NOW);
    // Neither is set before the records are in the log.
    runtime.tick(at(5));
    assert_eq!(effects(&mut runtime), ["append 0 a1"]);
    runtime.appended(AppendId(0), Offset(10), at(5));
    runtime.tick(at(15));
    assert_eq!(effects(&mut runtime), ["reply 1 1", "notice a"]);
    let mut timers = Timers::default();
    timers.change(TimerChange::Set("x", 5));
    let first = timers.take_due(5).remove(0);
    timers.change(TimerChange::Set("x", 6));
    let second = timers.take_due(6).remove(0);
    assert!(!timers.deliver(&first));
    assert!(timers.deliver(&second));
    assert!(!timers.deliver(&second), "once");
}

#[test]
#[should_panic(expected = "request ids are distinct")]
fn a_request_id_in_use_is_our_bug() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Park("a"));
    submit(&mut runtime, 1, Ask::Park("a"));
}

#[test]
#[should_panic(expected = "is not the open one")]
fn an_append_that_nobody_asked_for_is_our_bug() {
    active().appended(AppendId(0), Offset(10), NOW);
}

#[test]
fn what_is_in_a_transaction_is_a_batch_of_its_own_and_counts_from_its_marker_on() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Add("a", 1));
    assert_eq!(effects(&mut runtime), ["append 0 a1"]);
    for (request, ask) in [
        (2, Ask::Promise("b", 5, 7)),
        (3, Ask::Promise("c", 6, 7)),
        (4, Ask::Promise("d", 8, 9)),
        (5, Ask::Add("e", 2)),
        (6, Ask::Add("f", 3)),
        (7, Ask::End(7, TransactionOutcome::Commit)),
        (8, Ask::End(9, TransactionOutcome::Abort)),
        (9, Ask::Add("g", 4)),
    ] {
        submit(&mut runtime, request, ask);
    }
    let batches = ["of 7 b5", "of 7 c6", "of 9 d8", "e2 f3", "end 7", "end 9", "g4"];
    let mut offset = 10;
    for (number, batch) in batches.into_iter().enumerate() {
        let before = runtime.shard().stored.get("b").copied();
        assert_eq!(before, (number > 5).then_some(5), "before {batch}");
        runtime.appended(AppendId(number as u64), Offset(offset), NOW);
        offset += if batch == "of 7 b5" { 1 } else { 2 };
        runtime.advance_high_watermark(Offset(offset));
        let told = effects(&mut runtime);
        let appended = told.iter().find(|line| line.starts_with("append"));
        assert_eq!(appended, Some(&format!("append {} {batch}", number + 1)));
    }
    runtime.appended(AppendId(7), Offset(offset), NOW);
    runtime.advance_high_watermark(Offset(offset + 1));
    assert_eq!(effects(&mut runtime), ["reply 9 4"]);
    let stored: Vec<_> = runtime.shard().stored.iter().map(|(key, sum)| (*key, *sum)).collect();
    assert_eq!(stored, [("a", 1), ("b", 5), ("c", 6), ("e", 2), ("f", 3), ("g", 4)]);
}

#[test]
fn a_refused_marker_ends_nothing() {
    let mut runtime = active();
    submit(&mut runtime, 1, Ask::Promise("b", 5, 7));
    assert_eq!(effects(&mut runtime), ["append 0 of 7 b5"]);
    runtime.appended(AppendId(0), Offset(10), NOW);
    runtime.advance_high_watermark(Offset(11));
    assert_eq!(effects(&mut runtime), ["reply 1 0"]);
    submit(&mut runtime, 2, Ask::End(7, TransactionOutcome::Commit));
    assert_eq!(effects(&mut runtime), ["append 1 end 7"]);
    runtime.append_failed(AppendId(1), AppendError::CoordinatorFenced, NOW);
    assert_eq!(effects(&mut runtime), ["refuse 2 CoordinatorFenced"]);
    assert_eq!(runtime.shard().stored.get("b"), None);
    submit(&mut runtime, 3, Ask::End(7, TransactionOutcome::Commit));
    runtime.appended(AppendId(2), Offset(11), NOW);
    assert_eq!(runtime.shard().stored["b"], 5);
}
