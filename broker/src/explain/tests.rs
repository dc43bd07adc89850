use super::*;

#[test]
fn every_row_is_printed_within_the_width() {
    let mut out = Vec::new();
    print(&mut out, ROWS).expect("memory");
    let text = String::from_utf8(out).expect("text");
    for row in ROWS {
        let first = row.rocketmq.split_whitespace().chain(row.kafka.split_whitespace()).next();
        assert!(text.contains(first.expect("a row names something")));
    }
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(WIDTH), "{longest:?}");
    assert_eq!(text.matches("\n===").count(), 3, "the parts have headings");
}
