use super::*;
use crate::case;
use crate::run::Builder;
use crate::trace::Recording;

fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_case_says_what_was_acknowledged_and_lost() {
    let text = text(|out| write_scenes(out, &case::hw_truncation(), Detail::Usual));
    assert_eq!(text.matches("lost          m5 m6 m7\n").count(), 2);
    assert_eq!(text.matches("lost          nothing\n").count(), 2);
    assert!(text.contains("m5 with acks=1"));
    assert!(!text.contains("repl.fetch"));
}

#[test]
fn a_seed_shows_every_replica_beside_every_event() {
    let report = Builder { seed: 3, recording: Recording::On, ..Builder::default() }.run();
    let text = text(|out| write_report(out, &report, Detail::Full));
    for kind in ["leader.elect", "repl.fetch", "repl.append", "hw.advance", "produce.ack"] {
        assert!(text.contains(kind), "{kind}");
    }
    assert!(text.contains(&format!("trace {:016x}", report.trace_hash)));
}
