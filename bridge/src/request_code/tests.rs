use super::*;
use crate::processors::SERVED;

#[test]
fn codes_rise_and_hold_all_that_is_served() {
    assert!(REQUEST_CODES.is_sorted_by(|(one, _), (next, _)| one < next));
    for served in SERVED {
        assert_eq!(name(served.code), Some(served.name));
    }
    assert_eq!((name(41), name(4)), (Some("LOCK_BATCH_MQ"), None));
}
