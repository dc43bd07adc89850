//! Against frames that the Java client encoded: tests/golden/kafka-codec.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::super::{RequestHeader, decode_response, encode_request, encode_response};
use super::*;

struct Golden {
    api_key: ApiKey,
    kind: Kind,
    version: i16,
    nulls: bool,
    frame: Bytes,
}

fn bytes_of_hex(text: &str) -> Bytes {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("a hex byte")
    };
    digits.map(byte).collect::<Vec<_>>().into()
}

/// All frames of all files.
fn golden() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/kafka-codec/frames");
    let mut frames = Vec::new();
    for &api_key in ApiKey::ALL {
        let file = folder.join(format!("{:03}-{}.txt", api_key as i16, api_key.name()));
        let text = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", file.display()));
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let kind = if words[0] == "request" { Kind::Request } else { Kind::Response };
            let version = words[1].parse().expect("a version");
            let nulls = words[2] == "null";
            frames.push(Golden { api_key, kind, version, nulls, frame: bytes_of_hex(words[3]) });
        }
    }
    frames
}

fn golden_frame(api_key: ApiKey, kind: Kind, version: i16) -> Bytes {
    let is_it = |golden: &Golden| {
        (golden.api_key, golden.kind, golden.version, golden.nulls)
            == (api_key, kind, version, false)
    };
    golden().into_iter().find(is_it).expect("the version has a frame").frame.slice(4..)
}

/// The body of `golden` after its length and header, which are checked here.
fn body_of_frame(golden: &Golden) -> Bytes {
    let frame = golden.frame.slice(4..);
    assert_eq!(golden.frame[..4], (frame.len() as u32).to_be_bytes());
    if golden.kind == Kind::Request {
        let (header, body) = RequestHeader::decode(&frame).expect("a request header");
        let wanted = RequestHeader {
            api_key: golden.api_key as i16,
            api_version: golden.version,
            correlation_id: 7,
            client_id: (!golden.nulls).then(|| "golden".into()),
        };
        assert_eq!(header, wanted);
        return body;
    }
    assert_eq!(frame[..4], [0, 0, 0, 7]);
    let header = 4 + golden.api_key.response_header_version(golden.version) as usize;
    frame.slice(header..)
}

#[test]
fn frames_of_the_java_client_are_read_and_written_alike() {
    let mut seen = BTreeSet::new();
    for golden in golden() {
        let Golden { api_key, kind, version, nulls, .. } = golden;
        let body = body_of_frame(&golden);
        let codec = MESSAGES
            .iter()
            .find(|codec| codec.api_key == api_key && codec.kind == kind)
            .expect("a codec");
        let again = (codec.recode)(&body, version);
        assert_eq!(again, Ok(body), "{} v{version}", codec.name);
        seen.insert((api_key, kind == Kind::Request, version, nulls));
    }
    for codec in MESSAGES {
        for version in codec.versions() {
            for nulls in [false, true] {
                let row = (codec.api_key, codec.kind == Kind::Request, version, nulls);
                assert!(seen.contains(&row), "no frame for {} v{version}", codec.name);
            }
        }
    }
}

#[test]
fn fields_have_the_values_of_their_place() {
    let frame = golden_frame(ApiKey::Fetch, Kind::Request, 18);
    let (_, body) = RequestHeader::decode(&frame).expect("a header");
    let fetch = messages::FetchRequest::from_body(&body, 18).expect("a request");
    let topic = &fetch.topics[0];
    let partition = &topic.partitions[0];
    let tagged = fetch.cluster_id.as_deref();
    assert_eq!((fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes), (1, 2, 3));
    assert_eq!((fetch.isolation_level, fetch.session_id, fetch.session_epoch), (4, 5, 6));
    assert_eq!(u128::from_be_bytes(topic.topic_id.0), (8 << 64) | 8);
    assert_eq!((partition.partition, partition.current_leader_epoch), (10, 11));
    assert_eq!((partition.fetch_offset, partition.last_fetched_epoch), (12, 13));
    assert_eq!((partition.log_start_offset, partition.partition_max_bytes), (14, 15));
    assert_eq!(u128::from_be_bytes(partition.replica_directory_id.0), (16 << 64) | 16);
    assert_eq!(partition.high_watermark, 17);
    assert_eq!((&*fetch.rack_id, tagged), ("s22", Some("s23")));
    assert_eq!((fetch.replica_state.replica_id, fetch.replica_state.replica_epoch), (25, 26));
    let again = encode_request(7, Some(&"golden".into()), 18, &fetch).expect("a frame");
    assert_eq!(again.to_bytes().slice(4..), frame);
}

#[test]
fn answers_leave_with_their_records_as_segments() {
    let frame = golden_frame(ApiKey::Fetch, Kind::Response, 16);
    let (correlation_id, fetch) =
        decode_response::<messages::FetchResponse>(&frame, 16).expect("a response");
    let records = fetch.responses[0].partitions[0].records.as_ref().expect("records").to_bytes();
    assert_eq!(records.len(), 140);
    let again = encode_response(correlation_id, 16, &fetch).expect("a frame");
    assert_eq!(again.segments().len(), 3);
    assert_eq!(again.segments()[1].as_ptr(), records.as_ptr());
    assert_eq!(again.to_bytes().slice(4..), frame);
}
