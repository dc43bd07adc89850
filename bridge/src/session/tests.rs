use super::*;

fn peer() -> SocketAddr {
    "10.0.0.7:4711".parse().expect("an address")
}

#[test]
fn a_notice_reaches_the_members_that_are_here() {
    let sessions = Sessions::default();
    let (to_first, mut first) = mpsc::channel(4);
    let (to_second, mut second) = mpsc::channel(4);
    let one = sessions.open(Door::Broker, peer(), to_first);
    let other = sessions.open(Door::Broker, peer(), to_second);
    assert_ne!(one.id(), other.id());
    sessions.notify_consumer_ids_changed("g", [one.id(), SessionId(99)]);
    let notice = first.try_recv().expect("a notice");
    assert_eq!(notice.code, 40);
    assert!(notice.is_one_way() && !notice.is_response());
    assert_eq!(notice.ext_fields.get("consumerGroup"), Some("g"));
    assert!(second.try_recv().is_err());
}

/// Whether its loop waits already or not.
#[test]
fn a_close_is_asked_for_once_and_kept_until_the_loop_looks() {
    let sessions = Sessions::default();
    let (outbox, _inbox) = mpsc::channel(1);
    let session = sessions.open(Door::Broker, peer(), outbox);
    assert!(!is_ready(session.close_requested()), "nobody has asked");
    sessions.request_close(SessionId(99));
    assert!(!is_ready(session.close_requested()), "another one's");
    sessions.request_close(session.id());
    assert!(is_ready(session.close_requested()));
}

/// Is it ready at its first poll?
fn is_ready(future: impl Future<Output = ()>) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::pin!(future).poll(&mut context).is_ready()
}

#[test]
fn a_full_outbox_loses_the_notice_and_a_closed_session_gets_none() {
    let sessions = Sessions::default();
    let (outbox, mut inbox) = mpsc::channel(1);
    let session = sessions.open(Door::Broker, peer(), outbox);
    for group in ["a", "b"] {
        sessions.notify_consumer_ids_changed(group, [session.id()]);
    }
    assert_eq!(inbox.try_recv().expect("the first").ext_fields.get("consumerGroup"), Some("a"));
    assert!(inbox.try_recv().is_err());
    sessions.close(session.id());
    assert!(sessions.is_empty());
    sessions.notify_consumer_ids_changed("c", [session.id()]);
    assert!(inbox.try_recv().is_err());
}
