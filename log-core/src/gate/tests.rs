use super::*;

fn subject(topic: &str, partition: i32) -> GateSubject<'_> {
    GateSubject { topic: Some(topic), partition: Some(partition), ..GateSubject::default() }
}

#[test]
fn a_gate_catches_the_nth_match_of_its_filter_only() {
    let gates = Gates::default();
    let filter = GateFilter { topic: Some("t".into()), nth: Some(2), ..GateFilter::default() };
    let id = gates.arm(GatePoint::ProduceAckBefore, filter, GateAction::Drop).unwrap();

    let rows = [
        (GatePoint::ProduceAckBefore, "other", GateVerdict::Pass),
        (GatePoint::ProduceReceived, "t", GateVerdict::Pass),
        (GatePoint::ProduceAckBefore, "t", GateVerdict::Pass),
        (GatePoint::ProduceAckBefore, "t", GateVerdict::Drop),
        (GatePoint::ProduceAckBefore, "t", GateVerdict::Pass),
    ];
    for (point, topic, expected) in rows {
        assert_eq!(gates.check(point, subject(topic, 0)), expected, "{point} {topic}");
    }
    let gate = gates.release(id).unwrap();
    assert_eq!((gate.matches, gate.hits), (3, 1));
    assert!(gates.release(id).is_none());
}

#[test]
fn a_hold_lasts_until_it_is_released() {
    let gates = Gates::default();
    let id = gates.arm(GatePoint::FlushBefore, GateFilter::default(), GateAction::Hold).unwrap();
    assert_eq!(gates.check(GatePoint::FlushBefore, subject("t", 1)), GateVerdict::Hold(id));
    assert!(gates.is_held(id));
    gates.release(id);
    assert!(!gates.is_held(id));
    assert_eq!(gates.check(GatePoint::FlushBefore, subject("t", 1)), GateVerdict::Pass);
}

#[test]
fn the_number_of_gates_is_bounded() {
    let gates = Gates::default();
    for _ in 0..limits::GATES_MAX {
        gates.arm(GatePoint::RouteQuery, GateFilter::default(), GateAction::Fail).unwrap();
    }
    let refused = gates.arm(GatePoint::RouteQuery, GateFilter::default(), GateAction::Fail);
    assert_eq!(refused, Err(TooManyGates(limits::GATES_MAX)));
}

#[test]
fn names_read_back() {
    for &point in GatePoint::ALL {
        assert_eq!(point.name().parse(), Ok(point));
    }
    let error = "produce.ack".parse::<GatePoint>().unwrap_err();
    assert!(error.to_string().contains("produce.ack.before"), "{error}");
}
