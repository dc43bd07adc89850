//! The crate kafka-protocol reads what we write, and writes it alike.

use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message as TheirMessage};

use super::*;

fn check<M: TheirMessage + Decodable + Encodable>(name: &str, seed: u64) {
    let codec = MESSAGES.iter().find(|codec| codec.name == name).expect("a codec");
    for version in codec.versions().filter(|v| (M::VERSIONS.min..=M::VERSIONS.max).contains(v)) {
        let body = (codec.sample)(&mut Draw::new(seed), version);
        let mut rest = body.clone();
        let message = M::decode(&mut rest, version).expect("they can read it");
        assert!(rest.is_empty(), "{name} v{version}: they leave bytes");
        let mut again = bytes::BytesMut::new();
        message.encode(&mut again, version).expect("they can write it");
        assert_eq!(again.freeze(), body, "{name} v{version}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn another_codec_agrees_on_random_messages(seed: u64) {
        check::<theirs::ProduceRequest>("ProduceRequest", seed);
        check::<theirs::ProduceResponse>("ProduceResponse", seed);
        check::<theirs::FetchRequest>("FetchRequest", seed);
        check::<theirs::FetchResponse>("FetchResponse", seed);
        check::<theirs::MetadataRequest>("MetadataRequest", seed);
        check::<theirs::MetadataResponse>("MetadataResponse", seed);
        check::<theirs::ListOffsetsRequest>("ListOffsetsRequest", seed);
        check::<theirs::ListOffsetsResponse>("ListOffsetsResponse", seed);
        check::<theirs::JoinGroupRequest>("JoinGroupRequest", seed);
        check::<theirs::JoinGroupResponse>("JoinGroupResponse", seed);
        check::<theirs::FindCoordinatorResponse>("FindCoordinatorResponse", seed);
        check::<theirs::CreateTopicsRequest>("CreateTopicsRequest", seed);
        check::<theirs::CreateTopicsResponse>("CreateTopicsResponse", seed);
        check::<theirs::DescribeConfigsResponse>("DescribeConfigsResponse", seed);
        check::<theirs::ApiVersionsResponse>("ApiVersionsResponse", seed);
        check::<theirs::DescribeTopicPartitionsResponse>("DescribeTopicPartitionsResponse", seed);
    }
}
