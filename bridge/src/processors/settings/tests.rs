use super::*;
use crate::fake::{Client, FakeBackend};
use crate::remoting::RemotingCommand;
use crate::session::Door;

fn stage() -> (FakeBackend, Client, Client) {
    let backend = FakeBackend::new();
    for (name, value) in [
        ("listenPort", "10911"),
        ("maxMessageSize", "1"),
        ("namesrvListenPort", "9876"),
        ("orderMessageEnable", "false"),
    ] {
        backend.set(name, value);
    }
    let broker = Client::new(backend.clone());
    let name_server = broker.at(Door::NameServer);
    (backend, broker, name_server)
}

fn body(answer: &RemotingCommand) -> String {
    assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[tokio::test]
async fn settings_are_told_as_properties() {
    let (_, broker, name_server) = stage();
    let answer = broker.call(26, &[], &[]).await;
    assert_eq!(body(&answer), "listenPort=10911\nmaxMessageSize=1\n");
    assert!(answer.ext_fields.get("version").is_some_and(|text| text.contains("timestamp")));
    let answer = name_server.call(319, &[], &[]).await;
    assert_eq!(body(&answer), "listenPort=9876\norderMessageEnable=false\n");
}

#[tokio::test]
async fn settings_are_changed_all_or_none() {
    let (backend, broker, name_server) = stage();
    let answer = broker.call(25, &[], b"# a comment\nmaxMessageSize=7\n").await;
    assert_eq!(body(&answer), "");
    assert_eq!(backend.settings()["maxMessageSize"], "7");
    let answer = broker.call(25, &[], b"maxMessageSize=8\nnope=1\n").await;
    let remark = "Unknown broker config name: nope";
    assert_eq!((answer.code, answer.remark.as_deref()), (29, Some(remark)));
    let answer = broker.call(25, &[], b"configBlackList=x").await;
    let remark = "Can not update config in black list.";
    assert_eq!((answer.code, answer.remark.as_deref()), (16, Some(remark)));
    assert_eq!(backend.settings()["maxMessageSize"], "7");
    let answer = name_server.call(318, &[], b"orderMessageEnable=true").await;
    assert_eq!(body(&answer), "");
    assert_eq!(backend.settings()["orderMessageEnable"], "true");
    assert_eq!(name_server.call(318, &[], b"maxMessageSize=9").await.code, 29);
    assert_eq!(backend.settings()["maxMessageSize"], "7");
}
