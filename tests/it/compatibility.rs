//! `docs/compatibility.md` says what the tables in the code say: its two tables are made from them.
//!
//! `BLESS=1 cargo test -p duolog-tests --test it compatibility` writes them anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use duolog_bridge::processors::{NOT_AT_VIP_DOOR, SERVED};
use duolog_bridge::request_code::REQUEST_CODES;
use duolog_bridge::session::Door;
use duolog_broker::kafka::api::APIS;

const KAFKA: &str = include_str!("compatibility/kafka-apis.tsv");
const ROCKETMQ: &str = include_str!("compatibility/rocketmq-codes.tsv");

/// Requests of the broker to its clients that this one makes.
const SENT: [&str; 5] = [
    "CHECK_TRANSACTION_STATE",
    "GET_CONSUMER_STATUS_FROM_CLIENT",
    "NOTIFY_CONSUMER_IDS_CHANGED",
    "PUSH_REPLY_MESSAGE_TO_CLIENT",
    "RESET_CONSUMER_CLIENT_OFFSET",
];

fn paper() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compatibility.md")
}

/// The rows of a data file, each with `N` columns.
fn rows<const N: usize>(text: &'static str) -> Vec<[&'static str; N]> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            columns.try_into().unwrap_or_else(|_| panic!("{N} columns: {line}"))
        })
        .collect()
}

fn kafka_table() -> String {
    let mut served: BTreeMap<_, _> = APIS.iter().map(|api| (api.key as i16, api)).collect();
    assert_eq!(served.len(), APIS.len(), "each API once");
    let mut table =
        "| key | API | Kafka 4.3.1 | Duolog | what for |\n|---|---|---|---|---|\n".to_owned();
    for [key, name, first, last, purpose] in rows(KAFKA) {
        let peer = if first == "-" { "removed".to_owned() } else { format!("{first}–{last}") };
        let here = match served.remove(&key.parse().expect("a number")) {
            Some(api) => {
                assert_eq!(api.key.name(), name, "key {key}");
                let (first, last) = api.versions();
                format!("**{first}–{last}**")
            }
            None if first == "-" => "–".to_owned(),
            None => "not yet".to_owned(),
        };
        writeln!(table, "| {key} | {name} | {peer} | {here} | {purpose} |").expect("memory");
    }
    assert!(served.is_empty(), "not in kafka-apis.tsv: {:?}", served.keys());
    table
}

fn rocketmq_table() -> String {
    let mut served: BTreeMap<_, _> = SERVED.iter().map(|code| (code.code, code)).collect();
    assert_eq!(served.len(), SERVED.len(), "each code once");
    let mut sent = BTreeSet::from(SENT);
    let mut table =
        "| code | name | RocketMQ 5.5.0 | Duolog | what for |\n|---|---|---|---|---|\n".to_owned();
    for [code, name, peer, purpose] in rows(ROCKETMQ) {
        let number = code.parse().expect("a number");
        let here = match served.remove(&number) {
            Some(row) => {
                assert_eq!(row.name, name, "code {code}");
                match row.door {
                    Door::NameServer => "**name server**",
                    _ if NOT_AT_VIP_DOOR.contains(&number) => "**broker**",
                    _ => "**broker**, VIP port",
                }
            }
            None if sent.remove(name) => "**sent to clients**",
            None if peer == "none" => "–",
            None => "not yet",
        };
        writeln!(table, "| {code} | {name} | {peer} | {here} | {purpose} |").expect("memory");
    }
    assert!(served.is_empty(), "not in rocketmq-codes.tsv: {:?}", served.keys());
    assert!(sent.is_empty(), "not in rocketmq-codes.tsv: {sent:?}");
    table
}

/// Puts `table` between the marks of its name.
fn insert(paper: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = paper.split_once(&begin).unwrap_or_else(|| panic!("{begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{end}"));
    format!("{before}{begin}{table}{end}{after}")
}

/// The names by which the console and the metrics call requests.
#[test]
fn every_request_code_has_its_name() {
    let names: Vec<(i32, &str)> = rows(ROCKETMQ)
        .into_iter()
        .map(|[code, name, ..]: [&str; 4]| (code.parse().expect("a number"), name))
        .collect();
    assert_eq!(names, REQUEST_CODES);
}

#[test]
fn compatibility_paper_says_what_the_code_serves() {
    let written = fs::read_to_string(paper()).expect("docs/compatibility.md");
    let made = insert(&written, "kafka", &kafka_table());
    let made = insert(&made, "rocketmq", &rocketmq_table());
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(paper(), made).expect("docs/compatibility.md is writable");
        return;
    }
    let stale: Vec<_> =
        made.lines().filter(|line| !written.lines().any(|old| old == *line)).collect();
    assert!(
        made == written,
        "docs/compatibility.md is stale; run BLESS=1 cargo test -p duolog-tests --test it \
         compatibility\nmissing there:\n{}",
        stale.join("\n")
    );
}
