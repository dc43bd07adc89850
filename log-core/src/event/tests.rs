use std::sync::Mutex;

use super::*;

struct Kept(Arc<Mutex<Vec<Event>>>);

impl EventSink for Kept {
    fn accept(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

#[test]
fn events_are_numbered_and_cost_nothing_unheard() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let events = Events::new(NodeId(7), Box::new(Kept(kept.clone())));
    events.emit(|| panic!("nobody listens"));
    events.listen();
    let topic: Arc<str> = "t".into();
    events.emit(|| Event::new(EventKind::ProduceAppended, 5).at(&topic, 0).offset(Offset(3)));
    events.emit(|| Event::new(EventKind::HighWatermarkAdvanced, 6).at(&topic, 0));
    events.stop();
    events.emit(|| panic!("nobody listens any more"));

    let kept = kept.lock().unwrap();
    assert_eq!(kept.iter().map(|e| (e.seq, e.node.0)).collect::<Vec<_>>(), [(0, 7), (1, 7)]);
    assert_eq!(kept[0].kind.to_string(), "produce.append");
    assert_eq!(kept[0].offset, Some(Offset(3)));
}

#[test]
fn kinds_have_distinct_dotted_names() {
    let names: std::collections::BTreeSet<_> = EventKind::ALL.iter().map(|k| k.name()).collect();
    assert_eq!(names.len(), EventKind::ALL.len());
}
