use proptest::prelude::*;

use super::*;
use crate::json::JsonStyle;

fn again(text: &str) -> String {
    let value = Value::parse(text.as_bytes()).unwrap();
    String::from_utf8(JsonOut::text_of(&value, JsonStyle::Fastjson).to_vec()).unwrap()
}

#[test]
fn fastjson_and_the_standard_are_read_alike() {
    for (text, written) in [
        (" { } ", "{}"),
        ("[ ]", "[]"),
        ("{0:\"a\",-1 : 'b'}", "{0:\"a\",-1:\"b\"}"),
        ("{{\"q\":0}:{\"x\":null}}", "{{\"q\":0}:{\"x\":null}}"),
        ("{name:true,n:1.5e3}", "{\"name\":true,\"n\":1.5e3}"),
        ("\"a\\u0001\\n\\/\\x41\u{1}\"", "\"a\\u0001\\n/A\\u0001\""),
    ] {
        // A bare name is a word, and is written as it came.
        let written = written.replace("\"name\"", "name").replace("\"n\"", "n");
        assert_eq!(again(text), written, "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "{", "[1", "{\"a\"}", "{\"a\":}", "[1,]", "[1 2]", "\"a", "{,}", "1 2", "]"] {
        assert!(Value::parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn depth_and_number_of_values_are_bounded() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Value::parse(deep(JSON_DEPTH_MAX).as_bytes()).is_ok());
    assert!(Value::parse(deep(JSON_DEPTH_MAX + 2).as_bytes()).is_err());
    assert!(Value::parse("[".repeat(1_000_000).as_bytes()).is_err());
    let many = format!("[{}0]", "0,".repeat(JSON_VALUES_MAX));
    assert!(Value::parse(many.as_bytes()).is_err());
}

/// fastjson may write the second of two equal objects as a reference; half a subscription must not
/// be taken for one.
#[test]
fn references_are_refused() {
    let refused = Value::parse(b"{\"a\":{\"$ref\":\"$.b\"}}").unwrap_err();
    assert!(refused.to_string().contains("reference"), "{refused}");
}

#[test]
fn fields_are_converted_as_fastjson_does() {
    let text = b"{\"i\":\"5\",\"j\":5,\"t\":7,\"b\":\"true\",\"c\":1,\"n\":null,\"i\":6}";
    let value = Value::parse(text).unwrap();
    assert_eq!(value.number::<i32>("i"), Ok(Some(6)), "the last of two counts");
    assert_eq!(value.number::<i64>("j"), Ok(Some(5)));
    assert_eq!(value.text("t"), Ok(Some("7".to_owned())));
    assert_eq!((value.flag("b"), value.flag("c")), (Ok(Some(true)), Ok(Some(true))));
    assert_eq!((value.flag("n"), value.number::<i32>("absent")), (Ok(None), Ok(None)));
    let error = value.flag("t").unwrap_err();
    assert_eq!(error.to_string(), "body: t is not true or false");
    assert!(Value::parse(b"{\"i\":2147483648}").unwrap().number::<i32>("i").is_err());
    assert!(value.elements("j").is_err());
    assert!(Value::parse(b"{\"t\":[{}]}").unwrap().texts("t").is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "[\\[\\]{}:,\"'\\\\a-cu0-9 \u{1}é]{0,60}") {
        if let Ok(value) = Value::parse(text.as_bytes()) {
            let written = JsonOut::text_of(&value, JsonStyle::Fastjson);
            let again = Value::parse(&written);
            prop_assert_eq!(again.as_ref(), Ok(&value));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _any = Value::parse(&bytes);
    }

    #[test]
    fn strings_come_back(text in "\\PC{0,40}[\u{0}-\u{20}\"\\\\]{0,5}\u{1F600}?") {
        let value = Value::Text(text.into());
        let written = JsonOut::text_of(&value, JsonStyle::Fastjson);
        prop_assert_eq!(Value::parse(&written), Ok(value.clone()));
    }
}
