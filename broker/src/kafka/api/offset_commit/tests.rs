use super::*;
use crate::config::topic::Overrides;
use crate::config::values::Values;
use crate::controller::record::{MetadataRecord, TopicRecord};
use crate::kafka::codec::messages::offset_commit_request::OffsetCommitRequestPartition;

#[test]
fn a_position_knows_its_topics_id_however_the_client_named_it() {
    let id = duolog_log_core::ids::TopicId([7; 16]);
    let topic =
        TopicRecord { id, internal: false, numbers: vec![0], overrides: Overrides::default() };
    let mut image = Image::empty(Values::default());
    let record = MetadataRecord::Topic { name: "t".into(), topic: Some(topic) };
    image.apply(record).expect("a topic");
    for version in OffsetCommit::VERSIONS {
        let by_id = version >= TOPIC_ID_FROM;
        let asked = OffsetCommitRequestTopic {
            name: if by_id { "".into() } else { "t".into() },
            topic_id: if by_id { id } else { duolog_log_core::ids::TopicId::ZERO },
            partitions: vec![OffsetCommitRequestPartition::default()],
        };
        let (commit, _) = check(version, &image, asked);
        let commit = commit.expect("a commit");
        assert_eq!((&*commit.topic, commit.topic_id), ("t", id), "version {version}");
    }
}
