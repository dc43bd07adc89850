use std::path::Path;

use super::differences::Differences;
use super::mask::Mask;
use super::script::{Action, parse};

#[test]
fn a_script_has_sections_of_runs_with_what_belongs_to_them() {
    let text = "# remark\n= one\nkafka-topics {B} --x \"a b\"\n  < line\n  until there\n  \
                take ID id (.*)\n  sorted\n= two long\n@ join name=m\nfile f.json {\"a\": 1}\n";
    let sections = parse(text).expect("a script");
    assert_eq!(sections.len(), 2);
    assert!(!sections[0].long && sections[1].long);
    let run = &sections[0].steps[0];
    let Action::Tool { words, input, until: Some(until) } = &run.action else { panic!("{run:?}") };
    assert_eq!(words, &["kafka-topics", "{B}", "--x", "a b"]);
    assert_eq!((input.as_str(), until.as_str()), ("line\n", "there"));
    assert!(run.sorted && run.takes[0].0 == "ID");
    let [client, file] = &sections[1].steps[..] else { panic!("{sections:?}") };
    assert!(matches!(&client.action, Action::Client(command) if command == "join name=m"));
    let Action::File { name, content } = &file.action else { panic!("{file:?}") };
    assert_eq!((name.as_str(), content.as_str()), ("f.json", "{\"a\": 1}"));
    for wrong in ["kafka-topics", "= one\n  < input", "= one\nkafka-topics\n  whatever"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_no_two_nodes_share_is_masked() {
    let mask = Mask::new("127.0.0.1:9999", Path::new("/d"), Path::new("/f")).expect("a mask");
    let cases = [
        ("TopicId: abcdefghijklmnopqrstuv  x", "TopicId: ID x\n"),
        ("at 1700000000000 on 127.0.0.1:9999   ", "at TIME on ADDRESS\n"),
        ("/d/t-0 /f/x c-6ba7b810-9dad-11d1-80b4-00c04fd430c8", "DATA/t-0 FILES/x c-UUID\n"),
        ("a\n\tat a.B.c(B.java:1)\n\t... 3 more\nb", "a\nb\n"),
        ("1 127.0.0.1 9999 retention.ms=9999", "1 127.0.0.1 PORT retention.ms=9999\n"),
        ("CoordinatorId\tLatestCoordinatorEpoch\tx", "CoordinatorId\tLatestCoordinatorEpoch\tx\n"),
        ("offset 17000000000", "offset 17000000000\n"),
    ];
    for (text, masked) in cases {
        assert_eq!(mask.apply(text, false, false), masked);
    }
    assert_eq!(mask.apply("b\na", true, false), "a\nb\n");
    assert_eq!(mask.apply("1.5 of 200 records, -1", false, true), "N of N records, N\n");
}

#[test]
fn differences_are_put_where_they_are_and_fail_where_nothing_differs() {
    let theirs = "$ t 1\na\nb\n$ t 2\nc\nb\nd\n$ t 1\na\nb\n";
    let apply = |text: &str| Differences::parse(text).and_then(|found| found.apply("s", theirs));
    let text =
        "= s\n? why\n$ t 2\n- c\n+ x\n+ y\n- d\n+ z\n$ t 1\n- b\n= other\n? why\n$ t 1\n- q\n+ q\n";
    assert_eq!(apply(text).expect("applied"), "$ t 1\na\nb\n$ t 2\nx\ny\nb\nz\n$ t 1\na\n");
    for gone in
        ["= s\n? why\n$ t 1\n- c\n+ x\n", "= s\n? why\n$ t 3\n- c\n+ x\n", "= s\n$ t 1\n- a\n"]
    {
        assert!(apply(gone).is_err(), "{gone}");
    }
}
