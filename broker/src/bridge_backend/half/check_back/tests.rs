use duolog_bridge::remoting::SerializeType;
use duolog_bridge::session::Door;
use futures_util::FutureExt as _;
use tokio::sync::mpsc;

use super::*;

#[tokio::test]
async fn who_takes_nothing_is_waited_for_once_in_a_round() {
    let sessions = Sessions::default();
    let connect = || {
        let (outbox, inbox) = mpsc::channel(1);
        (sessions.open(Door::Broker, ([127, 0, 0, 1], 1).into(), outbox).id(), inbox)
    };
    let ((frozen, mut inbox), (other, _others)) = (connect(), connect());
    let patience = Patience::within(Duration::from_millis(1));
    let hand = |to| {
        let question = RemotingCommand::request(39, 0, SerializeType::Json);
        patience.hand(&sessions, to, question)
    };
    assert_eq!(hand(frozen).now_or_never(), Some(true), "there is room for one");
    assert_eq!(hand(frozen).now_or_never(), None, "it is waited for");
    assert!(!hand(frozen).await, "in vain");
    assert_eq!(hand(frozen).now_or_never(), Some(false), "and not once more");
    assert_eq!(hand(other).now_or_never(), Some(true));
    inbox.recv().await.expect("a question");
    assert_eq!(hand(frozen).now_or_never(), Some(true), "it has room again");
}
