use super::*;

#[test]
fn handles_are_the_originals_and_come_back() {
    let handle =
        RecallHandle { topic: "t", broker_name: "broker-a", time_ms: 1_700_000_000_001, id: "0A" };
    let text = handle.encode();
    assert_eq!(text, "djEgdCBicm9rZXItYSAxNzAwMDAwMDAwMDAxIDBB");
    assert_eq!(parse(&decode(&text).unwrap()), Ok(handle));
    assert!(decode("djEgdA").is_ok(), "padding may be missing");
}

#[test]
fn what_is_no_handle_is_refused() {
    for text in ["", "%%", "d", "djEgd", "djEgdA"] {
        let parsed = decode(text).and_then(|text| parse(&text).map(|_| ()));
        assert_eq!(parsed, Err(InvalidHandle), "{text}");
    }
    assert_eq!(parse("v2 t b 1 id"), Err(InvalidHandle));
    assert_eq!(parse("v1 t b x id").map(|handle| handle.time_ms), Ok(-1));
}
