use super::*;
use crate::fake::{Client, FakeBackend};
use crate::processors::SERVED;
use crate::remoting::SerializeType;

#[tokio::test]
async fn an_unknown_code_is_answered_in_the_originals_words() {
    let client = Client::new(FakeBackend::new());
    for door in [Door::NameServer, Door::Broker, Door::BrokerVip] {
        let answer = client.at(door).call(9999, &[], b"").await;
        assert_eq!(answer.code, 3);
        assert_eq!(answer.remark.as_deref(), Some(" request type 9999 not supported"));
    }
}

#[tokio::test]
async fn codes_belong_to_their_door() {
    let client = Client::new(FakeBackend::new());
    let is_served = async |door, code| client.at(door).call(code, &[], b"").await.code != 3;
    assert!(is_served(Door::NameServer, 100).await);
    assert!(!is_served(Door::Broker, 100).await);
    for served in SERVED.iter().filter(|served| served.door == Door::Broker) {
        assert!(is_served(Door::Broker, served.code).await, "{}", served.name);
        assert!(!is_served(Door::NameServer, served.code).await, "{}", served.name);
        let is_pull = processors::NOT_AT_VIP_DOOR.contains(&served.code);
        assert_eq!(is_served(Door::BrokerVip, served.code).await, !is_pull, "{}", served.name);
    }
}

#[tokio::test]
async fn an_answer_has_the_number_and_the_encoding_of_its_request() {
    let client = Client::new(FakeBackend::new()).at(Door::NameServer);
    for serialize in [SerializeType::Json, SerializeType::Binary] {
        let request = RemotingCommand::request(101, 77, serialize).with_field("namespace", "n");
        let answer = client.send(request).await.expect("an answer");
        assert_eq!((answer.opaque, answer.serialize), (77, serialize));
        assert!(answer.is_response());
        assert_eq!(answer.code, 1, "a missing field");
        assert_eq!(answer.remark.as_deref(), Some("the custom field <key> is null"));
    }
}

#[tokio::test]
async fn one_way_requests_and_answers_of_the_client_get_no_answer() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone()).at(Door::NameServer);
    let put = RemotingCommand::request(100, 1, SerializeType::Json)
        .with_field("namespace", "n")
        .with_field("key", "k")
        .with_field("value", "v");
    assert_eq!(client.send(put.clone().one_way()).await, None);
    assert_eq!(backend.kv_config("n", "k").as_deref(), Some("v"), "it was carried out");
    let unknown = RemotingCommand::request(9999, 1, SerializeType::Json).one_way();
    assert_eq!(client.send(unknown).await, None);
    let answer = put.response(ResponseCode::SUCCESS);
    assert_eq!(client.send(answer).await, None);
}

#[tokio::test]
async fn the_end_of_a_members_connection_is_told() {
    let backend = FakeBackend::new();
    let mut member = Client::new(backend.clone());
    let other = member.at(Door::Broker);
    member.session.set_member();
    member.dispatcher.sessions().notify_consumer_ids_changed("g", [member.session.id()]);
    assert_eq!(member.inbox.try_recv().expect("a notice").code, 40);
    other.dispatcher.close(&other.session);
    member.dispatcher.close(&member.session);
    assert_eq!(backend.closed_sessions(), [member.session.id()]);
    assert!(member.dispatcher.sessions().is_empty());
}

#[test]
fn no_code_is_served_twice_at_one_door() {
    for (index, one) in SERVED.iter().enumerate() {
        let again = SERVED[index + 1..]
            .iter()
            .find(|other| (other.door, other.code) == (one.door, one.code));
        assert_eq!(again, None);
    }
}
