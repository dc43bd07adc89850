use super::super::messages::{
    ApiVersionsResponse, HeartbeatRequest, HeartbeatResponse, MetadataRequest,
};
use super::*;

#[test]
fn header_versions_follow_the_flexible_versions() {
    for &api_key in ApiKey::ALL {
        let (low, high) = api_key.versions();
        for version in low..=high {
            let flexible = api_key.flexible_from().is_some_and(|from| version >= from);
            assert_eq!(api_key.request_header_version(version), if flexible { 2 } else { 1 });
            let response = i16::from(flexible && api_key != ApiKey::ApiVersions);
            assert_eq!(api_key.response_header_version(version), response);
        }
    }
}

#[test]
fn a_request_comes_back_from_its_frame() {
    let request = HeartbeatRequest { group_id: "g".into(), ..HeartbeatRequest::default() };
    for version in 0..=4 {
        let client_id = Some(Str::from("c"));
        let frame = encode_request(9, client_id.as_ref(), version, &request).expect("a frame");
        let frame = frame.to_bytes().slice(4..);
        let (header, body) = RequestHeader::decode(&frame).expect("a header");
        let wanted =
            RequestHeader { api_key: 12, api_version: version, correlation_id: 9, client_id };
        assert_eq!(header, wanted);
        assert_eq!(HeartbeatRequest::from_body(&body, version).as_ref(), Ok(&request));
    }
}

#[test]
fn what_librdkafka_asks_for_all_topics_with_is_read_as_kafka_reads_it() {
    // As confluent-kafka 2.16.1 sends it for `list_topics()`: the array's length has four bytes.
    let frame = b"\0\x03\0\x0d\0\0\0\x03\0\x07rdkafka\0\0\0\0\0\x01\0\0";
    let (header, body) = RequestHeader::decode(&Bytes::from_static(frame)).expect("a header");
    assert_eq!((header.api_key, header.api_version), (3, 13));
    let request = MetadataRequest::from_client(&body, 13).expect("a request");
    assert_eq!(request.topics, None);
    let strict = MetadataRequest::from_body(&body, 13);
    assert_eq!(strict, Err(DecodeError::Trailing { left: 3 }));
}

#[test]
fn a_response_comes_back_from_its_frame() {
    let response = HeartbeatResponse { throttle_time_ms: 0, error_code: 27 };
    for version in 0..=4 {
        let frame = encode_response(5, version, &response).expect("a frame").to_bytes();
        assert_eq!(decode_response(&frame.slice(4..), version), Ok((5, response.clone())));
    }
    assert_eq!(
        HeartbeatResponse::from_body(&Bytes::new(), 5),
        Err(DecodeError::Version { found: 5, min: 0, max: 4 })
    );
}

#[test]
fn api_versions_answers_keep_header_0() {
    let frame = encode_response(7, 3, &ApiVersionsResponse::default()).expect("a frame");
    // Length, correlation id, error, no keys, throttle time, no tagged fields.
    let wanted = [0, 0, 0, 12, 0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0];
    assert_eq!(frame.to_bytes()[..], wanted);
}

#[test]
fn an_api_versions_request_of_unknown_version_shows_its_header_whatever_follows() {
    // Case B03.
    for version in [5_i16, 99, i16::MAX] {
        let mut frame = vec![0, 18];
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        let (header, _) = RequestHeader::decode(&frame.into()).expect("a header");
        assert_eq!((header.api_version, header.correlation_id), (version, 7));
        assert_eq!(header.client_id, None);
    }
}
