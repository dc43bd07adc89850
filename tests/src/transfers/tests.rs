use super::*;

/// Two transfers by one attempt, at offsets from 0 on.
fn right() -> BTreeSet<Entry> {
    let mut seen = BTreeSet::new();
    for topic in [DEBITS, CREDITS] {
        for number in 0..2 {
            seen.insert(entry_of(topic, number, "w.1", number));
        }
    }
    seen
}

fn entry_of(topic: &str, number: usize, attempt: &str, offset: usize) -> Entry {
    let value = format!("t{number} {attempt} {}", amount(number));
    (topic.to_owned(), 0, i64::try_from(offset).expect("small"), hex(value.as_bytes()))
}

/// What is wrong with these, if one attempt was committed and another aborted.
fn complaint(seen: &BTreeSet<Entry>, committed: &str, aborted: &str) -> Option<String> {
    let set = |attempt: &str| BTreeSet::from([attempt.to_owned()]);
    judge(seen, 2, &set(committed), &set(aborted)).err().map(|error| error.to_string())
}

#[test]
fn what_is_lost_doubled_torn_or_seen_aborted_is_found() {
    assert_eq!(complaint(&right(), "w.1", "w.2"), None);
    let told = |seen: &BTreeSet<Entry>, committed, aborted| {
        complaint(seen, committed, aborted).unwrap_or_default()
    };
    let mut lost = right();
    lost.remove(&entry_of(CREDITS, 1, "w.1", 1));
    assert!(told(&lost, "w.1", "w.2").contains("t1: Some"), "{}", told(&lost, "w.1", "w.2"));
    let mut doubled = right();
    doubled.insert(entry_of(DEBITS, 0, "w.3", 2));
    assert!(told(&doubled, "w.1", "w.2").contains("has t0 by"));
    let mut torn = lost;
    torn.insert(entry_of(CREDITS, 1, "w.3", 1));
    assert!(told(&torn, "w.1", "w.2").contains("t1: Some"));
    assert!(told(&right(), "w.2", "w.1").contains("which was aborted"));
    assert!(told(&right(), "w.4", "w.2").contains("committed, but not seen"));
}
