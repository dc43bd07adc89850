use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::remoting::{ExtFields, LanguageCode};

fn command(serialize: SerializeType) -> RemotingCommand {
    RemotingCommand {
        code: 310,
        language: LanguageCode::from_name("GO"),
        version: 433,
        opaque: -7,
        flag: 2,
        remark: Some("tab\t quote\" \u{1}\u{2} ünï".to_owned()),
        ext_fields: ExtFields::from_iter([("a", "group"), ("i", "TAGS\u{1}x\u{2}"), ("e", "0")]),
        body: Bytes::from_static(b"body"),
        serialize,
    }
}

fn encoded(command: &RemotingCommand) -> BytesMut {
    let mut out = SegmentedOut::default();
    command.encode(&mut out).unwrap();
    BytesMut::from(&out.into_bytes()[..])
}

#[test]
fn both_encodings_round_trip_byte_by_byte() {
    for serialize in [SerializeType::Json, SerializeType::Binary] {
        let command = command(serialize);
        let whole = encoded(&command);
        let mut buffer = BytesMut::new();
        for (position, byte) in whole.iter().enumerate() {
            assert_eq!(Decoder::default().decode(&mut buffer), Ok(None), "at byte {position}");
            buffer.put_u8(*byte);
        }
        assert_eq!(Decoder::default().decode(&mut buffer), Ok(Some(command)));
        assert!(buffer.is_empty());
    }
}

#[test]
fn frames_behind_each_other_come_in_order() {
    let mut buffer = encoded(&command(SerializeType::Json));
    buffer.extend_from_slice(&encoded(&command(SerializeType::Binary)));
    let first = Decoder::default().decode(&mut buffer).unwrap().unwrap();
    let second = Decoder::default().decode(&mut buffer).unwrap().unwrap();
    assert_eq!((first.serialize, second.serialize), (SerializeType::Json, SerializeType::Binary));
}

/// Case B18: what is not this protocol is refused by its first bytes, and no memory is set aside
/// for it.
#[test]
fn foreign_protocols_and_impossible_lengths_are_refused_at_once() {
    let max = i32::try_from(FRAME_BYTES_MAX).unwrap();
    let starts: [&[u8]; 7] = [
        &[0x16, 3, 1, 2],
        b"GET ",
        &0i32.to_be_bytes(),
        &3i32.to_be_bytes(),
        &(-1i32).to_be_bytes(),
        &(max - 3).to_be_bytes(),
        &i32::MAX.to_be_bytes(),
    ];
    for start in starts {
        let mut buffer = BytesMut::from(start);
        let capacity = buffer.capacity();
        let refused = Decoder::default().decode(&mut buffer);
        assert!(matches!(refused, Err(FrameError::Length { .. })), "{start:?}: {refused:?}");
        assert_eq!(buffer.capacity(), capacity);
    }
    let mut largest = BytesMut::from(&(max - 4).to_be_bytes()[..]);
    assert_eq!(Decoder::default().decode(&mut largest), Ok(None));
}

#[test]
fn a_bad_header_word_is_refused_before_the_frame_is_whole() {
    let mut type_two = BytesMut::from(&[0, 0, 1, 0, 2, 0, 0, 4][..]);
    assert_eq!(Decoder::default().decode(&mut type_two), Err(FrameError::SerializeType(2)));
    let mut long = BytesMut::from(&[0, 0, 1, 0, 0, 0, 0, 253][..]);
    let refused = Decoder::default().decode(&mut long);
    assert_eq!(refused, Err(FrameError::HeaderLength { header: 253, frame: 256 }));
}

#[test]
fn a_code_beyond_16_bits_has_no_binary_form_and_leaves_the_output_alone() {
    let mut pop = command(SerializeType::Binary);
    pop.code = 200_050;
    let mut out = SegmentedOut::default();
    out.put_slice(b"before");
    assert_eq!(pop.encode(&mut out), Err(EncodeError::Code(200_050)));
    assert_eq!(&out.into_bytes()[..], b"before");
}

#[test]
fn a_body_given_apart_follows_the_header_and_is_not_copied() {
    let large = Bytes::from(vec![7; 10_000]);
    let mut body = SegmentedOut::default();
    body.put_slice(b"head");
    body.put_shared(large.clone());
    let mut out = SegmentedOut::default();
    command(SerializeType::Json).encode_with_body(body, &mut out).unwrap();
    let segments = out.clone().into_segments();
    assert_eq!(segments.back().unwrap().as_ptr(), large.as_ptr());
    let decoded = Decoder::default().decode(&mut BytesMut::from(&out.into_bytes()[..]));
    let decoded = decoded.unwrap().unwrap();
    assert_eq!(decoded.body.len(), 4 + large.len());
    assert_eq!(&decoded.body[4..], &large[..]);
}

fn json(header: &str) -> Result<RemotingCommand, FrameError> {
    let mut buffer = BytesMut::new();
    let header_bytes = u32::try_from(header.len()).unwrap();
    buffer.put_u32(header_bytes + 4);
    buffer.put_u32(header_bytes);
    buffer.put_slice(header.as_bytes());
    Decoder::default().decode(&mut buffer).map(Option::unwrap)
}

#[test]
fn json_headers_of_other_clients_are_read() {
    let spaced = json(concat!(
        " {\n \"opaque\" : 5 , \"code\":\"11\", 'flag':1, \"language\":9, \"new\":[{\"x\":null}],",
        "\"extFields\":{\"queueId\":3,\"lo\":false,\"gone\":null,",
        "\"t\":\"\\u0041\\ud83d\\ude00\"} }\n"
    ))
    .unwrap();
    assert_eq!((spaced.opaque, spaced.code, spaced.flag), (5, 11, 1));
    assert_eq!(spaced.language, LanguageCode::from_name("GO"));
    assert_eq!(spaced.field::<i32>("queueId"), Ok(3));
    assert_eq!(spaced.field::<bool>("lo"), Ok(false));
    assert_eq!(spaced.ext_fields.get("gone"), None);
    assert_eq!(spaced.ext_fields.get("t"), Some("A\u{1F600}"));
    let bare =
        json("{\"code\":1,\"language\":\"KOTLIN\",\"extFields\":null,\"remark\":null}").unwrap();
    assert_eq!((bare.language, bare.remark), (LanguageCode::OTHER, None));
}

#[test]
fn broken_json_headers_are_refused() {
    for header in [
        "",
        "{",
        "[]",
        "null",
        "{\"code\":}",
        "{\"code\":2147483648}",
        "{\"code\":1}x",
        "{\"a\":\"\\u12\"}",
    ] {
        assert!(matches!(json(header), Err(FrameError::JsonHeader(_))), "{header}");
    }
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    assert!(matches!(json(&deep), Err(FrameError::JsonHeader(_))));
}

/// Case B07: the error names the field.
#[test]
fn field_errors_name_the_field() {
    let command = json(
        "{\"code\":11,\"extFields\":{\"queueId\":\"abc\",\"maxMsgNums\":\"2147483648\",\
         \"n\":\"1\",\"n\":\"2\"}}",
    )
    .unwrap();
    let text = |name| command.field::<i32>(name).map_err(|error| error.to_string());
    assert_eq!(text("topic").unwrap_err(), "the custom field <topic> is null");
    assert_eq!(
        text("queueId").unwrap_err(),
        "the custom field <queueId> is not a 32-bit integer: \"abc\""
    );
    assert!(text("maxMsgNums").unwrap_err().contains("<maxMsgNums>"));
    assert_eq!(command.field::<i64>("maxMsgNums"), Ok(2_147_483_648));
    assert_eq!(text("n"), Ok(2), "the last of two counts");
    assert_eq!(command.optional_field::<i32>("absent"), Ok(None));
}

fn text() -> impl Strategy<Value = String> {
    "[ -~\u{1}\u{2}\té中😀]{0,12}"
}

fn any_command() -> impl Strategy<Value = RemotingCommand> {
    let fields = proptest::collection::vec(("[a-zA-Z0-9_é]{1,8}", "[ -~\u{1}é]{1,12}"), 0..6);
    let numbers = (0..=i32::from(i16::MAX), any::<i32>(), any::<i32>(), 0..14_u8, 0..1000);
    let rest = (proptest::option::of("[ -~é\u{0}]{1,20}"), any::<bool>());
    (numbers, fields, rest, text()).prop_map(|(numbers, fields, (remark, is_json), body)| {
        let (code, opaque, flag, language, version) = numbers;
        RemotingCommand {
            code,
            language: LanguageCode(language),
            version,
            opaque,
            flag,
            remark,
            ext_fields: fields.into_iter().collect(),
            body: Bytes::from(body),
            serialize: if is_json { SerializeType::Json } else { SerializeType::Binary },
        }
    })
}

proptest! {
    #[test]
    fn every_command_comes_back(command in any_command()) {
        let mut buffer = encoded(&command);
        let decoded = Decoder::default().decode(&mut buffer);
        prop_assert_eq!(decoded, Ok(Some(command)));
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = Decoder::default().decode(&mut buffer) {}
    }

    /// Random bytes seldom get past the lengths; these have them right.
    #[test]
    fn no_header_panics(
        header in proptest::collection::vec(any::<u8>(), 0..120),
        is_json in any::<bool>(),
    ) {
        let mut buffer = BytesMut::new();
        buffer.put_u32(header.len() as u32 + 4);
        buffer.put_u32(header.len() as u32 | if is_json { 0 } else { 1 << 24 });
        buffer.put_slice(&header);
        let _any = Decoder::default().decode(&mut buffer);
    }

    #[test]
    fn no_damage_panics(command in any_command(), place in 8..400_usize, byte in any::<u8>()) {
        let mut buffer = encoded(&command);
        let place = place % buffer.len();
        buffer[place] = byte;
        let _any = Decoder::default().decode(&mut buffer);
    }
}

/// Every one would be a copy of the whole header.
#[test]
fn fields_come_once_in_a_json_header() {
    let frame = |header: &str| {
        let mut frame = BytesMut::new();
        let length = u32::try_from(header.len()).unwrap();
        frame.put_u32(length + 4);
        frame.put_u32(length);
        frame.put_slice(header.as_bytes());
        frame
    };
    let once = "{\"code\":28,\"extFields\":{\"a\":\"b\"}}";
    assert!(Decoder::default().decode(&mut frame(once)).unwrap().is_some());
    for second in ["{\"a\":\"c\"}", "{}", "null"] {
        let header =
            format!("{{\"extFields\":{{\"a\":\"b\"}},\"code\":28,\"extFields\":{second}}}");
        let error = Decoder::default().decode(&mut frame(&header)).unwrap_err();
        assert!(matches!(error, FrameError::JsonHeader(_)), "{error}");
    }
}
