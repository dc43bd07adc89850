use super::*;

#[test]
fn a_client_hears_of_a_subject_once() {
    let complaints = Complaints::default();
    assert!(complaints.is_due("a", "POP_MESSAGE", 0));
    assert!(!complaints.is_due("a", "POP_MESSAGE", 3_600_000));
    assert!(complaints.is_due("a", "LOCK_BATCH_MQ", 0));
    assert!(complaints.is_due("b", "POP_MESSAGE", 0));
}

#[test]
fn a_minute_has_its_measure_and_the_rest_comes_later() {
    let complaints = Complaints::default();
    let due = |now_ms: i64| {
        (0..1000).filter(|client| complaints.is_due(&client.to_string(), "x", now_ms)).count()
    };
    assert_eq!(due(59_999), COMPLAINTS_PER_MINUTE);
    assert_eq!(due(59_999), 0);
    assert_eq!(due(60_000), COMPLAINTS_PER_MINUTE, "others than before");
}

#[test]
fn names_from_outside_cost_a_bounded_memory() {
    let long = "ü".repeat(100_000);
    assert_eq!(shortened(&long).chars().count(), COMPLAINT_NAME_CHARS_MAX);
    assert_eq!(shortened("short"), "short");
    let complaints = Complaints::default();
    for minute in 0..=(COMPLAINTS_KNOWN_MAX / COMPLAINTS_PER_MINUTE) {
        for at in 0..COMPLAINTS_PER_MINUTE {
            let client = format!("{minute} {at}");
            assert!(complaints.is_due(&client, "x", minute as i64 * 60_000));
        }
    }
    assert!(complaints.0.lock().known.len() <= COMPLAINTS_KNOWN_MAX);
}
